//! Applications at work: the samples, and agents from files.

use std::fs;

use serde_json::{Value, json};
use sessile_agent::{RunRequest, Runner};
use sessile_config::{LoadedApp, load_app, samples};
use sessile_session::{Content, CreateSession, EventWindow, MemoryStore, SessionKey, SessionService};

struct Chat {
    runner: Runner,
    sessions: SessionService,
    app: String,
}

impl Chat {
    fn with(app: LoadedApp) -> Self {
        let sessions = SessionService::new(MemoryStore::new());
        let runner =
            Runner::builder(&app.name, app.root, sessions.clone()).build().expect("the agents fit together");
        Self { runner, sessions, app: app.name }
    }

    fn sample(name: &str) -> Self {
        Self::with(samples().into_iter().find(|app| app.name == name).expect("there is such a sample"))
    }

    /// Says something, and returns the last text of the answer.
    async fn say(&self, user: &str, session: &str, text: &str) -> String {
        let key = self.key(user, session);
        if self.sessions.get(&key, EventWindow::NONE).await.expect("memory does not fail").is_none() {
            let new = CreateSession::new(&self.app, user).with_id(session);
            self.sessions.create(new).await.expect("memory does not fail");
        }
        let mut events = self.runner.run(RunRequest::new(user, session).with_text(text));
        let mut said = String::new();
        while let Some(event) = events.next().await {
            let event = event.expect("the agent answers");
            let parts = event.content.iter().flat_map(Content::parts);
            let text: String = parts.filter_map(|part| part.text.as_deref()).collect();
            if !text.is_empty() {
                said = text;
            }
        }
        said
    }

    async fn state(&self, user: &str, session: &str) -> Value {
        let session = self.sessions.get(&self.key(user, session), EventWindow::NONE).await;
        let session = session.expect("memory does not fail").expect("there is such a session");
        session.state().iter().map(|(key, value)| (key.to_owned(), value.clone().into_value())).collect()
    }

    fn key(&self, user: &str, session: &str) -> SessionKey {
        SessionKey::new(&self.app, user, session).expect("the ids are good")
    }
}

#[tokio::test]
async fn the_greeter_knows_a_user_in_every_session_and_nobody_else() {
    let chat = Chat::sample("greeter");
    assert_eq!(chat.say("ada", "1", "Hello!").await, "Hello! We have not met. Tell me: my name is …");
    assert_eq!(
        chat.say("ada", "1", "My name is Ada Lovelace.").await,
        "Nice to meet you, Ada Lovelace! Start a new session and say hello: I will still know you."
    );
    assert_eq!(
        chat.say("ada", "2", "hi").await,
        "Hello Ada Lovelace! That is greeting number 1 in this session."
    );
    assert_eq!(chat.say("ada", "2", "Who am I?").await, "You are Ada Lovelace.");
    assert_eq!(chat.say("bob", "3", "who am i").await, "I do not know yet. Tell me: my name is …");
    assert_eq!(
        chat.state("ada", "2").await,
        json!({ "greetings": 1, "last_reply": "You are Ada Lovelace.", "user:name": "Ada Lovelace" })
    );
    assert_eq!(chat.say("ada", "1", "forget me").await, "Done. I no longer know who you are.");
    assert_eq!(chat.say("ada", "2", "who am i").await, "I do not know yet. Tell me: my name is …");
    assert!(chat.say("ada", "2", "what?").await.starts_with("I greet people"));
}

#[tokio::test]
async fn the_shop_keeps_a_cart_orders_and_sales_in_their_scopes() {
    let chat = Chat::sample("shop");
    assert_eq!(chat.say("ada", "1", "Add a book to my cart").await, "I added book. Your cart: book.");
    assert_eq!(
        chat.say("ada", "1", "add two apples").await,
        "I added two apples. Your cart: book, two apples."
    );
    assert_eq!(chat.say("ada", "1", "what is in my cart?").await, "In your cart: \"book\",\"two apples\".");
    assert_eq!(chat.say("ada", "2", "my cart?").await, "Your cart is empty.");
    assert_eq!(
        chat.say("ada", "1", "remove a pear").await,
        "That did not work: there is no pear in the cart."
    );
    assert_eq!(chat.say("ada", "1", "remove two apples").await, "I took out two apples. Your cart: book.");
    assert_eq!(chat.say("ada", "1", "checkout").await, "Ordered: book. That was your order number 1.");
    assert_eq!(chat.say("ada", "1", "checkout").await, "That did not work: the cart is empty.");
    chat.say("bob", "3", "add a book").await;
    chat.say("bob", "3", "pay").await;
    assert_eq!(chat.state("ada", "1").await, json!({ "app:sold:book": 2, "user:orders": 1 }));
    assert_eq!(chat.state("bob", "3").await, json!({ "app:sold:book": 2, "user:orders": 1 }));
}

#[tokio::test]
async fn a_cart_that_somebody_else_filled_with_nonsense_is_not_thrown_away() {
    let chat = Chat::sample("shop");
    let new = CreateSession::new("shop", "ada").with_id("1").with_state([("cart", json!("a text"))]);
    chat.sessions.create(new).await.unwrap();
    for text in ["add a book", "remove a book", "checkout"] {
        let answer = chat.say("ada", "1", text).await;
        assert!(answer.starts_with("That did not work: ") && answer.contains("cart"), "{answer}");
    }
    assert_eq!(chat.state("ada", "1").await, json!({ "cart": "a text" }));
}

#[tokio::test]
async fn agents_from_files_hand_on_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("relay");
    fs::create_dir(&app).unwrap();
    for (name, text) in [
        (
            "root_agent.yaml",
            "agent_class: SequentialAgent\nname: relay\nsub_agents: [{ config_path: one.yaml }, { config_path: two.yaml }]",
        ),
        ("one.yaml", "name: one\nmodel: scripted:one_script.yaml\noutput_key: word"),
        ("one_script.yaml", "rules: [{ when: { user: \"say {word}\" }, then: { reply: \"{word}\" } }]"),
        ("two.yaml", "name: two\nmodel: scripted:two_script.yaml\ninstruction: \"The word is {word}!\""),
        (
            "two_script.yaml",
            "rules: [{ when: { instruction: \"The word is {word}!\" }, then: { reply: \"{word}, {word}\" } }]",
        ),
    ] {
        fs::write(app.join(name), text).unwrap();
    }
    let chat = Chat::with(load_app(&app).unwrap());
    assert_eq!(chat.say("ada", "1", "say cheese").await, "cheese, cheese");
    assert_eq!(chat.state("ada", "1").await, json!({ "word": "cheese" }));
}

#[tokio::test]
async fn exit_loop_ends_a_loop() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("looper");
    fs::create_dir(&app).unwrap();
    for (name, text) in [
        (
            "root_agent.yaml",
            "agent_class: LoopAgent\nname: looper\nmax_iterations: 10\nsub_agents: [{ config_path: worker.yaml }]",
        ),
        ("worker.yaml", "name: worker\nmodel: scripted:script.yaml\ntools: [{ name: exit_loop }]"),
        (
            "script.yaml",
            "position: shared\nturns: [{ reply: one }, { reply: two }, { call: { name: exit_loop } }]",
        ),
    ] {
        fs::write(app.join(name), text).unwrap();
    }
    let chat = Chat::with(load_app(&app).unwrap());
    assert_eq!(chat.say("ada", "1", "go").await, "two");
}
