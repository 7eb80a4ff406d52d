//! The live session of Sessile.

use std::sync::Arc;

use bytes::Bytes;
use sessile_live::{KeyWatch, Live, LiveHandle, Phase};
use tokio::sync::Mutex;

use super::script::{Probe, Script, Waiting};
use super::{Contestant, Kind, PHASES, VARIABLES, WATCHES, is_in};

impl Contestant for LiveHandle {
    async fn begin(kind: Kind, script: Script, probe: Arc<Probe>) -> Self {
        let live = Live::builder();
        let live = match kind {
            Kind::Text => live.on_text(move |_| probe.called()),
            Kind::Voice => live.on_audio(move |_| probe.called()),
            Kind::Reactive => {
                let live = (0..VARIABLES).fold(live, |live, number| {
                    let input = format!("input{number}");
                    live.computed(format!("double{number}"), [&input.clone()], move |state| {
                        Some(state.get::<u64>(&input)? * 2)
                    })
                });
                let live = (0..WATCHES).fold(live, |live, number| {
                    live.watch(
                        KeyWatch::on(format!("derived:double{}", number % VARIABLES)).then(|_| async {}),
                    )
                });
                let live = (0..PHASES).fold(live, |live, number| {
                    let next = (number + 1) % PHASES;
                    live.phase(
                        Phase::new(format!("phase{number}"))
                            .with_instruction(&format!("Do what phase {number} is for."))
                            .with_transition(format!("phase{next}"), move |state| {
                                is_in(state.get("input0"), next)
                            }),
                    )
                });
                live.on_turn_complete(move |_, _| {
                    let probe = probe.clone();
                    async move { probe.called() }
                })
            }
        };
        live.connect(Waiting(Mutex::new(Some(script)))).await.expect("memory is always there")
    }

    fn set(&self, key: &str, value: u64) {
        self.state().set(key, value);
    }

    async fn speak(&self, samples: &Bytes) {
        self.send_audio(samples).await.expect("the session is there");
    }
}
