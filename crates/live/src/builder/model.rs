use std::time::Duration;

use sessile_state::State;

use super::LiveBuilder;
use crate::phase::Instruction;
use crate::wire::{ActivityHandling, Compression, MediaResolution, Modality, TurnCoverage, VoiceDetection};

/// What is asked of the model.
impl LiveBuilder {
    /// Which model; [`Live::MODEL`](crate::Live::MODEL) unless said otherwise.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.setup.model = model.into();
        self
    }

    /// Which voice, such as `Kore`.
    pub fn voice(mut self, voice: impl Into<String>) -> Self {
        self.setup.voice = Some(voice.into());
        self
    }

    /// What the model is told. `{key}` is replaced from state, again at the end of every turn.
    pub fn instruction(mut self, text: &str) -> Self {
        self.instruction = Some(Instruction::text(text));
        self
    }

    /// What the model is told, made from state, again at the end of every turn.
    pub fn instruction_with(mut self, make: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        self.instruction = Some(Instruction::computed(make));
        self
    }

    /// A message that lets the model speak first in a new conversation.
    pub fn greeting(mut self, text: impl Into<String>) -> Self {
        self.greeting = Some(text.into());
        self
    }

    /// The model writes in the place of speaking.
    pub fn text_only(mut self) -> Self {
        self.setup.modality = Modality::Text;
        self
    }

    /// How much chance plays a part, from 0 to 2.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.setup.temperature = Some(temperature);
        self
    }

    /// How much of the likely words are considered, from 0 to 1.
    pub fn top_p(mut self, top_p: f32) -> Self {
        self.setup.top_p = Some(top_p);
        self
    }

    /// How many likely words are considered.
    pub fn top_k(mut self, top_k: u32) -> Self {
        self.setup.top_k = Some(top_k);
        self
    }

    /// How long an answer may be.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.setup.max_output_tokens = Some(tokens);
        self
    }

    /// For answers that can be repeated.
    pub fn seed(mut self, seed: i32) -> Self {
        self.setup.seed = Some(seed);
        self
    }

    /// How many tokens the model may think with. Vertex AI does not know it; it is left out there.
    pub fn thinking(mut self, budget: u32) -> Self {
        self.setup.thinking_budget = Some(budget);
        self
    }

    /// Also send what the model thinks. Vertex AI does not know it; it is left out there.
    pub fn include_thoughts(mut self) -> Self {
        self.setup.include_thoughts = true;
        self
    }

    /// The model's voice follows the mood of the user's.
    pub fn affective_dialog(mut self) -> Self {
        self.setup.affective_dialog = true;
        self
    }

    /// The model decides itself whether something said was meant for it.
    pub fn proactive_audio(mut self) -> Self {
        self.setup.proactive_audio = true;
        self
    }

    /// The server says with every handle which messages it had heard by then
    /// (`session:last_consumed_client_index`). Vertex AI only.
    pub fn transparent_resumption(mut self) -> Self {
        self.setup.transparent_resumption = true;
        self
    }

    /// The server says when it hears the user begin and stop to speak. Vertex AI only.
    pub fn explicit_voice_signals(mut self) -> Self {
        self.setup.explicit_voice_signals = true;
        self
    }

    /// How finely pictures are looked at.
    pub fn media_resolution(mut self, resolution: MediaResolution) -> Self {
        self.setup.media_resolution = Some(resolution);
        self
    }

    /// Whether the words of the user and of the model are written down; both are, unless said
    /// otherwise.
    pub fn transcription(mut self, input: bool, output: bool) -> Self {
        (self.setup.input_transcription, self.setup.output_transcription) = (input, output);
        self
    }

    /// The rate of the user's voice, in samples a second.
    pub fn input_rate(mut self, samples: u32) -> Self {
        self.input_rate = samples;
        self
    }

    /// How the server hears that the user speaks.
    pub fn voice_detection(mut self, detection: VoiceDetection) -> Self {
        self.setup.voice_detection = Some(detection);
        self
    }

    /// What happens to the model's speech when the user begins to speak.
    pub fn activity_handling(mut self, handling: ActivityHandling) -> Self {
        self.setup.activity_handling = Some(handling);
        self
    }

    /// What of the user's input is part of a turn.
    pub fn turn_coverage(mut self, coverage: TurnCoverage) -> Self {
        self.setup.turn_coverage = Some(coverage);
        self
    }

    /// Whether the server is asked for handles with which the conversation goes on after a lost
    /// connection; it is, unless said otherwise.
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

    /// The model may run code at the server.
    pub fn code_execution(mut self) -> Self {
        self.setup.code_execution = true;
        self
    }

    /// The model may read pages whose addresses are mentioned.
    pub fn url_context(mut self) -> Self {
        self.setup.url_context = true;
        self
    }

    /// How long a frame may take to be sent before the connection counts as lost. 10 seconds,
    /// unless said otherwise.
    pub fn send_timeout(mut self, time: Duration) -> Self {
        self.timing.write = time;
        self
    }
}
