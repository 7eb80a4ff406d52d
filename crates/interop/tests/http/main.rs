//! The same requests to Sessile's server and to google-adk's own, which runs for real, in Python.
//!
//! Answers must be equal in status and body, once ids and times that each server makes are taken
//! out and the differences that Sessile wants are allowed for (`answer.rs` lists them). To compare
//! one more request, add it to `fixed.rs`; to let it take part in random sequences, give it a
//! `Call` in `call.rs`.

mod answer;
mod browser;
mod call;
mod fixed;
mod ours;
mod python_service;
mod reference;
mod schemathesis;
mod sequences;
mod web_ui;

use std::sync::OnceLock;

use ours::Ours;
use reference::Reference;

/// Both servers, with empty stores.
pub(crate) struct Both {
    reference: Reference,
    ours: Ours,
    client: reqwest::Client,
}

impl Both {
    pub(crate) async fn start() -> Self {
        let client = client();
        let (reference, ours) = (Reference::start(&client).await, Ours::start().await);
        Self { reference, ours, client }
    }

    /// Sends the call to both; their answers, the reference's first.
    pub(crate) async fn send(&self, call: &call::Call) -> (answer::Answer, answer::Answer) {
        let request = call.request();
        (
            request.send(&self.client, self.reference.address()).await.with_wanted_differences(call),
            request.send(&self.client, self.ours.address()).await,
        )
    }
}

/// A client that speaks to this machine only.
pub(crate) fn client() -> reqwest::Client {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .expect("no other provider is installed in this process");
    });
    reqwest::Client::builder().no_proxy().build().expect("a plain client is built")
}
