//! Operations on state: changes that are computed where they are committed.

mod calls;
mod json;
mod properties;
mod sameness;
