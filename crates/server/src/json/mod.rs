//! JSON from outside: read with care, compared with a description, and only then believed.

mod check;
mod events;
mod fields;
mod model;
mod parse;
mod problem;
mod state;

pub(crate) use check::MOST_PROBLEMS;
pub(crate) use events::{CONTENT, EVENT, PART};
pub(crate) use fields::{Document, Fields, NamedKey, too_long};
pub(crate) use model::{Field, Kind, Model, Presence, is_called};
pub(crate) use problem::{Problem, Step};
pub(crate) use state::{ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE};
