//! The state of applications and users, without a session: read and changed, its history, and its
//! changes as they are committed.

pub(crate) mod history;
pub(crate) mod state;
pub(crate) mod watch;
