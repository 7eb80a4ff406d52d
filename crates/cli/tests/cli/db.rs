use serde_json::json;
use sessile_session::CreateSession;

use crate::support::{Folder, conversation};

#[test]
fn a_sound_database_is_found_sound() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let report = folder.run(&["db", "check", "--json"]).json_lines().remove(0);
    let counts = ["apps", "users", "sessions", "events"].map(|name| report[name].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(1), json!(2)]);
    assert_eq!((&report["layout"], &report["problems"]), (&json!("SqliteSessionService"), &json!([])));
    assert!(folder.run(&["db", "check"]).ok().contains("migration"));
}

#[test]
fn damage_is_named_and_hides_nothing_else() {
    let folder = Folder::with_sessions(async |service| {
        for id in ["broken", "edited", "shortened", "sound"] {
            conversation(service, id).await;
        }
        service
            .create(CreateSession::new("game", "bob").with_state([("user:x", json!(1))]))
            .await
            .expect("made");
    });
    folder.sql(
        "UPDATE sessions SET state = '{' WHERE id = 'broken';
         UPDATE sessions SET state = '{\"first\":1,\"step\":7}' WHERE id = 'edited';
         DELETE FROM events WHERE session_id = 'shortened' AND sessile_seq = 1;
         UPDATE user_states SET state = 'nothing' WHERE user_id = 'bob';",
    );
    let ran = folder.run(&["db", "check", "--json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let problems: Vec<String> = report["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| {
            format!("{}: {}", problem["place"].as_str().unwrap(), problem["problem"].as_str().unwrap())
        })
        .collect();
    let text = problems.join("\n");
    for expected in [
        "state of user bob of application game: stored data is corrupt: column state of table user_states",
        "session shop/ada/broken: stored data is corrupt: column state of table sessions, row shop/ada/broken",
        "session shop/ada/edited: the state key \"step\" is not what the events say",
        "session shop/ada/shortened: it is at version 2 and has 1 events",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("sound"), "{text}");
    assert_eq!(report["sessions"], 5);
    folder.run(&["db", "check"]).fails(5, "problems found");
}

#[test]
fn a_check_changes_nothing() {
    let folder = Folder::new();
    folder.run(&["db", "check"]).fails(3, "there is no file sessile.db");
    folder.run(&["sessions", "list"]).fails(3, "there is no file sessile.db");
    assert!(!folder.path().join("sessile.db").exists());
    folder.sql(include_str!("../../../sqlite/migrations/0001_adk.sql"));
    folder.run(&["db", "check"]).fails(5, "run `sessile db migrate`");
    folder.run(&["db", "check"]).fails(5, "run `sessile db migrate`");
    assert!(folder.run(&["db", "migrate"]).ok().contains("from 0"));
    assert!(folder.run(&["db", "migrate"]).ok().contains("was up to date"));
    folder.run(&["db", "check"]).ok();
}

#[test]
fn a_sweep_takes_old_sessions_only() {
    let folder = Folder::with_sessions(async |service| {
        conversation(service, "old").await;
        conversation(service, "new").await;
    });
    folder.sql("UPDATE sessions SET update_time = update_time - 7200 WHERE id = 'old'");
    let dry = folder.run(&["db", "sweep", "--older-than", "1h", "--dry-run", "--json"]).json_lines();
    assert_eq!((dry.len(), &dry[0]["id"], &dry[0]["deleted"]), (1, &json!("old"), &json!(false)));
    assert!(folder.run(&["db", "sweep", "--older-than", "1h"]).ok().contains("old"));
    let left = folder.run(&["sessions", "list", "--json"]).json_lines();
    assert_eq!((left.len(), &left[0]["id"]), (1, &json!("new")));
    folder.run(&["db", "sweep", "--older-than", "soon"]).fails(2, "is not an age");
}

#[test]
fn stores_that_cannot_be_opened_say_what_to_do() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("text.db"), "this is no database, but long enough to be looked at")
        .unwrap();
    let list = |url: &str| folder.run(&["sessions", "list", "--store", url]);
    list("memory://").fails(2, "name a SQLite file or PostgreSQL");
    list("sessile.db").fails(2, "sqlite:///relative.db");
    list("mysql://user:secret@host/x").fails(2, "there is no store for mysql://");
    list("sqlite:///text.db").fails(1, "is not a SQLite database");
    list("sqlite:///x.db?readers=none").fails(1, "not a whole number");
    let down = list("postgresql://me:secret@127.0.0.1:1/none?connect_timeout=2");
    assert!(!down.stderr.contains("secret"), "{down:?}");
    down.fails(6, "postgresql://127.0.0.1:1/none");
}
