//! The asynchronous callbacks of an application.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use sessile_state::State;

use crate::handle::LiveHandle;
use crate::tool_call::{LiveToolCall, ToolResponse};
use crate::transcript::LiveTurn;

/// Called one after the other on the control lane, which waits for each.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) connected: Option<Callback<LiveHandle>>,
    pub(crate) disconnected: Option<Callback<Option<Arc<str>>>>,
    pub(crate) interrupted: Option<Callback<State>>,
    pub(crate) turn_complete: Option<Callback<(Arc<LiveTurn>, State)>>,
    pub(crate) go_away: Option<Callback<Option<Duration>>>,
    pub(crate) error: Option<Callback<Arc<str>>>,
    pub(crate) extracted: Option<Callback<(Arc<str>, Arc<Value>)>>,
    pub(crate) extraction_error: Option<Callback<(Arc<str>, Arc<str>)>>,
    pub(crate) tool_call: Option<OnToolCall>,
    pub(crate) before_tool_response: Option<BeforeToolResponse>,
}

type OnToolCall = Callback<(Vec<LiveToolCall>, State), Option<Vec<ToolResponse>>>;
type BeforeToolResponse = Callback<(Vec<ToolResponse>, State), Vec<ToolResponse>>;

/// An asynchronous function of one argument.
pub(crate) type Callback<A, R = ()> = Box<dyn Fn(A) -> BoxFuture<'static, R> + Send + Sync>;

/// Boxes a callback of one argument.
pub(crate) fn callback<A, R, Fut: Future<Output = R> + Send + 'static>(
    call: impl Fn(A) -> Fut + Send + Sync + 'static,
) -> Callback<A, R> {
    Box::new(move |argument| call(argument).boxed())
}

/// Boxes a callback of two arguments.
pub(crate) fn callback2<A, B, R, Fut: Future<Output = R> + Send + 'static>(
    call: impl Fn(A, B) -> Fut + Send + Sync + 'static,
) -> Callback<(A, B), R> {
    Box::new(move |(first, second)| call(first, second).boxed())
}
