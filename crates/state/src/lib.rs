//! The scratchpad of an AI agent.
//!
//! [`State`] holds JSON values under text keys. It is a cheap handle, safe to share between tasks
//! and threads: no update is lost, no reader sees a partial change, and no sequence of calls
//! deadlocks. A key's prefix is its [`Scope`]; a [`StateKey`] gives one key a type, a
//! [`StateSchema`] declares all of them; a delta view collects changes and commits them atomically;
//! a [`Template`] inserts state into text.
//!
//! This crate does no I/O and knows no async runtime.
//!
//! ```
//! use sessile_state::{State, Template};
//!
//! let state = State::new();
//! state.user().set("name", "Ada");
//!
//! let tracked = state.with_delta_tracking();
//! tracked.modify("visits", 0u32, |n| n + 1);
//! tracked.commit();
//!
//! let greeting = Template::parse("Welcome back, {user:name} (visit {visits})!");
//! assert_eq!(greeting.render(&state)?, "Welcome back, Ada (visit 1)!");
//! # Ok::<(), sessile_state::TemplateError>(())
//! ```

mod base;
mod change;
mod changes;
mod compare;
mod convert;
mod delta;
mod delta_json;
mod error;
mod exact;
mod gate;
mod journal;
mod key;
mod message;
mod nearest;
mod node;
mod not_json;
mod number;
mod operate;
mod operation;
mod overlay;
mod partial;
mod plan;
mod read_tracking;
mod reads;
mod recorder;
mod reduced_writes;
mod reducer;
mod same;
mod schema;
mod schema_error;
mod scope;
mod scoped;
mod scoped_delta;
mod snapshot;
mod state;
mod state_key;
mod sync;
mod table;
mod template;
mod to_json;
mod typed_keys;
mod value;
mod value_type;
mod view;
mod write;

pub use change::Change;
pub use compare::Difference;
pub use delta::Delta;
pub use error::StateError;
pub use journal::Recorded;
pub use not_json::NotJson;
pub use number::Addend;
pub use operation::{Operation, OperationError, Operations};
pub use reads::Reads;
pub use recorder::Recorder;
pub use reducer::{Reducer, Reducers, UnknownReducer};
pub use same::{same_json, same_value};
pub use schema::StateSchema;
pub use schema_error::SchemaError;
pub use scope::{Scope, UnknownScope};
pub use scoped::{ReadOnlyScoped, Scoped};
pub use scoped_delta::{ScopedDelta, extract_state_delta, merge_scopes};
pub use snapshot::Snapshot;
pub use state::State;
pub use state_key::StateKey;
pub use template::{Checked, Ignored, Placeholder, PlaceholderKind, Position, Template, TemplateError};
pub use value::SharedValue;
pub use value_type::ValueType;
