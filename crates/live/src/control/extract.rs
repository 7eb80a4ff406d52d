//! Running extractors.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;

use super::ControlLane;
use crate::event::LiveEvent;
use crate::extract::{Extractor, Trigger};
use crate::transcript::LiveTurn;

impl ControlLane {
    /// Runs the extractors with a trigger concurrently, waits for all, and commits their values in
    /// the order in which they were declared.
    pub(super) async fn extract(&mut self, runs: impl Fn(Trigger) -> bool) {
        let chosen: Vec<_> =
            (0..self.extractors.len()).filter(|index| runs(self.extractors[*index].trigger)).collect();
        let mut found = Vec::new();
        for (index, turns) in chosen.into_iter().map(|index| (index, self.window(&self.extractors[index]))) {
            if self.extractors[index].wants(&turns) {
                found.push((index, turns));
            }
        }
        if found.is_empty() {
            return;
        }
        let results = join_all(found.iter().map(|(index, turns)| run(&self.extractors[*index], turns))).await;
        for ((index, _), result) in found.iter().zip(results) {
            let extractor = &self.extractors[*index];
            let name = extractor.name.clone();
            let committed = result
                .and_then(|value| extractor.commit(&value, &self.shared.state).map(|()| Arc::new(value)));
            match committed {
                Ok(value) => {
                    self.emit(LiveEvent::Extraction { name: name.clone(), value: value.clone() });
                    if let Some(callback) = &self.callbacks.extracted {
                        callback((name, value)).await;
                    }
                }
                Err(reason) => {
                    let reason: Arc<str> = reason.into();
                    self.emit(LiveEvent::ExtractionFailed { name: name.clone(), reason: reason.clone() });
                    if let Some(callback) = &self.callbacks.extraction_error {
                        callback((name, reason)).await;
                    }
                }
            }
        }
    }

    fn window(&self, extractor: &Extractor) -> Vec<Arc<LiveTurn>> {
        let transcript = self.shared.conversation.transcript();
        match extractor.trigger {
            Trigger::EveryTurn | Trigger::Interval(_) => transcript.last(extractor.window),
            _ => transcript.last_with_current(extractor.window),
        }
    }
}

async fn run(extractor: &Extractor, turns: &[Arc<LiveTurn>]) -> Result<Value, String> {
    match tokio::time::timeout(extractor.timeout, extractor.source.extract(turns)).await {
        Ok(found) => found.map_err(|error| error.to_string()),
        Err(_) => Err(format!("the extractor did not finish within {:?}", extractor.timeout)),
    }
}
