use std::collections::BTreeMap;

/// The applications that are served, by name.
#[derive(Default)]
pub struct Apps {
    apps: BTreeMap<String, ()>,
}

impl Apps {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.apps.keys().map(String::as_str)
    }
}
