use std::time::Duration;

use sessile_state::State;

use super::LiveBuilder;
use crate::phase::Instruction;
use crate::wire::{ActivityHandling, Compression, MediaResolution, Modality, TurnCoverage, VoiceDetection};

/// The configuration of the model.
impl LiveBuilder {
    /// The model; the default is [`Live::MODEL`](crate::Live::MODEL).
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.setup.model = model.into();
        self
    }

    /// The voice, such as `Kore`.
    pub fn voice(mut self, voice: impl Into<String>) -> Self {
        self.setup.voice = Some(voice.into());
        self
    }

    /// The instruction for the model. `{key}` is replaced from state, again at the end of every
    /// turn.
    pub fn instruction(mut self, text: &str) -> Self {
        self.instruction = Some(Instruction::text(text));
        self
    }

    /// The instruction for the model, computed from state, again at the end of every turn.
    pub fn instruction_with(mut self, make: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        self.instruction = Some(Instruction::computed(make));
        self
    }

    /// A message that lets the model speak first in a new conversation.
    pub fn greeting(mut self, text: impl Into<String>) -> Self {
        self.greeting = Some(text.into());
        self
    }

    /// Lets the model write instead of speak.
    pub fn text_only(mut self) -> Self {
        self.setup.modality = Modality::Text;
        self
    }

    /// The sampling temperature, from 0 to 2.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.setup.temperature = Some(temperature);
        self
    }

    /// The cumulative probability of the tokens that are considered (nucleus sampling), from 0 to
    /// 1.
    pub fn top_p(mut self, top_p: f32) -> Self {
        self.setup.top_p = Some(top_p);
        self
    }

    /// How many of the most likely tokens are considered.
    pub fn top_k(mut self, top_k: u32) -> Self {
        self.setup.top_k = Some(top_k);
        self
    }

    /// The longest answer, in tokens.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.setup.max_output_tokens = Some(tokens);
        self
    }

    /// The seed of the sampling, for reproducible answers.
    pub fn seed(mut self, seed: i32) -> Self {
        self.setup.seed = Some(seed);
        self
    }

    /// How many tokens the model may use for thinking. Ignored on Vertex AI, which does not support
    /// it.
    pub fn thinking(mut self, budget: u32) -> Self {
        self.setup.thinking_budget = Some(budget);
        self
    }

    /// Also sends the model's thoughts. Ignored on Vertex AI, which does not support it.
    pub fn include_thoughts(mut self) -> Self {
        self.setup.include_thoughts = true;
        self
    }

    /// Adapts the tone of the model's voice to that of the user.
    pub fn affective_dialog(mut self) -> Self {
        self.setup.affective_dialog = true;
        self
    }

    /// Lets the model ignore speech that is not meant for it.
    pub fn proactive_audio(mut self) -> Self {
        self.setup.proactive_audio = true;
        self
    }

    /// The server reports with every resume handle the last message that it had processed
    /// (`session:last_consumed_client_index`). Vertex AI only.
    pub fn transparent_resumption(mut self) -> Self {
        self.setup.transparent_resumption = true;
        self
    }

    /// The server reports when the user begins and stops to speak. Vertex AI only.
    pub fn explicit_voice_signals(mut self) -> Self {
        self.setup.explicit_voice_signals = true;
        self
    }

    /// The resolution at which the model sees pictures.
    pub fn media_resolution(mut self, resolution: MediaResolution) -> Self {
        self.setup.media_resolution = Some(resolution);
        self
    }

    /// Whether the speech of the user and of the model is transcribed; by default both are.
    pub fn transcription(mut self, input: bool, output: bool) -> Self {
        (self.setup.input_transcription, self.setup.output_transcription) = (input, output);
        self
    }

    /// The sample rate of the user's voice, in Hz.
    pub fn input_rate(mut self, samples: u32) -> Self {
        self.input_rate = samples;
        self
    }

    /// The server's detection of speech.
    pub fn voice_detection(mut self, detection: VoiceDetection) -> Self {
        self.setup.voice_detection = Some(detection);
        self
    }

    /// What happens to the model's speech when the user begins to speak.
    pub fn activity_handling(mut self, handling: ActivityHandling) -> Self {
        self.setup.activity_handling = Some(handling);
        self
    }

    /// Which input of the user is part of a turn.
    pub fn turn_coverage(mut self, coverage: TurnCoverage) -> Self {
        self.setup.turn_coverage = Some(coverage);
        self
    }

    /// Whether to ask the server for handles that resume the conversation on a new connection; on
    /// by default.
    pub fn session_resumption(mut self, wanted: bool) -> Self {
        self.setup.resumption = wanted;
        self
    }

    /// Lets the server shorten a conversation of more than `trigger_tokens` to `target_tokens`.
    pub fn context_compression(mut self, trigger_tokens: u32, target_tokens: u32) -> Self {
        self.setup.compression = Some(Compression { trigger_tokens, target_tokens });
        self
    }

    /// The model may search with Google.
    pub fn google_search(mut self) -> Self {
        self.setup.google_search = true;
        self
    }

    /// The model may run code on the server.
    pub fn code_execution(mut self) -> Self {
        self.setup.code_execution = true;
        self
    }

    /// The model may read web pages whose URLs are mentioned.
    pub fn url_context(mut self) -> Self {
        self.setup.url_context = true;
        self
    }

    /// How long sending a frame may take before the connection counts as lost. The default is 10
    /// seconds.
    pub fn send_timeout(mut self, time: Duration) -> Self {
        self.timing.write = time;
        self
    }
}
