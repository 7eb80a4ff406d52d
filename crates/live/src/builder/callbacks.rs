use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sessile_state::State;

use super::LiveBuilder;
use crate::callbacks::{callback, callback2};
use crate::event::LiveEvent;
use crate::handle::LiveHandle;
use crate::tool_call::{LiveToolCall, ToolResponse};
use crate::transcript::LiveTurn;
use crate::wire::TokenUsage;

/// Synchronous callbacks, called where frames are read. They must not block: the next frame waits
/// for them.
impl LiveBuilder {
    /// A piece of the model's voice: 16-bit little-endian samples.
    pub fn on_audio(mut self, call: impl Fn(&Bytes) + Send + Sync + 'static) -> Self {
        self.fast.audio = Some(Box::new(call));
        self
    }

    /// A piece of the model's text.
    pub fn on_text(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.fast.text = Some(Box::new(call));
        self
    }

    /// All of the model's text in a turn.
    pub fn on_text_complete(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.fast.text_complete = Some(Box::new(call));
        self
    }

    /// A piece of the model's reasoning.
    pub fn on_thought(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.fast.thought = Some(Box::new(call));
        self
    }

    /// A piece of the transcript of the user's speech, and whether it ends an utterance.
    pub fn on_input_transcript(mut self, call: impl Fn(&str, bool) + Send + Sync + 'static) -> Self {
        self.fast.input_transcript = Some(Box::new(call));
        self
    }

    /// A piece of the transcript of the model's speech, and whether it ends an utterance.
    pub fn on_output_transcript(mut self, call: impl Fn(&str, bool) + Send + Sync + 'static) -> Self {
        self.fast.output_transcript = Some(Box::new(call));
        self
    }

    /// The user begins to speak.
    pub fn on_voice_start(mut self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.fast.voice_start = Some(Box::new(call));
        self
    }

    /// The user stops speaking.
    pub fn on_voice_end(mut self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.fast.voice_end = Some(Box::new(call));
        self
    }

    /// The server reported how many tokens were used.
    pub fn on_usage(mut self, call: impl Fn(&TokenUsage) + Send + Sync + 'static) -> Self {
        self.fast.usage = Some(Box::new(call));
        self
    }

    /// Every event, from the connection setup on. Can be called several times, to add callbacks.
    pub fn on_event(mut self, call: impl Fn(&LiveEvent) + Send + Sync + 'static) -> Self {
        self.fast.event.push(Box::new(call));
        self
    }
}

/// Asynchronous callbacks, called one after the other in the order of the wire. The session waits
/// for each, and then reacts to its changes of state.
impl LiveBuilder {
    /// The server accepted the setup, at the beginning and after each reconnect. `connect` returns
    /// after the first of these calls.
    pub fn on_connected<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(LiveHandle) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.connected = Some(callback(call));
        self
    }

    /// The session is over, and why; `None` if the application asked for it.
    pub fn on_disconnected<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Option<Arc<str>>) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.disconnected = Some(callback(call));
        self
    }

    /// The user interrupts the model.
    pub fn on_interrupted<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.interrupted = Some(callback(call));
        self
    }

    /// A turn has ended; extractors, watches and guards have seen it.
    pub fn on_turn_complete<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Arc<LiveTurn>, State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.turn_complete = Some(callback2(call));
        self
    }

    /// The server will close the connection, with the time that is left if it was sent. The session
    /// reconnects.
    pub fn on_go_away<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Option<Duration>) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.go_away = Some(callback(call));
        self
    }

    /// Something failed; the session continues if it can.
    pub fn on_error<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Arc<str>) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.error = Some(callback(call));
        self
    }

    /// An extractor returned a value, which is committed.
    pub fn on_extracted<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Arc<str>, Arc<Value>) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.extracted = Some(callback2(call));
        self
    }

    /// An extractor failed, and why.
    pub fn on_extraction_error<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        call: impl Fn(Arc<str>, Arc<str>) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.extraction_error = Some(callback2(call));
        self
    }

    /// The model calls tools that the phase allows. The tools of calls that are answered here do
    /// not run; `None` runs all.
    pub fn on_tool_call<Fut: Future<Output = Option<Vec<ToolResponse>>> + Send + 'static>(
        mut self,
        call: impl Fn(Vec<LiveToolCall>, State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.tool_call = Some(callback2(call));
        self
    }

    /// Tools have answered, and the answers are about to be sent. They may be changed; one that is
    /// left out is sent unchanged.
    pub fn before_tool_response<Fut: Future<Output = Vec<ToolResponse>> + Send + 'static>(
        mut self,
        call: impl Fn(Vec<ToolResponse>, State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.before_tool_response = Some(callback2(call));
        self
    }
}
