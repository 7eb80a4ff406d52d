//! Progress bars for commands that take long.

use std::borrow::Cow;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error; nothing is shown if that is not a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For work of unknown size: counts.
    pub(crate) fn counting(what: impl Into<Cow<'static, str>>) -> Self {
        Self(ProgressBar::new_spinner().with_message(what)).styled("{spinner} {human_pos} {msg} {per_sec}")
    }

    /// For work of a known number of bytes.
    pub(crate) fn of_bytes(total: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Self(ProgressBar::new(total).with_message(what))
            .styled("{bar:30} {bytes} of {total_bytes} {msg}, {eta} left")
    }

    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    fn styled(self, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("the templates in this file are right");
        self.0.set_style(style);
        self
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
