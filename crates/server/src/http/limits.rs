use std::time::Duration;

/// The limits of requests. A request that exceeds one gets an error that names the limit, and
/// changes nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// The longest body of a request, in bytes (413).
    pub body: usize,
    /// The bytes of the bodies of all requests that are being read or answered, together (503).
    pub bodies: usize,
    /// The largest state of a scope, in bytes of JSON (413). The store compares it with what the
    /// scope would hold after the change; a change that does not let the scope grow is made however
    /// large it is. Agents are held to it if their runner's service is, see
    /// [`Server::with_limits`](crate::Server::with_limits).
    pub state: usize,
    /// The longest key of state, in characters (422).
    pub key_length: usize,
    /// How deep JSON may be nested (422).
    pub json_depth: usize,
    /// How many events a session may be created with (422).
    pub events: usize,
    /// How many runs may be in progress at once (429).
    pub runs: usize,
    /// How many of them may be of one user (429).
    pub user_runs: usize,
    /// How many watches may be open at once (429).
    pub watches: usize,
    /// How many of them may be of one user (429).
    pub user_watches: usize,
    /// How many connections are open at once; others wait to be accepted.
    pub connections: usize,
    /// How long a request may take, except for runs and streams (503).
    pub request_time: Duration,
    /// How long a run may take (503).
    pub run_time: Duration,
    /// How long a client may take to send the head of a request.
    pub header_time: Duration,
    /// How long a client may take to send a body (408).
    pub body_time: Duration,
    /// How long a client may accept no bytes of a response; then its connection is closed.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            bodies: 256 * 1024 * 1024,
            state: 16 * 1024 * 1024,
            key_length: 1024,
            json_depth: 200,
            events: 10_000,
            runs: 256,
            user_runs: 64,
            watches: 4096,
            user_watches: 256,
            connections: 10_000,
            request_time: Duration::from_secs(60),
            run_time: Duration::from_secs(600),
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
        }
    }
}
