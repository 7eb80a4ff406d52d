use serde::Serialize;
use sessile_state::State;

use super::LiveBuilder;
use crate::computed::Computed;
use crate::extract::Extractor;
use crate::pattern::Pattern;
use crate::phase::Phase;
use crate::tool::LiveTool;
use crate::watch::KeyWatch;

/// The tools of the session, and its reactions to state.
impl LiveBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: LiveTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a computed variable, `derived:<name>`: recomputed whenever one of its inputs changes,
    /// and removed if the result is `None`. Inputs may be computed variables too; `x` and
    /// `derived:x` are the same name.
    pub fn computed<T: Serialize>(
        mut self,
        name: impl AsRef<str>,
        inputs: impl IntoIterator<Item = impl AsRef<str>>,
        compute: impl Fn(&State) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        self.computed.push(Computed::new(name, inputs, compute));
        self
    }

    /// Adds a watch. Watches run in the order in which they were added.
    pub fn watch(mut self, watch: KeyWatch) -> Self {
        self.watches.push(watch);
        self
    }

    /// Adds a pattern in time.
    pub fn pattern(mut self, pattern: Pattern) -> Self {
        self.patterns.push(pattern);
        self
    }

    /// Adds a phase. The conversation begins in the first one by default.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phases.push(phase);
        self
    }

    /// The phase in which the conversation begins.
    pub fn initial_phase(mut self, name: impl Into<String>) -> Self {
        self.initial_phase = Some(name.into());
        self
    }

    /// Adds an extractor.
    pub fn extract(mut self, extractor: Extractor) -> Self {
        self.extractors.push(extractor);
        self
    }
}
