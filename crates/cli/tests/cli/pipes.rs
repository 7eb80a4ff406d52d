//! Readers that go away, and output that is not a terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use sessile_session::CreateSession;

use crate::support::{Folder, conversation};

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let folder = Folder::with_sessions(async |service| {
        for _ in 0..40 {
            let big = [("text", serde_json::Value::from("x".repeat(20_000)))];
            service.create(CreateSession::new("shop", "ada").with_state(big)).await.expect("it is created");
        }
    });
    for args in [&["sessions", "list", "--json"][..], &["sessions", "export"]] {
        let mut child = folder
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("a pipe"));
        reader.read_line(&mut first).expect("a line is read");
        drop(reader);
        let output = child.wait_with_output().expect("the command ends");
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_pipe_gets_no_colours_and_no_progress() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    for args in [&["sessions", "list"][..], &["sessions", "export"], &["db", "check"]] {
        let ran = folder.run(args);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(folder.run(&["completions", shell]).ok().contains("sessile"), "{shell}");
    }
    folder.run(&["completions", "csh"]).fails(2, "invalid value");
}
