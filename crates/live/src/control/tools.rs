//! Tool calls: each is answered exactly once, also if the tool fails, times out or is cancelled.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{AbortHandle, Id, JoinSet};

use super::ControlLane;
use crate::event::LiveEvent;
use crate::extract::Trigger;
use crate::tool::{completed, overridden};
use crate::tool_call::{LiveToolCall, ToolOutcome, ToolResponse};
use crate::wire::{self, WirePhase};

/// The tools that run, and the messages whose calls they answer.
#[derive(Default)]
pub(crate) struct ToolRuns {
    tasks: JoinSet<Answer>,
    /// The call that a task answers: its batch, and its index in it.
    calls: HashMap<Id, (u64, usize)>,
    batches: HashMap<u64, Batch>,
    last_batch: u64,
}

type Answer = (ToolResponse, ToolOutcome);

/// The calls of one message, answered together. A background call is a batch of its own.
struct Batch {
    calls: Vec<Arc<LiveToolCall>>,
    answers: Vec<Option<Answer>>,
    tasks: Vec<Option<AbortHandle>>,
    background: bool,
    /// The number of the conversation that made the calls.
    conversation: u64,
}

/// A task that ended, with its answer or the reason why there is none.
pub(super) type Finished = (Id, Result<Answer, String>);

impl ToolRuns {
    /// The next task that ends; `None` if none runs.
    pub(super) async fn next(&mut self) -> Option<Finished> {
        Some(match self.tasks.join_next_with_id().await? {
            Ok((id, answer)) => (id, Ok(answer)),
            Err(error) if error.is_panic() => (error.id(), Err("the tool panicked".to_owned())),
            Err(error) => (error.id(), Err("the tool was cancelled".to_owned())),
        })
    }

    fn open(&mut self, calls: Vec<Arc<LiveToolCall>>, background: bool, conversation: u64) -> u64 {
        self.last_batch += 1;
        let count = calls.len();
        let (answers, tasks) = (vec![None; count], vec![None; count]);
        let batch = Batch { calls, answers, tasks, background, conversation };
        self.batches.insert(self.last_batch, batch);
        self.last_batch
    }

    fn answer(&mut self, batch: u64, index: usize, answer: Answer) {
        if let Some(batch) = self.batches.get_mut(&batch) {
            batch.answers[index] = Some(answer);
        }
    }

    /// Keeps the answer of a task that ended, unless it was cancelled and answered before; returns
    /// its batch.
    fn keep(&mut self, (task, result): Finished) -> Option<u64> {
        let (number, index) = self.calls.remove(&task)?;
        let batch = self.batches.get(&number).filter(|batch| batch.answers[index].is_none())?;
        let call = batch.calls[index].clone();
        let answer =
            result.unwrap_or_else(|reason| (ToolResponse::error(&call, reason), ToolOutcome::Failed));
        self.answer(number, index, answer);
        Some(number)
    }

    /// The answers of a batch whose calls are all answered.
    fn complete(&self, batch: u64) -> Option<Vec<Answer>> {
        self.batches.get(&batch)?.answers.iter().cloned().collect()
    }

    /// Cancels the running calls that `chosen` selects; returns their batches.
    fn stop(&mut self, reason: &str, chosen: impl Fn(&LiveToolCall) -> bool) -> Vec<u64> {
        let mut touched = Vec::new();
        for (number, batch) in &mut self.batches {
            for (index, call) in batch.calls.iter().enumerate() {
                let runs = batch.tasks[index].as_ref().filter(|task| !task.is_finished());
                let Some(task) = runs.filter(|_| batch.answers[index].is_none() && chosen(call)) else {
                    continue;
                };
                task.abort();
                batch.answers[index] = Some((ToolResponse::error(call, reason), ToolOutcome::Cancelled));
                touched.push(*number);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }
}

impl ControlLane {
    /// Answers the calls of one message: rejected by the phase, answered by the application, or by
    /// running the tools concurrently.
    pub(super) async fn tool_calls(&mut self, calls: Vec<LiveToolCall>, conversation: u64) {
        for call in &calls {
            self.shared.conversation.transcript().call(Arc::new(call.clone()));
        }
        let (allowed, rejected): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| {
            self.shared.conversation.phases().as_ref().is_none_or(|phases| phases.allows(&call.name))
        });
        let mut answered = Vec::new();
        for call in rejected {
            let reason = self.not_in_this_phase(&call);
            answered.push((ToolResponse::error(&call, reason), ToolOutcome::Rejected, call));
        }
        let mut problems = Vec::new();
        let mut overrides = match &self.callbacks.tool_call {
            Some(callback) if !allowed.is_empty() => {
                let answers =
                    callback((allowed.clone(), self.shared.state.clone())).await.unwrap_or_default();
                overridden(&allowed, answers, &mut problems)
            }
            _ => Default::default(),
        };
        let mut to_run = Vec::new();
        for (index, call) in allowed.into_iter().enumerate() {
            match (overrides.remove(&index), self.tools.get(&call.name)) {
                (Some(answer), _) => answered.push((answer, ToolOutcome::Overridden, call)),
                (None, Some(tool)) => to_run.push((tool.clone(), call)),
                (None, None) => {
                    let reason = format!("there is no tool {:?}", call.name);
                    answered.push((ToolResponse::error(&call, reason), ToolOutcome::Rejected, call));
                }
            }
        }
        let (background, foreground): (Vec<_>, Vec<_>) =
            to_run.into_iter().partition(|(tool, _)| tool.background.is_some());
        for (tool, call) in background {
            let call = Arc::new(call);
            self.note_background(&call, BackgroundNote::Started, &mut problems);
            let batch = self.runs.open(vec![call.clone()], true, conversation);
            self.start(batch, 0, tool, call);
        }
        let early = answered.iter().map(|(.., call)| Arc::new(call.clone()));
        let late = foreground.iter().map(|(_, call)| Arc::new(call.clone()));
        let batch = self.runs.open(early.chain(late).collect(), false, conversation);
        let early_count = answered.len();
        for (index, (response, outcome, _)) in answered.into_iter().enumerate() {
            self.runs.answer(batch, index, (response, outcome));
        }
        for (index, (tool, call)) in foreground.into_iter().enumerate() {
            self.start(batch, early_count + index, tool, Arc::new(call));
        }
        for problem in problems {
            self.problem(problem).await;
        }
        self.finish(batch).await;
    }

    fn start(&mut self, batch: u64, index: usize, tool: crate::LiveTool, call: Arc<LiveToolCall>) {
        let changes = self.store.as_ref().map(|store| Arc::downgrade(store.changes()));
        let task = self.runs.tasks.spawn(tool.run(call, self.shared.state.clone(), changes));
        self.runs.calls.insert(task.id(), (batch, index));
        if let Some(batch) = self.runs.batches.get_mut(&batch) {
            batch.tasks[index] = Some(task);
        }
    }

    /// A tool has ended.
    pub(super) async fn tool_finished(&mut self, finished: Finished) {
        if let Some(number) = self.runs.keep(finished) {
            self.finish(number).await;
        }
    }

    /// The server cancels calls.
    pub(super) async fn cancel(&mut self, ids: &[String]) {
        let touched = self.runs.stop("the call was cancelled", |call| ids.contains(&call.id));
        for batch in touched {
            self.finish(batch).await;
        }
    }

    /// Cancels all calls, because their answers can no longer be sent. Their outcomes are recorded.
    pub(crate) async fn abandon_calls(&mut self, reason: &str) {
        self.runs.stop(reason, |_| true);
        // Tasks that ended before they could be cancelled have a result.
        while let Some(finished) = self.runs.next().await {
            self.runs.keep(finished);
        }
        let mut numbers: Vec<u64> = self.runs.batches.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            if let (Some(answers), Some(batch)) =
                (self.runs.complete(number), self.runs.batches.remove(&number))
            {
                let mut problems = Vec::new();
                self.note_answers(&batch, answers, &mut problems);
                for problem in problems {
                    self.problem(problem).await;
                }
            }
        }
        self.runs.batches.clear();
        self.runs.calls.clear();
    }

    /// Sends the answers of a batch, once it is complete.
    async fn finish(&mut self, number: u64) {
        let Some(answers) = self.runs.complete(number) else { return };
        let (mut responses, outcomes): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        let mut problems = Vec::new();
        if let Some(callback) = self.callbacks.before_tool_response.as_ref().filter(|_| !responses.is_empty())
        {
            let changed = callback((responses.clone(), self.shared.state.clone())).await;
            responses = completed(responses, changed, &mut problems);
        }
        // Only now: if the callback panics, the calls can still be recorded.
        let Some(batch) = self.runs.batches.remove(&number).filter(|batch| !batch.calls.is_empty()) else {
            return;
        };
        let scheduling = self.shared.wire.platform.knows_background();
        self.send(wire::tool_responses(&responses, scheduling, batch.conversation)).await;
        let answers = responses.into_iter().zip(outcomes).collect();
        self.note_answers(&batch, answers, &mut problems);
        let waits = self.runs.batches.values().any(|batch| !batch.background);
        if !waits && self.shared.wire.phase() == WirePhase::ToolCallPending {
            self.shared.enter(WirePhase::Active);
        }
        for problem in problems {
            self.problem(problem).await;
        }
        self.extract(|trigger| trigger == Trigger::AfterToolCall).await;
        self.settle().await;
    }

    fn note_answers(&self, batch: &Batch, answers: Vec<Answer>, problems: &mut Vec<String>) {
        for ((response, outcome), call) in answers.into_iter().zip(&batch.calls) {
            if batch.background {
                self.note_background(call, BackgroundNote::Ended(&response, outcome), problems);
            }
            let response = Arc::new(response);
            self.shared.conversation.transcript().answer(response.clone());
            self.emit(LiveEvent::ToolAnswered { response, outcome });
        }
    }

    fn not_in_this_phase(&self, call: &LiveToolCall) -> String {
        let phases = self.shared.conversation.phases();
        let phase = phases.as_ref().and_then(|phases| phases.current()).unwrap_or_default();
        format!("the tool {:?} cannot be used in the phase {phase:?} of the conversation", call.name)
    }

    /// Writes the `bg:` keys of a background tool.
    fn note_background(&self, call: &LiveToolCall, note: BackgroundNote<'_>, problems: &mut Vec<String>) {
        let key = |what: &str| format!("bg:{}_{what}", call.name);
        let view = self.shared.state.with_delta_tracking();
        let written = match note {
            BackgroundNote::Started => view
                .try_set(key("task_id"), &call.id)
                .and_then(|()| view.try_set(key("running"), true))
                .and_then(|()| view.try_set(key("failed"), false)),
            BackgroundNote::Ended(response, ToolOutcome::Completed) => view
                .try_set(key("running"), false)
                .and_then(|()| view.try_set(key("failed"), false))
                .and_then(|()| view.try_set_raw(key("result"), response.response.clone()))
                .and_then(|()| view.try_remove(&key("error")).map(drop)),
            BackgroundNote::Ended(response, _) => view
                .try_set(key("running"), false)
                .and_then(|()| view.try_set(key("failed"), true))
                .and_then(|()| {
                    let error = response.response.get("error").cloned();
                    view.try_set_raw(key("error"), error.unwrap_or_else(|| response.response.clone()))
                }),
        };
        if let Err(error) = written.and_then(|()| view.try_commit()) {
            problems.push(format!("the progress of {:?} cannot be written to state: {error}", call.name));
        }
    }
}

enum BackgroundNote<'a> {
    Started,
    Ended(&'a ToolResponse, ToolOutcome),
}
