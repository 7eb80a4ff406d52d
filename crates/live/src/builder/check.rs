//! Checks the whole configuration before anything is connected.

use std::collections::BTreeSet;

use super::LiveBuilder;
use crate::extract::Trigger;
use crate::phase;
use crate::transport::Platform;
use crate::wire::Modality;

impl LiveBuilder {
    pub(super) fn check(&self, problems: &mut Vec<String>) {
        self.check_model(problems);
        self.check_times(problems);
        self.check_tools(problems);
        self.check_reactions(problems);
    }

    fn check_model(&self, problems: &mut Vec<String>) {
        let setup = &self.setup;
        let mut refuse = |wrong: bool, problem: &str| {
            if wrong {
                problems.push(problem.to_owned());
            }
        };
        refuse(setup.model.trim().is_empty(), "the model has no name");
        refuse(self.name.trim().is_empty(), "the agent has no name");
        refuse(
            self.name == "user",
            "the agent cannot be called \"user\": that is the author of what users say",
        );
        let within = |value: Option<f32>, high: f32| value.is_none_or(|value| (0.0..=high).contains(&value));
        refuse(!within(setup.temperature, 2.0), "the temperature must be from 0 to 2");
        refuse(!within(setup.top_p, 1.0), "top_p must be from 0 to 1");
        refuse(setup.top_k == Some(0), "top_k must be at least 1");
        refuse(setup.max_output_tokens == Some(0), "max_output_tokens must be at least 1");
        let writes = setup.modality == Modality::Text;
        refuse(writes && setup.voice.is_some(), "a voice has no effect with `text_only`");
        refuse(writes && setup.affective_dialog, "affective dialog has no effect with `text_only`");
        refuse(writes && setup.proactive_audio, "proactive audio has no effect with `text_only`");
        let shorter = setup.compression.is_none_or(|it| it.target_tokens < it.trigger_tokens);
        refuse(!shorter, "context compression must shorten: its target must be below its trigger");
        refuse(self.greeting.as_ref().is_some_and(|text| text.trim().is_empty()), "the greeting is empty");
        refuse(!(8_000..=48_000).contains(&self.input_rate), "the input rate must be from 8000 to 48000");
        let unheard = !setup.input_transcription && !self.extractors.is_empty();
        refuse(unheard, "extractors read what the user says: leave the transcription of the input on");
    }

    pub(super) fn check_platform(&self, platform: &Platform, problems: &mut Vec<String>) {
        let wishes = [
            ("transparent resumption", self.setup.transparent_resumption),
            ("explicit voice signals", self.setup.explicit_voice_signals),
        ];
        for (name, _) in wishes.iter().filter(|(_, wanted)| *wanted && !platform.knows_transparency()) {
            problems.push(format!("only Vertex AI supports {name}: leave it out, or connect to Vertex AI"));
        }
    }

    fn check_times(&self, problems: &mut Vec<String>) {
        let timing = &self.timing;
        let times = [
            ("the time to connect", timing.connect),
            ("the time to accept the setup", timing.setup),
            ("the keepalive", timing.keepalive),
            ("the time to send", timing.write),
        ];
        for (name, time) in times {
            if time.is_zero() {
                problems.push(format!("{name} must be above zero"));
            }
        }
        if timing.reconnect.first > timing.reconnect.longest {
            problems.push("the first pause of a reconnect must not be longer than the longest".to_owned());
        }
    }

    fn check_tools(&self, problems: &mut Vec<String>) {
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            let name = tool.name();
            let first = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            let rest = name.chars().all(|other| other.is_ascii_alphanumeric() || "_.-".contains(other));
            if !first || !rest || name.len() > 64 {
                problems.push(format!(
                    "the tool {name:?} needs a name of 1 to 64 letters, digits, `_`, `.` and `-` that begins with a letter or `_`"
                ));
            }
            if !names.insert(name) {
                problems.push(format!("two tools are called {name:?}"));
            }
            if tool.timeout.is_zero() {
                problems.push(format!("the timeout of the tool {name:?} must be above zero"));
            }
        }
        phase::check(&self.phases, self.initial_phase.as_deref(), &names, problems);
    }

    fn check_reactions(&self, problems: &mut Vec<String>) {
        if self.watches.iter().any(|watch| watch.key().is_empty()) {
            problems.push("a watch has no key".to_owned());
        }
        problems.extend(self.patterns.iter().filter_map(|pattern| pattern.problem()).map(str::to_owned));
        let mut names = BTreeSet::new();
        for extractor in &self.extractors {
            let name = &extractor.name;
            if name.trim().is_empty() {
                problems.push("an extractor has no name".to_owned());
            }
            if !names.insert(name) {
                problems.push(format!("two extractors are called {name:?}"));
            }
            if extractor.window == 0 {
                problems.push(format!("the extractor {name:?} must see at least one turn"));
            }
            if extractor.trigger == Trigger::Interval(0) {
                problems.push(format!("the extractor {name:?} needs an interval of at least one turn"));
            }
            if extractor.timeout.is_zero() {
                problems.push(format!("the timeout of the extractor {name:?} must be above zero"));
            }
        }
    }
}
