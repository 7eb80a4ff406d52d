//! The live session of gemini-adk-rs 4.0.0.

use std::sync::Arc;

use bytes::Bytes;
use gemini_adk_40::live::{
    ComputedRegistry, ComputedVar, EventCallbacks, LiveHandle, LiveSessionBuilder, Phase, PhaseMachine,
    Transition, WatchPredicate, Watcher, WatcherRegistry,
};
use gemini_genai_40::prelude::SessionConfig;
use serde_json::json;

use super::script::{Probe, Script};
use super::{Contestant, Kind, PHASES, VARIABLES, WATCHES, is_in};

impl Contestant for LiveHandle {
    async fn begin(kind: Kind, script: Script, probe: Arc<Probe>) -> Self {
        let mut callbacks = EventCallbacks::default();
        let live = LiveSessionBuilder::new(SessionConfig::new("no key is needed"));
        let live = match kind {
            Kind::Text => {
                callbacks.on_text = Some(Box::new(move |_| probe.called()));
                live
            }
            Kind::Voice => {
                callbacks.on_audio = Some(Box::new(move |_| probe.called()));
                live
            }
            Kind::Reactive => {
                callbacks.on_turn_complete = Some(Arc::new(move || {
                    let probe = probe.clone();
                    Box::pin(async move { probe.called() })
                }));
                live.computed(computed()).watchers(watchers()).phase_machine(phases())
            }
        };
        live.callbacks(callbacks).connect_with_transport(script).await.expect("memory is always there")
    }

    fn set(&self, key: &str, value: u64) {
        self.state().set(key, value).expect("a number can be stored");
    }

    /// Past the handle's own detection of speech, which Sessile leaves to the server.
    async fn speak(&self, samples: &Bytes) {
        self.writer().send_audio(samples.clone()).await.expect("the session is there");
    }
}

fn computed() -> ComputedRegistry {
    let mut registry = ComputedRegistry::new();
    for number in 0..VARIABLES {
        let input = format!("input{number}");
        let variable = ComputedVar {
            key: format!("double{number}"),
            dependencies: vec![input.clone()],
            compute: Arc::new(move |state| Some(json!(state.get::<u64>(&input)? * 2))),
        };
        registry.register(variable).expect("there is no circle");
    }
    registry
}

fn watchers() -> WatcherRegistry {
    let mut registry = WatcherRegistry::new();
    for number in 0..WATCHES {
        registry.register(Watcher {
            key: format!("derived:double{}", number % VARIABLES),
            predicate: WatchPredicate::Changed,
            action: Arc::new(|_, _, _, _| Box::pin(async {})),
            blocking: true,
        });
    }
    registry
}

fn phases() -> PhaseMachine {
    let mut machine = PhaseMachine::new("phase0");
    for number in 0..PHASES {
        let next = (number + 1) % PHASES;
        let mut phase = Phase::new(&format!("phase{number}"), &format!("Do what phase {number} is for."));
        phase.transitions.push(Transition {
            target: format!("phase{next}"),
            guard: Arc::new(move |state| is_in(state.get("input0"), next)),
            description: None,
        });
        machine.add_phase(phase);
    }
    machine
}
