//! Two sample applications that need no files, no key and no network.

mod greeter;
mod shop;

use std::sync::Arc;

use sessile_agent::{Agent, LlmAgent, LlmAgentBuilder};
use sessile_model::Scripted;

use crate::app::LoadedApp;

/// The sample applications: `greeter` remembers names, `shop` has a cart.
pub fn samples() -> Vec<LoadedApp> {
    vec![sample("greeter", greeter::agent()), sample("shop", shop::agent())]
}

fn sample(name: &str, agent: LlmAgent) -> LoadedApp {
    LoadedApp {
        name: name.to_owned(),
        root: Arc::new(agent) as Arc<dyn Agent>,
        schema: None,
        language: "rust",
        files: Vec::new(),
    }
}

/// An agent on an embedded script.
fn scripted(name: &str, script: &str) -> LlmAgentBuilder {
    let model = Scripted::from_yaml(name, script).expect("the embedded script is tested");
    LlmAgent::builder(name).model(model.with_name(format!("scripted:{name}")))
}

fn built(builder: LlmAgentBuilder) -> LlmAgent {
    builder.build().expect("the sample is tested")
}
