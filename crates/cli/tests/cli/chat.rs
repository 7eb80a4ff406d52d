use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::{Folder, kill};

#[test]
fn messages_from_a_pipe_are_answered_and_state_is_shown_as_it_changes() {
    let folder = Folder::new();
    let ran = folder.run_with(&["chat", "greeter", "--user", "ada", "--session", "s1"], "my name is Ada\n");
    assert!(ran.stderr.contains("+ user:name = \"Ada\""), "{ran:?}");
    assert!(ran.stderr.contains("calls remember_name"), "{ran:?}");
    let said = ran.ok();
    assert!(said.starts_with("Nice to meet you, Ada!") && said.ends_with('\n'), "{said:?}");

    let later = folder.run_with(&["chat", "greeter", "--user", "ada", "--session", "s2"], "Who am I?\n");
    assert!(later.ok().contains("You are Ada"));
    let other = folder.run_with(&["chat", "greeter", "--user", "bob"], "who am i\n\n");
    assert!(other.ok().contains("I do not know yet"));
    let state = folder.run(&["state", "get", "greeter", "--user", "ada", "user:name"]).ok();
    assert_eq!(state, "\"Ada\"\n");
}

#[test]
fn a_session_is_gone_on_with() {
    let folder = Folder::new();
    let chat = ["chat", "shop", "--session", "s1"];
    folder.run_with(&chat, "add a lamp\nadd a bicycle\n").ok();
    let ran = folder.run_with(&chat, "what is in my cart\n");
    assert!(ran.stderr.contains("continuing session shop/user/s1"), "{ran:?}");
    assert_eq!(ran.ok(), "In your cart: \"lamp\",\"bicycle\".\n");
    let shown = folder.run(&["sessions", "list", "shop", "--json"]).json_lines();
    assert_eq!(shown[0]["state"]["cart"], json!(["lamp", "bicycle"]));
    folder.run(&["db", "check"]).ok();
}

#[test]
fn what_cannot_be_talked_to_is_named() {
    let folder = Folder::new();
    folder.run_with(&["chat", "nobody"], "hi\n").fails(3, "there are: greeter, shop");
    folder.run_with(&["chat", "greeter", "--session", &"x".repeat(200)], "hi\n").fails(2, "128 characters");
}

/// A conversation whose messages are typed one by one.
struct Typing {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Typing {
    fn to(folder: &Folder, args: &[&str]) -> Self {
        let mut command = folder.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdout }
    }

    /// Interrupts until the command ends: the first may still come in the turn that was just
    /// answered.
    fn interrupt(&mut self) -> Option<i32> {
        loop {
            if let Some(status) = self.child.try_wait().expect("the command is looked at") {
                return status.code();
            }
            kill("INT", self.child.id());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn say(&mut self, line: &str) -> String {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("the line is taken");
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).expect("an answer comes");
        answer
    }
}

#[test]
fn an_interrupt_between_turns_ends_the_conversation_and_keeps_it() {
    let folder = Folder::new();
    let mut typing = Typing::to(&folder, &["chat", "shop", "--session", "s1"]);
    assert!(typing.say("add a lamp").starts_with("I added lamp."));
    assert_eq!(typing.interrupt(), Some(130));
    let cart = folder.run(&["state", "get", "shop", "--user", "user", "--session", "s1", "cart"]).ok();
    assert_eq!(cart, "[\"lamp\"]\n");
}

#[test]
fn a_kill_loses_nothing_that_was_answered() {
    let folder = Folder::new();
    let mut typing = Typing::to(&folder, &["chat", "shop", "--session", "s1"]);
    for n in 0..5 {
        typing.say(&format!("add thing{n}"));
    }
    kill("KILL", typing.child.id());
    typing.child.wait().expect("the command ends");
    let cart = folder.run(&["state", "get", "shop", "--user", "user", "--session", "s1", "cart"]).ok();
    assert_eq!(cart, "[\"thing0\",\"thing1\",\"thing2\",\"thing3\",\"thing4\"]\n");
    folder.run(&["db", "check"]).ok();
}

#[test]
fn an_interrupt_cancels_the_turn_and_the_session_goes_on() {
    let folder = Folder::new();
    let agent = folder.path().join("agents/slow");
    std::fs::create_dir_all(&agent).expect("the folder is made");
    let script = "rules:\n  - when: { user: wait }\n    then: { reply: never, delay_ms: 600000 }\n  - then: { reply: 'yes: {user}' }\n";
    std::fs::write(agent.join("script.yaml"), script).expect("the file is written");
    let root = "name: slow\nmodel: scripted:script.yaml\n";
    std::fs::write(agent.join("root_agent.yaml"), root).expect("the file is written");

    let args = ["chat", "slow", "--agents", "agents", "--session", "s1"];
    let mut typing = Typing::to(&folder, &args);
    assert_eq!(typing.say("first"), "yes: first\n");
    writeln!(typing.child.stdin.as_mut().expect("a pipe"), "wait").expect("the line is taken");
    // The message is committed before the model is asked.
    let events = || {
        let listed = folder.run(&["sessions", "list", "--json"]).json_lines();
        listed[0]["version"].as_u64().expect("a version")
    };
    while events() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill("INT", typing.child.id());
    assert_eq!(typing.say("second"), "yes: second\n");
    assert_eq!(typing.interrupt(), Some(130));
    let shown = folder.run(&["sessions", "show", "slow", "user", "s1"]).ok();
    assert!(!shown.contains("never") && shown.contains("yes: second"), "{shown}");
}
