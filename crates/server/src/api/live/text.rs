//! A conversation with an agent whose model is not live: each message is a run.

use std::collections::VecDeque;

use sessile_agent::{RunConfig, RunRequest, Streaming};
use sessile_session::Event;

use super::request::LiveRequest;
use super::{Socket, Talk};
use crate::api::runs::{AuthorizedRun, Running};
use crate::api::state_change::check_lengths;
use crate::http::error::ApiError;

/// How many requests of a client are queued while the agent runs. When the queue is full, the
/// socket is not read, so that the client has to wait.
const MOST_WAITING: usize = 64;

impl Talk {
    /// Runs the agent once for each message, until the client closes.
    pub(super) async fn write(&self, socket: &mut Socket) -> Result<(), ApiError> {
        let mut waiting = VecDeque::new();
        loop {
            let request = match waiting.pop_front() {
                Some(request) => Some(request),
                None => socket.next().await?,
            };
            let Some(request) = request else { return Ok(()) };
            if request.blob.is_some() {
                let text = "the model of this application is not live: send content, not sound or pictures";
                return Err(ApiError::BadRequest(text.to_owned()));
            }
            if request.close {
                return self.set(&request).await;
            }
            if request.content.is_none() {
                self.set(&request).await?;
            } else if !self.run(socket, request, &mut waiting).await? {
                return Ok(());
            }
        }
    }

    /// Runs the agent; returns whether the client is still connected. Requests that it sends
    /// meanwhile are queued.
    async fn run(
        &self,
        socket: &mut Socket,
        request: LiveRequest,
        waiting: &mut VecDeque<LiveRequest>,
    ) -> Result<bool, ApiError> {
        let delta = request.delta();
        self.principal.writes(delta.iter().map(|(key, _)| key))?;
        check_lengths(&self.shared.http.limits, &delta)?;
        let config = RunConfig {
            streaming: Streaming::Pieces,
            max_llm_calls: self.shared.max_llm_calls,
            yield_user_message: true,
            ..RunConfig::default()
        };
        let runner = self.app.runner().clone();
        let author = runner.root().name().to_owned();
        let mut run = RunRequest::new(self.key.user(), self.key.id()).with_delta(delta).with_config(config);
        run.message = request.content;
        let authorized = AuthorizedRun {
            key: self.key.clone(),
            runner,
            request: run,
            detach: false,
            split_artifacts: false,
        };
        let mut running = Running::begin(&self.shared, authorized).await?;
        loop {
            tokio::select! {
                event = running.next() => match event {
                    None => break,
                    Some(Ok(event)) => if !socket.send(&event).await? {
                        return Ok(false);
                    },
                    Some(Err(error)) => return Err(error.into()),
                },
                // A client that is gone ends the run, which dropping it does.
                request = socket.next(), if waiting.len() < MOST_WAITING => match request? {
                    Some(request) if request.close => return Ok(false),
                    Some(request) => waiting.push_back(request),
                    None => return Ok(false),
                },
            }
        }
        let mut complete = Event::new(author);
        complete.invocation_id = running.invocation();
        complete.turn_complete = Some(true);
        complete.timestamp = Some(self.shared.http.clock.now());
        socket.send(&complete).await
    }
}
