//! The limits of the server.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use sessile_server::Limits;

/// Limits; `docs/http-api.md` lists the defaults.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// The longest body of a request, in bytes.
    #[arg(long, value_name = "BYTES")]
    max_body: Option<NonZeroU32>,
    /// How many bytes the bodies of all concurrent requests may have together.
    #[arg(long, value_name = "BYTES")]
    max_bodies: Option<NonZeroU32>,
    /// The largest state of a scope, in bytes of JSON.
    #[arg(long, value_name = "BYTES")]
    max_state: Option<NonZeroU32>,
    /// The longest key of state, in characters.
    #[arg(long, value_name = "COUNT")]
    max_key_length: Option<NonZeroU32>,
    /// How deep JSON may be nested.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=200))]
    max_json_depth: Option<u16>,
    /// How many events a session may be created with.
    #[arg(long, value_name = "COUNT")]
    max_events: Option<NonZeroU32>,
    /// How many runs may be active at once.
    #[arg(long, value_name = "COUNT")]
    max_runs: Option<NonZeroU32>,
    /// How many of them may be of one user.
    #[arg(long, value_name = "COUNT")]
    max_user_runs: Option<NonZeroU32>,
    /// How many watches of sessions may be active at once.
    #[arg(long, value_name = "COUNT")]
    max_watches: Option<NonZeroU32>,
    /// How many of them may be of one user.
    #[arg(long, value_name = "COUNT")]
    max_user_watches: Option<NonZeroU32>,
    /// How many connections may be open at once.
    #[arg(long, value_name = "COUNT")]
    max_connections: Option<NonZeroU32>,
    /// How long a request may take, except runs and streams, in seconds.
    #[arg(long, value_name = "SECONDS")]
    request_time: Option<NonZeroU32>,
    /// How long a run may take, in seconds.
    #[arg(long, value_name = "SECONDS")]
    run_time: Option<NonZeroU32>,
}

impl LimitArgs {
    pub(super) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        let set = |limit: &mut usize, given: Option<NonZeroU32>| {
            *limit = given.map_or(*limit, |given| given.get() as usize);
        };
        set(&mut limits.body, self.max_body);
        set(&mut limits.bodies, self.max_bodies);
        set(&mut limits.state, self.max_state);
        set(&mut limits.key_length, self.max_key_length);
        limits.json_depth = self.max_json_depth.map_or(limits.json_depth, usize::from);
        set(&mut limits.events, self.max_events);
        set(&mut limits.runs, self.max_runs);
        set(&mut limits.user_runs, self.max_user_runs);
        set(&mut limits.watches, self.max_watches);
        set(&mut limits.user_watches, self.max_user_watches);
        set(&mut limits.connections, self.max_connections);
        let set_time = |limit: &mut Duration, given: Option<NonZeroU32>| {
            *limit = given.map_or(*limit, |given| Duration::from_secs(given.get().into()));
        };
        set_time(&mut limits.request_time, self.request_time);
        set_time(&mut limits.run_time, self.run_time);
        limits
    }
}
