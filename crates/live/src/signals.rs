//! The `session:` keys, which describe the connection and are kept up to date by the session.
//!
//! To add one: a method here that is called where the value changes, a line in the table of
//! `docs/live.md`, and a test in `tests/live/signals.rs` that sends the message and reads the key.

use std::sync::Mutex;
use std::time::Duration;

use sessile_state::{SharedValue, State};
use tokio::time::Instant;

use crate::lock::lock;
use crate::wire::{TokenUsage, WirePhase};

/// Writes the signals of one session. Counts continue after a reconnect.
#[derive(Debug)]
pub(crate) struct Signals {
    state: State,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    /// When the session was first connected: the start of its elapsed time.
    began: Option<Instant>,
    /// The last activity of either side.
    last_activity: Option<Instant>,
    interruptions: u64,
    errors: u64,
    video: bool,
    /// The transcript of the user's speech in this turn.
    input: String,
    /// The transcript of the model's speech in this turn.
    output: String,
}

/// How long the server lets a session with audio only last.
const AUDIO_BUDGET: Duration = Duration::from_secs(15 * 60);
/// How long the server lets a session with video last.
const VIDEO_BUDGET: Duration = Duration::from_secs(2 * 60);

impl Signals {
    pub(crate) fn new(state: State) -> Self {
        Self { state, facts: Mutex::default() }
    }

    pub(crate) fn connected(&self, at_ms: u64) {
        let (interruptions, errors, video) = self.with(|facts| {
            facts.began.get_or_insert_with(Instant::now);
            facts.last_activity = Some(Instant::now());
            (facts.interruptions, facts.errors, facts.video)
        });
        self.put("session:connected_at_ms", at_ms);
        self.put("session:interrupt_count", interruptions);
        self.put("session:error_count", errors);
        self.put("session:is_user_speaking", false);
        self.put("session:go_away_received", false);
        self.put("session:disconnected", false);
        self.put("session:session_type", if video { "audio_video" } else { "audio_only" });
        if !self.state.contains("session:resumable") {
            self.put("session:resumable", false);
        }
        self.flush();
    }

    pub(crate) fn disconnected(&self) {
        self.put("session:disconnected", true);
        self.put("session:is_user_speaking", false);
    }

    pub(crate) fn phase(&self, phase: WirePhase) {
        self.touch();
        self.put("session:phase", phase.to_string());
        self.put("session:is_model_speaking", phase == WirePhase::ModelSpeaking);
    }

    pub(crate) fn voice(&self, speaking: bool) {
        self.touch();
        self.put("session:is_user_speaking", speaking);
    }

    pub(crate) fn interrupted(&self) {
        self.touch();
        let count = self.with(|facts| {
            facts.interruptions += 1;
            facts.interruptions
        });
        self.put("session:interrupt_count", count);
    }

    pub(crate) fn error(&self, message: &str) {
        let count = self.with(|facts| {
            facts.errors += 1;
            facts.errors
        });
        self.put("session:last_error", message);
        self.put("session:error_count", count);
    }

    pub(crate) fn go_away(&self, time_left: Option<Duration>) {
        if let Some(time_left) = time_left {
            self.put("session:go_away_time_left_ms", milliseconds(time_left));
        }
        self.put("session:go_away_received", true);
    }

    pub(crate) fn resumption(&self, resumable: bool, last_consumed: Option<&str>) {
        if let Some(index) = last_consumed {
            self.put("session:last_consumed_client_index", index);
        }
        self.put("session:resumable", resumable);
    }

    pub(crate) fn usage(&self, usage: &TokenUsage) {
        let counts = [
            ("session:prompt_token_count", usage.prompt_token_count),
            ("session:response_token_count", usage.response_token_count),
            ("session:cached_content_token_count", usage.cached_content_token_count),
            ("session:thoughts_token_count", usage.thoughts_token_count),
            ("session:total_token_count", usage.total_token_count),
        ];
        for (key, count) in counts {
            if let Some(count) = count {
                self.put(key, count);
            }
        }
    }

    /// Appends to the transcript of the user; the key holds all of this turn.
    pub(crate) fn input(&self, piece: &str) {
        self.touch();
        let all = self.with(|facts| {
            facts.input.push_str(piece);
            facts.input.clone()
        });
        self.put("session:last_input_transcription", all);
    }

    /// Appends to the transcript of the model; the key holds all of this turn.
    pub(crate) fn output(&self, piece: &str) {
        self.touch();
        let all = self.with(|facts| {
            facts.output.push_str(piece);
            facts.output.clone()
        });
        self.put("session:last_output_transcription", all);
    }

    /// The next piece begins a new transcript.
    pub(crate) fn turn_completed(&self) {
        self.touch();
        self.with(|facts| {
            facts.input.clear();
            facts.output.clear();
        });
    }

    pub(crate) fn turn_count(&self, count: u32) {
        self.put("session:turn_count", count);
    }

    pub(crate) fn video_sent(&self) {
        let first = self.with(|facts| !std::mem::replace(&mut facts.video, true));
        if first {
            self.put("session:session_type", "audio_video");
        }
    }

    /// Notes activity of either side.
    pub(crate) fn touch(&self) {
        self.with(|facts| facts.last_activity = Some(Instant::now()));
    }

    /// Updates the keys that depend on the time.
    pub(crate) fn flush(&self) {
        let (silence, elapsed, video) = self.with(|facts| {
            (facts.last_activity.map(|at| at.elapsed()), facts.began.map(|at| at.elapsed()), facts.video)
        });
        if let Some(silence) = silence {
            self.put("session:silence_ms", milliseconds(silence));
        }
        if let Some(elapsed) = elapsed {
            let budget = if video { VIDEO_BUDGET } else { AUDIO_BUDGET };
            self.put("session:elapsed_ms", milliseconds(elapsed));
            self.put("session:remaining_budget_ms", milliseconds(budget.saturating_sub(elapsed)));
        }
    }

    fn with<R>(&self, change: impl FnOnce(&mut Facts) -> R) -> R {
        change(&mut lock(&self.facts))
    }

    fn put(&self, key: &str, value: impl Into<serde_json::Value>) {
        let value = SharedValue::from(value.into());
        if let Err(error) = self.state.try_set_raw(key, value) {
            tracing::error!(%error, "a signal cannot be written");
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
