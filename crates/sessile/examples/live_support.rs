//! A voice support desk: it finds out who calls and about which order, looks the order up while the
//! talk goes on, and notices when the caller loses patience. The other side is a local server that
//! plays the caller and the model.
//!
//! `cargo run -p sessile --example live_support`

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sessile::live::{
    KeyWatch, Live, LiveEvent, LiveTool, LiveToolContext, Pattern, Phase, Scheduling, Script, ScriptedServer,
};
use sessile::{EventWindow, MemoryStore, SessionKey, SessionService};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in desk().await? {
        println!("{line}");
    }
    Ok(())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Caller {
    /// The caller's name.
    name: String,
    /// The code word that was agreed on.
    code_word: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The number of the order.
    number: u32,
}

/// One call from beginning to end; what happened, line by line.
async fn desk() -> Result<Vec<String>, Box<dyn Error>> {
    let server = ScriptedServer::start([call()]).await?;
    let service = SessionService::new(MemoryStore::new());
    let key = SessionKey::new("support_desk", "ada", "call-1")?;
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = log.clone();

    let session = Live::builder()
        .name("desk")
        .instruction("You are the voice of a support desk. Be brief.")
        .session(service.clone(), key.clone())
        .tool(LiveTool::function(
            "verify_caller",
            "Checks who calls",
            async |caller: Caller, ctx: LiveToolContext| {
                ctx.state().try_set("user:name", &caller.name)?;
                Ok(json!({"verified": caller.code_word == "engine"}))
            },
        ))
        .tool(
            LiveTool::function(
                "find_order",
                "Looks an order up",
                async |order: Order, ctx: LiveToolContext| {
                    // A slow warehouse: it answers when the caller has lost patience, on a busy
                    // machine too.
                    while !ctx.state().contains("impatient") {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    ctx.state().try_set("order", json!({"number": order.number, "days_late": 9}))?;
                    Ok(json!({"status": "on its way"}))
                },
            )
            .background(Scheduling::WhenIdle),
        )
        // What a tool found out becomes state, and state leads the conversation.
        .before_tool_response(|responses, state| async move {
            for response in &responses {
                if response.name == "verify_caller" && response.response.get("verified") == Some(&json!(true))
                {
                    state.set("identity_verified", true);
                }
            }
            responses
        })
        .computed("days_late", ["order"], |state| state.get::<Value>("order")?.get("days_late").cloned())
        .computed("apology", ["days_late"], |state| {
            (state.get::<u32>("days_late")? > 7).then_some("a voucher")
        })
        .watch(KeyWatch::on("derived:apology").then(|change| async move {
            change.state.set("offer", change.new.map(|offer| offer.into_value()));
        }))
        .pattern(
            Pattern::rate(2, Duration::from_secs(60), |event| matches!(event, LiveEvent::Interrupted))
                .then(|state| async move { state.set("impatient", true) }),
        )
        .phase(
            Phase::new("who")
                .with_instruction("Find out who calls.")
                .with_tools(["verify_caller"])
                .with_transition("order", |state| state.get("identity_verified") == Some(true)),
        )
        .phase(
            Phase::new("order")
                .with_instruction("Help {user:name} with the order.")
                .with_transition("apology", |state| state.contains("offer")),
        )
        .phase(Phase::new("apology").with_instruction("Offer {offer} and say goodbye.").terminal())
        .on_event(move |event| {
            let line = match event {
                LiveEvent::Phase(change) => format!("phase: {}", change.to),
                LiveEvent::ToolAnswered { response, outcome } => {
                    format!("tool: {} {outcome:?}", response.name)
                }
                LiveEvent::TurnEnd(turn) => {
                    format!("turn {}: {} / {}", turn.number, turn.user(), turn.model())
                }
                _ => return,
            };
            lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(line);
        })
        .connect(server.transport())
        .await?;

    let reason = session.closed().await;
    let state = session.state();
    let mut lines = std::mem::take(&mut *log.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    lines.push(format!("the line was closed: {}", reason.as_deref().unwrap_or("by us")));
    lines.push(format!("impatient: {}", state.get::<bool>("impatient").unwrap_or(false)));
    let stored = service.get(&key, EventWindow::ALL).await?.ok_or("the call was stored")?;
    lines.push(format!(
        "stored events: {}, offer: {:?}",
        stored.events().len(),
        stored.state().get::<String>("offer")
    ));
    Ok(lines)
}

/// What the caller says and the model does.
fn call() -> Script {
    let heard = |text: &str| json!({"serverContent": {"inputTranscription": {"text": text}}});
    let said = |text: &str| json!({"serverContent": {"outputTranscription": {"text": text}}});
    let tool = |id: &str, name: &str, args: Value| json!({"toolCall": {"functionCalls": [{"id": id, "name": name, "args": args}]}});
    let interrupted = json!({"serverContent": {"interrupted": true}});
    let complete = json!({"serverContent": {"turnComplete": true}});
    Script::new()
        .send(heard("Ada here, "))
        .send(heard("the word is engine."))
        .send(tool("1", "verify_caller", json!({"name": "Ada", "code_word": "engine"})))
        .wait_for("toolResponse")
        .send(said("Hello Ada. Which order?"))
        .send(complete.clone())
        .send(heard("Number 7."))
        .send(tool("2", "find_order", json!({"number": 7})))
        .send(said("One moment, "))
        .send(interrupted.clone())
        .send(heard(" Quickly!"))
        .send(said("I am looking"))
        .send(interrupted)
        .wait_for("toolResponse")
        .send(said(": it is on its way."))
        .send(complete.clone())
        .wait_for("clientContent")
        .send(said("We are sorry; here is a voucher."))
        .send(complete)
        .close(1000, "goodbye")
}
