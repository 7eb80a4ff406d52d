//! Live sessions over a WebSocket. They are not served yet; this is the place where they will be.

use crate::doc::{Answer, Doc};
use crate::error::ApiError;

pub(crate) const RUN_LIVE: Doc =
    Doc::new("runs", "Live sessions are not served yet.", Answer::Null).failing(&[404]);

pub(crate) async fn run_live() -> ApiError {
    ApiError::not_found("Live sessions are not served yet; use /run_sse")
}
