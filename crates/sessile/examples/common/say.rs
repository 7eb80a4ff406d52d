//! A turn of a conversation, printed.

use sessile::agent::RunError;
use sessile::{RunRequest, Runner};

/// Runs the agent on a message and prints both.
pub(crate) async fn say(runner: &Runner, request: RunRequest) -> Result<(), RunError> {
    let mut events = runner.run(RunRequest { config: with_message(), ..request });
    while let Some(event) = events.next().await {
        let event = event?;
        if !event.text().is_empty() {
            println!("{}: {}", event.author, event.text());
        }
    }
    Ok(())
}

/// The user's message is in the stream too.
fn with_message() -> sessile::agent::RunConfig {
    sessile::agent::RunConfig { yield_user_message: true, ..Default::default() }
}
