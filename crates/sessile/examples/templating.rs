//! Instructions that know the state: a key, a key that may be absent, literal braces, and functions
//! that make the text.
//!
//! `cargo run -p sessile --example templating`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;

use serde_json::json;
use sessile::agent::{LlmAgentBuilder, ModelRequest};
use sessile::model::reply;
use sessile::{
    CallbackContext, CreateSession, LlmAgent, MemoryStore, ReadonlyContext, RunRequest, Runner,
    SessionService, inject_session_state,
};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let sessions = SessionService::new(MemoryStore::new());
    let new = CreateSession::new("app", "user1").with_id("session1");
    sessions
        .create(new.with_state([("topic", json!("friendship")), ("adjective", json!("dynamic"))]))
        .await?;

    // `{key}` is the value of the key.
    let story = LlmAgent::builder("StoryGenerator")
        .instruction("Write a short story about a cat, focusing on the theme: {topic}.");
    tell("key", story, &sessions).await?;

    // `{key?}` is nothing if the key is absent.
    let optional = LlmAgent::builder("optional").instruction("Theme: {topic?}. Mood: {mood?}.");
    tell("optional", optional, &sessions).await?;

    // Double braces are braces.
    let escaped = LlmAgent::builder("escaped").instruction("Write {{not a state variable}} about {topic}.");
    tell("escaped", escaped, &sessions).await?;

    // What a provider returns is not touched.
    let provider =
        LlmAgent::builder("template_helper_agent").instruction_provider(async |_: ReadonlyContext| {
            Ok("This is an instruction with {{literal_braces}} that will not be replaced.".to_owned())
        });
    tell("provider", provider, &sessions).await?;

    // Unless it asks for it.
    let injecting = LlmAgent::builder("dynamic_template_helper_agent").instruction_provider(
        async |ctx: ReadonlyContext| {
            let template = "This is a {adjective} instruction with {{literal_braces}}.";
            Ok(inject_session_state(template, &ctx).await?)
        },
    );
    tell("provider with injection", injecting, &sessions).await?;

    // A key that is missing is an error that says what to do; the model is not asked.
    let mistyped = LlmAgent::builder("mistyped").instruction("The theme is {topik}.");
    if let Err(error) = tell("mistyped", mistyped, &sessions).await {
        println!("mistyped: {error}");
    }
    Ok(())
}

/// Runs the agent once and prints what its model is told.
async fn tell(what: &'static str, agent: LlmAgentBuilder, sessions: &SessionService) -> Outcome {
    let agent = agent
        .model(model::gemini_or([reply("Once upon a time …")])?)
        .before_model(move |_: CallbackContext, request: ModelRequest| async move {
            let told = request.system_instruction.as_deref().unwrap_or_default();
            println!("{what}: {}", told.lines().next().unwrap_or_default());
            Ok(request.into())
        })
        .build()?;
    let runner = Runner::builder("app", agent, sessions.clone()).build()?;
    runner.run(RunRequest::new("user1", "session1").with_text("Begin.")).collect().await?;
    Ok(())
}
