//! JSON from outside: read with care, compared with a description, and only then believed.

mod check;
mod events;
mod fields;
mod model;
mod parse;
mod problem;

pub(crate) use events::{CONTENT, EVENT, PART};
pub(crate) use fields::{Document, Fields};
pub(crate) use model::{Field, Kind, Model, Presence, is_called};
pub(crate) use problem::{Problem, Step};
