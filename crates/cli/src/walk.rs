//! Iterating over everything in a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use sessile_session::{Address, SessionError, SessionKey, Store};

use crate::stderr::{harmless, say};

/// How many addresses are read at a time.
const PAGE: usize = 1_000;

/// All addresses of a store, page by page.
pub(crate) struct Walk {
    store: Arc<dyn Store>,
    last: Option<Address>,
}

impl Walk {
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        Self { store, last: None }
    }

    /// The next page; empty at the end.
    pub(crate) async fn next(&mut self) -> Result<Vec<Address>, SessionError> {
        let page = self.store.addresses(self.last.as_ref(), PAGE).await?;
        self.last = page.last().cloned().or(self.last.take());
        Ok(page)
    }
}

/// The applications of a store, sorted. google-adk does not check names: one that is not valid here
/// cannot be listed, so it is skipped with a message.
pub(crate) async fn apps(store: Arc<dyn Store>) -> Result<BTreeSet<String>, SessionError> {
    let (mut apps, mut walk) = (BTreeSet::new(), Walk::over(store));
    loop {
        let page = walk.next().await?;
        if page.is_empty() {
            break;
        }
        for address in page {
            if !apps.contains(address.app()) {
                apps.insert(address.app().to_owned());
            }
        }
    }
    apps.retain(|app| match SessionKey::new(app, "user", "session") {
        Ok(_) => true,
        Err(error) => {
            let error = harmless(&error.to_string());
            say(format_args!("left out: {error}; its sessions can be shown and exported"));
            false
        }
    });
    Ok(apps)
}
