//! The first message of every connection.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sessile_agent::FunctionDeclaration;

use crate::transport::Platform;

/// The configuration of the model, as the builder collected it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setup {
    pub(crate) model: String,
    pub(crate) modality: Modality,
    pub(crate) voice: Option<String>,
    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<u32>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) seed: Option<i32>,
    pub(crate) thinking_budget: Option<u32>,
    pub(crate) include_thoughts: bool,
    pub(crate) affective_dialog: bool,
    pub(crate) proactive_audio: bool,
    pub(crate) media_resolution: Option<MediaResolution>,
    pub(crate) input_transcription: bool,
    pub(crate) output_transcription: bool,
    pub(crate) voice_detection: Option<VoiceDetection>,
    pub(crate) activity_handling: Option<ActivityHandling>,
    pub(crate) turn_coverage: Option<TurnCoverage>,
    pub(crate) resumption: bool,
    pub(crate) transparent_resumption: bool,
    pub(crate) explicit_voice_signals: bool,
    pub(crate) compression: Option<Compression>,
    pub(crate) google_search: bool,
    pub(crate) code_execution: bool,
    pub(crate) url_context: bool,
}

/// When the server shortens the conversation, and to what length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compression {
    pub(crate) trigger_tokens: u32,
    pub(crate) target_tokens: u32,
}

/// The parts of the setup that differ from connection to connection.
#[derive(Debug)]
pub(crate) struct SetupFacts<'a> {
    pub(crate) platform: &'a Platform,
    pub(crate) instruction: Option<&'a str>,
    pub(crate) tools: &'a [(FunctionDeclaration, bool)],
    pub(crate) resume: Option<&'a str>,
}

impl Setup {
    /// The frame.
    pub(crate) fn frame(&self, facts: &SetupFacts<'_>) -> String {
        let mut setup = Map::new();
        setup.insert("model".into(), facts.platform.model_path(&self.model).into());
        setup.insert("generationConfig".into(), self.generation(facts.platform).into());
        if let Some(text) = facts.instruction {
            setup.insert("systemInstruction".into(), json!({"parts": [{"text": text}]}));
        }
        let tools = self.tools(facts);
        if !tools.is_empty() {
            setup.insert("tools".into(), tools.into());
        }
        if self.input_transcription {
            setup.insert("inputAudioTranscription".into(), json!({}));
        }
        if self.output_transcription {
            setup.insert("outputAudioTranscription".into(), json!({}));
        }
        let realtime = self.realtime();
        if !realtime.is_empty() {
            setup.insert("realtimeInputConfig".into(), realtime.into());
        }
        let mut resumption = Map::new();
        if let Some(handle) = facts.resume {
            resumption.insert("handle".into(), handle.into());
        }
        if self.transparent_resumption {
            resumption.insert("transparent".into(), true.into());
        }
        if self.resumption || !resumption.is_empty() {
            setup.insert("sessionResumption".into(), resumption.into());
        }
        if self.explicit_voice_signals {
            setup.insert("explicitVadSignal".into(), true.into());
        }
        if let Some(compression) = self.compression {
            let window = json!({"targetTokens": compression.target_tokens});
            let value = json!({"slidingWindow": window, "triggerTokens": compression.trigger_tokens});
            setup.insert("contextWindowCompression".into(), value);
        }
        if self.proactive_audio {
            setup.insert("proactivity".into(), json!({"proactiveAudio": true}));
        }
        json!({"setup": setup}).to_string()
    }

    fn generation(&self, platform: &Platform) -> Map<String, Value> {
        let mut config = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                config.insert(name.into(), value);
            }
        };
        put("responseModalities", Some(json!([self.modality.name()])));
        put("temperature", self.temperature.map(short));
        put("topP", self.top_p.map(short));
        put("topK", self.top_k.map(Value::from));
        put("maxOutputTokens", self.max_output_tokens.map(Value::from));
        put("seed", self.seed.map(Value::from));
        let voice = |voice| json!({"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}});
        put("speechConfig", self.voice.as_ref().map(voice));
        if platform.knows_thinking() && (self.thinking_budget.is_some() || self.include_thoughts) {
            let mut thinking = Map::new();
            if let Some(budget) = self.thinking_budget {
                thinking.insert("thinkingBudget".into(), budget.into());
            }
            if self.include_thoughts {
                thinking.insert("includeThoughts".into(), true.into());
            }
            put("thinkingConfig", Some(thinking.into()));
        }
        put("enableAffectiveDialog", self.affective_dialog.then_some(Value::Bool(true)));
        put("mediaResolution", self.media_resolution.map(|resolution| resolution.name().into()));
        config
    }

    fn tools(&self, facts: &SetupFacts<'_>) -> Vec<Value> {
        let declaration = |(tool, background): &(FunctionDeclaration, bool)| {
            let mut value = json!({"name": tool.name, "description": tool.description});
            if let Some(parameters) = &tool.parameters {
                value["parametersJsonSchema"] = Value::clone(parameters);
            }
            if *background && facts.platform.knows_background() {
                value["behavior"] = "NON_BLOCKING".into();
            }
            value
        };
        let functions: Vec<_> = facts.tools.iter().map(declaration).collect();
        let mut tools = Vec::new();
        if !functions.is_empty() {
            tools.push(json!({"functionDeclarations": functions}));
        }
        let built_in = [
            ("googleSearch", self.google_search),
            ("codeExecution", self.code_execution),
            ("urlContext", self.url_context),
        ];
        tools.extend(built_in.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| json!({*name: {}})));
        tools
    }

    fn realtime(&self) -> Map<String, Value> {
        let mut config = Map::new();
        if let Some(detection) = &self.voice_detection {
            config.insert("automaticActivityDetection".into(), detection.value());
        }
        if let Some(handling) = self.activity_handling {
            config.insert("activityHandling".into(), handling.name().into());
        }
        if let Some(coverage) = self.turn_coverage {
            config.insert("turnCoverage".into(), coverage.name().into());
        }
        config
    }
}

/// The shortest decimal form of a number: `0.7`, not `0.699999988079071`.
fn short(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Gives each value of an enum its name on the wire.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $wire:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_doc])* $value),+
        }

        impl $name {
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $wire),+
                }
            }
        }
    };
}

named! {
    /// The kind of the model's answers.
    Modality {
        /// Speech.
        Audio = "AUDIO",
        /// Text.
        Text = "TEXT",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro writes the enum, and only this one has a default")]
impl Default for Modality {
    fn default() -> Self {
        Self::Audio
    }
}

named! {
    /// The resolution at which the model sees pictures.
    MediaResolution {
        /// Few tokens for each picture.
        Low = "MEDIA_RESOLUTION_LOW",
        /// In between.
        Medium = "MEDIA_RESOLUTION_MEDIUM",
        /// Many tokens for each picture.
        High = "MEDIA_RESOLUTION_HIGH",
    }
}

named! {
    /// What happens to the model's speech when the user begins to speak.
    ActivityHandling {
        /// It stops.
        Interrupts = "START_OF_ACTIVITY_INTERRUPTS",
        /// It goes on.
        NoInterruption = "NO_INTERRUPTION",
    }
}

named! {
    /// Which input of the user is part of a turn.
    TurnCoverage {
        /// Only speech.
        OnlyActivity = "TURN_INCLUDES_ONLY_ACTIVITY",
        /// Also the input between speech.
        AllInput = "TURN_INCLUDES_ALL_INPUT",
    }
}

/// How sensitive the server's detection of the start or end of speech is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sensitivity {
    /// Speech is detected sooner.
    High,
    /// Speech is detected later.
    Low,
}

/// The server's detection of speech.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VoiceDetection {
    /// Whether it is off, and the client signals speech with `activity_start` and `activity_end`.
    pub disabled: bool,
    /// The sensitivity for the start of speech.
    pub start: Option<Sensitivity>,
    /// The sensitivity for the end of speech.
    pub end: Option<Sensitivity>,
    /// How long there must be speech before it counts.
    pub prefix_padding: Option<Duration>,
    /// How long there must be silence before speech has ended.
    pub silence: Option<Duration>,
}

impl VoiceDetection {
    fn value(&self) -> Value {
        let mut value = Map::new();
        let mut put = |name: &str, field: Option<Value>| {
            if let Some(field) = field {
                value.insert(name.into(), field);
            }
        };
        let sensitivity = |prefix: &str, sensitivity: Option<Sensitivity>| {
            sensitivity.map(|sensitivity| match sensitivity {
                Sensitivity::High => Value::from(format!("{prefix}_SENSITIVITY_HIGH")),
                Sensitivity::Low => Value::from(format!("{prefix}_SENSITIVITY_LOW")),
            })
        };
        let milliseconds = |time: Option<Duration>| time.map(|time| json!(time.as_millis()));
        put("disabled", Some(self.disabled.into()));
        put("startOfSpeechSensitivity", sensitivity("START", self.start));
        put("endOfSpeechSensitivity", sensitivity("END", self.end));
        put("prefixPaddingMs", milliseconds(self.prefix_padding));
        put("silenceDurationMs", milliseconds(self.silence));
        value.into()
    }
}
