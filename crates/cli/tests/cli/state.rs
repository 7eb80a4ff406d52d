use serde_json::json;

use crate::support::{Folder, conversation};

#[test]
fn every_scope_is_read_set_and_removed() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let session = ["--user", "ada", "--session", "s1"];
    for (owner, key) in [(&session[..0], "app:k"), (&session[..2], "user:k"), (&session[..], "k")] {
        let with = |command: &[&'static str], rest: &[&'static str]| {
            let mut args = vec!["state"];
            args.extend(command.iter().copied().chain(["shop"]).chain(owner.iter().copied()));
            args.extend([key].iter().copied().chain(rest.iter().copied()));
            args
        };
        folder.run(&with(&["get"], &[])).fails(3, "has no key");
        folder.run(&with(&["rm"], &[])).fails(3, "has no key");
        folder.run(&with(&["set"], &[r#"{"a": [1.0, null]}"#])).ok();
        assert_eq!(folder.run(&with(&["get"], &[])).ok(), "{\"a\":[1.0,null]}\n");
        folder.run(&with(&["set"], &["plain words", "--text"])).ok();
        assert_eq!(folder.run(&with(&["get"], &["--raw"])).ok(), "plain words\n");
        folder.run(&with(&["rm"], &[])).ok();
        folder.run(&with(&["get"], &[])).fails(3, "has no key");
    }
    let shown = folder.run(&["sessions", "show", "shop", "ada", "s1", "--json"]).json_lines();
    assert_eq!(shown[0]["version"], 5); // each change of the session's own keys is an event
}

#[test]
fn everything_is_shown_without_a_key() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let get = |args: &[&str]| folder.run(&[&["state", "get", "shop", "--json"], args].concat()).json_lines();
    assert_eq!(get(&[]), [json!({"app:tax": 0.25})]);
    assert_eq!(get(&["--user", "ada"]), [json!({"app:tax": 0.25, "user:name": "Ada"})]);
    let all = json!({"app:tax": 0.25, "user:name": "Ada", "first": 1, "step": 2});
    assert_eq!(get(&["--user", "ada", "--session", "s1"]), [all]);
    assert!(folder.run(&["state", "get", "shop"]).ok().contains("app:tax  0.25"));
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.run(&["state", "set", "shop", "temp:x", "1"]).fails(2, "never stored");
    folder.run(&["state", "set", "shop", "user:x", "1"]).fails(2, "add --user");
    folder.run(&["state", "set", "shop", "x", "1"]).fails(2, "add --session");
    folder.run(&["state", "set", "shop", "--user", "ada", "x", "1"]).fails(2, "add --session");
    folder.run(&["state", "set", "shop", "app:x", "word"]).fails(2, "--text");
    folder.run(&["state", "set", "shop", "app:app:x", "1"]).fails(2, "twice");
    let no = ["state", "set", "shop", "--user", "ada", "--session", "no", "x", "1"];
    folder.run(&no).fails(3, "session shop/ada/no not found");
    let stale = ["state", "set", "shop", "--user", "ada", "--session", "s1", "x", "1", "--if-version", "1"];
    folder.run(&stale).fails(4, "has changed");
    folder.run_with(&["state", "set", "shop", "app:big", "-"], "12345678901234567890123\n").ok();
    assert_eq!(folder.run(&["state", "get", "shop", "app:big"]).ok(), "12345678901234567890123\n");
    let all =
        folder.run(&["state", "get", "shop", "--user", "ada", "--session", "s1", "--json"]).json_lines();
    assert!(all[0].get("x").is_none() && all[0].get("app:x").is_none());
}
