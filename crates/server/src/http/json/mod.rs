//! JSON from clients: parsed strictly, then compared with its model, and only then used.

mod check;
mod fields;
mod flag;
mod parse;
mod problem;
#[cfg(test)]
mod tests;

pub(crate) use check::MOST_PROBLEMS;
pub(crate) use fields::{Document, Fields, NamedKey, too_long};
pub(crate) use flag::flag;
pub(crate) use problem::{Problem, Step};
