use serde_json::{Value, json};

use crate::support::{Folder, conversation};

/// The name that the operating system has for the user of the tests.
fn os_user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("`id` runs");
    String::from_utf8(output.stdout).expect("a name is a text").trim().to_owned()
}

#[test]
fn who_set_the_points_is_told_for_events_the_command_line_and_plain_sql() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let key = ["--user", "ada", "user:points"];
    let run = |command: &str, rest: &[&str]| {
        folder.run(&[&["state", command, "shop"][..], &key, rest].concat()).ok()
    };
    run("set", &["5"]);
    run("add", &["10"]);
    let file = rusqlite::Connection::open(folder.path().join("sessile.db")).expect("the file opens");
    file.execute_batch("UPDATE user_states SET state = json_set(state, '$.points', 1000)").expect("it runs");
    let table = run("history", &[]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("TIME") && lines[0].ends_with("WHO"), "{table}");
    assert!(lines[1].contains("15 -> 1000") && lines[1].ends_with("external"), "{table}");
    assert!(lines[2].contains("5 -> 15") && lines[2].ends_with(&os_user()), "{table}");
    assert!(lines[3].contains("(absent) -> 5") && lines[3].ends_with(&os_user()), "{table}");
    assert_eq!(lines.len(), 4);

    // After the session that did it is deleted the answer is still there.
    folder.run(&["sessions", "delete", "shop", "ada", "s1"]).ok();
    let name = folder.run(&["state", "history", "shop", "--user", "ada", "user:name", "--json"]).json_lines();
    assert_eq!(name[0]["by"]["session"], "s1");
    assert_eq!(name[0]["keys"], json!({"name": {"after": "Ada"}}));
    let page =
        folder.run(&["state", "history", "shop", "--user", "ada", "user:points", "--json", "--limit", "1"]);
    let page: Vec<Value> = page.json_lines();
    assert_eq!((page.len(), &page[0]["by"]), (1, &json!({"external": ""})));
    let before = page[0]["version"].to_string();
    let args = ["state", "history", "shop", "--user", "ada", "user:points", "--json", "--before", &before];
    assert_eq!(
        folder.run(&args).json_lines()[0]["keys"]["points"],
        json!({"before": 5, "after": 15, "ops": {"add": 10}})
    );
}

#[test]
fn only_shared_keys_have_a_history_of_their_own() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let own = ["state", "history", "shop", "--user", "ada", "--session", "s1", "step"];
    folder.run(&own).fails(2, "sessile sessions show");
    folder.run(&["state", "history", "shop", "user:x"]).fails(2, "add --user");
    assert_eq!(folder.run(&["state", "history", "shop", "app:none"]).ok().lines().count(), 1);
}
