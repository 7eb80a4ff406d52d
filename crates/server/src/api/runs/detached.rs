//! Detached runs, which continue without their client.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream::StreamExt;
use serde_json::json;

use super::running::Running;
use super::stream::frames;
use crate::api::run_log::RunLog;
use crate::api::shared::Shared;

/// Continues a run in a task of its own, which writes its frames to a log.
pub(super) fn detach(running: Running, split: bool, shared: &Shared) -> Arc<RunLog> {
    let (log, writer) = RunLog::new(running.key().clone(), running.invocation());
    shared.runs.remember(log.clone());
    let (frames, shared) = (frames(running, split, shared.clone()), shared.clone());
    tokio::spawn(async move {
        let mut frames = std::pin::pin!(frames);
        while let Some(frame) = frames.next().await {
            writer.add(frame);
        }
        drop(writer);
        shared.runs.forget();
    });
    log
}

/// The response to a client that does not wait for the run: where to follow it.
pub(super) fn accepted(log: &RunLog) -> impl IntoResponse + use<> {
    let body = axum::Json(json!({ "sessionId": log.key.id(), "invocationId": log.invocation }));
    (StatusCode::ACCEPTED, [(header::LOCATION, log.location())], body)
}
