use serde_json::json;
use sessile_session::{Append, CreateSession, Event, EventActions, EventWindow, SessionKey, SessionService};
use sessile_sqlite::SqliteStore;

use crate::support::{Folder, block_on, conversation};

#[test]
fn a_list_is_a_table_for_people_and_lines_for_programs() {
    let folder = Folder::with_sessions(async |service| {
        conversation(service, "s1").await;
        service.create(CreateSession::new("game", "bob").with_id("g1")).await.expect("it is created");
    });
    let table = folder.run(&["sessions", "list"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("APP") && lines.len() == 3, "{table}");
    assert!(lines[1].starts_with("game  bob") && lines[2].starts_with("shop  ada"), "{table}");

    let listed = folder.run(&["sessions", "list", "shop", "--json"]).json_lines();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["id"], &listed[0]["version"]), (&json!("s1"), &json!(2)));
    assert_eq!(listed[0]["state"], json!({"first": 1, "step": 2, "user:name": "Ada", "app:tax": 0.25}));
    assert!(folder.run(&["sessions", "list", "shop", "--user", "bob", "--json"]).json_lines().is_empty());
}

#[test]
fn a_limit_says_when_there_is_more() {
    let folder = Folder::with_sessions(async |service| {
        for n in 0..5 {
            let new = CreateSession::new("shop", "ada").with_id(format!("s{n}"));
            service.create(new).await.expect("it is created");
        }
    });
    let cut = folder.run(&["sessions", "list", "--limit", "2", "--json"]);
    assert!(cut.stderr.contains("--limit 0"), "{cut:?}");
    let ids: Vec<_> = cut.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["s4", "s3"]);
    let all = folder.run(&["sessions", "list", "--limit", "0", "--oldest-first", "--json"]);
    assert_eq!(all.stderr, "");
    assert_eq!(all.json_lines().len(), 5);
    assert_eq!(folder.run(&["sessions", "list", "--limit", "5"]).stderr, "");
}

#[test]
fn a_name_that_cannot_be_listed_hides_no_other() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.sql(
        "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)
         VALUES (' padded', 'ada', 'odd', '{}', 1, 1)",
    );
    let listed = folder.run(&["sessions", "list", "--json"]);
    assert!(listed.stderr.contains("left out: the app name \" padded\""), "{listed:?}");
    assert_eq!(listed.json_lines().len(), 1);
    folder.run(&["sessions", "show", " padded", "ada", "odd"]).ok();
    assert!(folder.run(&["sessions", "export"]).ok().contains("\"odd\""));
    folder.run(&["db", "check"]).ok();
}

#[test]
fn a_session_that_cannot_be_read_is_named_and_hides_no_other() {
    let folder = Folder::with_sessions(async |service| {
        conversation(service, "s1").await;
        conversation(service, "broken").await;
    });
    folder.sql("UPDATE sessions SET state = '{' WHERE id = 'broken'");
    let listed = folder.run(&["sessions", "list", "--json"]);
    assert!(listed.stdout.contains("\"s1\"") && !listed.stdout.contains("\"broken\""), "{listed:?}");
    assert!(listed.stderr.contains("column state of table sessions, row shop/ada/broken"), "{listed:?}");
    listed.fails(5, "1 of the sessions cannot be read");
}

#[test]
fn a_session_is_shown_whole_or_its_end() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let text = folder.run(&["sessions", "show", "shop", "ada", "s1"]).ok();
    for expected in ["shop/ada/s1", "user:name", "hello there", "+ step = 2", "i2"] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let shown = folder.run(&["sessions", "show", "shop", "ada", "s1", "--last", "1", "--json"]).json_lines();
    assert_eq!(shown[0]["eventVersions"], json!([2]));
    assert_eq!(shown[0]["events"][0]["actions"]["stateDelta"], json!({"step": 2}));
    folder.run(&["sessions", "show", "shop", "ada", "no"]).fails(3, "session shop/ada/no not found");
}

#[test]
fn what_is_stored_cannot_drive_the_terminal() {
    let folder = Folder::with_sessions(async |service| {
        let state = [("k", json!("\u{1b}[2J\u{202e}evil"))];
        let new = CreateSession::new("shop", "a\u{1b}]0;x\u{7}b").with_id("s").with_state(state);
        service.create(new).await.expect("it is created");
    });
    let text = folder.run(&["sessions", "list"]).ok() + &folder.run(&["state", "get", "shop"]).ok();
    assert!(!text.contains('\u{1b}') && text.contains("u{1b}"), "{text:?}");
    let shown = folder.run(&["sessions", "show", "shop", "a\u{1b}]0;x\u{7}b", "s"]).ok();
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}

#[test]
fn a_deleted_session_is_gone_and_a_changed_one_is_not_deleted() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.run(&["sessions", "delete", "shop", "ada", "s1", "--if-version", "1"]).fails(4, "has changed");
    folder.run(&["sessions", "delete", "shop", "ada", "s1", "--if-version", "2"]).ok();
    folder.run(&["sessions", "delete", "shop", "ada", "s1"]).fails(3, "not found");
}

#[test]
fn a_fork_begins_where_it_is_told() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.run(&["sessions", "fork", "shop", "ada", "s1", "--at", "1", "--as", "s2"]).ok();
    assert_eq!(folder.run(&["state", "get", "shop", "--user", "ada", "--session", "s2", "step"]).ok(), "1\n");
    let made = folder.run(&["sessions", "fork", "shop", "ada", "s1", "--json"]).json_lines();
    assert_eq!(made[0]["version"], 2);
    folder.run(&["sessions", "fork", "shop", "ada", "s1", "--as", "s2"]).fails(4, "already exists");
    folder.run(&["sessions", "fork", "shop", "ada", "s1", "--at", "9"]).fails(3, "version 9");
}

#[test]
fn a_rewind_takes_back_an_invocation() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.run(&["sessions", "rewind", "shop", "ada", "s1", "--before", "i2"]).ok();
    assert_eq!(folder.run(&["state", "get", "shop", "--user", "ada", "--session", "s1", "step"]).ok(), "1\n");
    folder.run(&["sessions", "rewind", "shop", "ada", "s1", "--before", "i9"]).fails(3, "i9");
}

fn service_of(folder: &Folder, file: &str) -> SessionService {
    let url = format!("sqlite:///{}", folder.path().join(file).display());
    SessionService::new(block_on(SqliteStore::open_url(&url)).expect("the file opens"))
}

/// An operation, whose result the event holds when it is stored.
fn counted() -> sessile_state::Delta {
    let mut delta = sessile_state::Delta::new();
    delta.add("count", 2);
    delta.append("user:log", [json!("exported")]);
    delta
}

#[test]
fn what_is_exported_comes_back_as_it_was() {
    let folder = Folder::with_sessions(async |service| {
        conversation(service, "s1").await;
        conversation(service, "s2").await;
        let key = SessionKey::new("shop", "ada", "s2").expect("a valid key");
        let exact =
            sessile_state::SharedValue::from_json("123456789012345678901234567890").expect("a number");
        let mut delta = sessile_state::Delta::new();
        delta.set("big", exact);
        delta.remove("first");
        service
            .append_to(&key, Event::new("user").with_actions(EventActions::from_delta(delta)))
            .await
            .expect("appended");
        let counted = Append::new(Event::new("user").with_actions(EventActions::from_delta(counted())));
        service.append_to(&key, counted).await.expect("appended");
        service.write_user_state("shop", "ada", json!({"name": "Ada L."})).await.expect("written");
    });
    folder.run(&["sessions", "export", "--output", "all.jsonl"]).ok();
    folder.run(&["sessions", "export", "--output", "all.jsonl"]).fails(4, "exists already");
    folder.run(&["sessions", "import", "all.jsonl", "--store", "sqlite:///copy.db"]).ok();
    let (old, new) = (service_of(&folder, "sessile.db"), service_of(&folder, "copy.db"));
    for id in ["s1", "s2"] {
        let key = SessionKey::new("shop", "ada", id).expect("a valid key");
        let read = |service: &SessionService| {
            block_on(service.get(&key, EventWindow::ALL)).expect("it is read").expect("it exists")
        };
        let (old_session, new_session) = (read(&old), read(&new));
        assert_eq!(old_session.state(), new_session.state());
        assert_eq!(old_session.events(), new_session.events());
        assert_eq!(old_session.last_update_time(), new_session.last_update_time());
        assert_eq!(block_on(old.state_at(&key, 0)).unwrap(), block_on(new.state_at(&key, 0)).unwrap());
    }
    let one = folder.run(&["sessions", "export", "shop", "ada", "s2"]).ok();
    assert!(one.contains("123456789012345678901234567890") && !one.contains("\"s1\""), "{one}");
    let again = folder.run(&["sessions", "export", "--store", "sqlite:///copy.db"]).ok();
    assert_eq!(std::fs::read_to_string(folder.path().join("all.jsonl")).unwrap(), again);
}

#[test]
fn an_import_overwrites_nothing() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let export = folder.run(&["sessions", "export"]).ok();
    folder.run_with(&["sessions", "import", "-"], &export).fails(4, "session shop/ada/s1 exists already");
    folder.run(&["sessions", "fork", "shop", "ada", "s1", "--as", "s2"]).ok();
    let both = folder.run(&["sessions", "export"]).ok();
    folder.run(&["sessions", "delete", "shop", "ada", "s2"]).ok();
    let ran = folder.run_with(&["sessions", "import", "-", "--skip-existing"], &both);
    assert!(ran.stderr.contains("imported 1 sessions, left 1"), "{ran:?}");
    ran.ok();
    folder.run(&["state", "set", "shop", "app:tax", "0.5"]).ok();
    let args = ["sessions", "import", "-", "--skip-existing"];
    folder.run_with(&args, &both).fails(4, "app:tax of application shop has another value");
    folder.run_with(&["sessions", "import", "-", "--skip-existing", "--keep-shared"], &both).ok();
    assert_eq!(folder.run(&["state", "get", "shop", "app:tax"]).ok(), "0.5\n");
}

#[test]
fn a_damaged_export_is_refused_and_says_where() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let export = folder.run(&["sessions", "export", "--no-shared"]).ok();
    let lines: Vec<&str> = export.lines().collect();
    let (cut, edited) = (lines[..3].join("\n"), export.replace("\"step\":2", "\"step\":3"));
    let swapped = [lines[0], lines[1], lines[3], lines[2], lines[4]].join("\n");
    let edited = edited.replacen("\"step\":3", "\"step\":2", 1);
    let args = ["sessions", "import", "-", "--store", "sqlite:///new.db"];
    for (input, said) in [
        ("", "was not written by `sessile sessions export`"),
        ("{}", "was not written by"),
        (cut.as_str(), "is cut off here"),
        (&swapped, "line 4 of standard input: version 1 does not come after 2"),
        (&edited, "does not agree with its events"),
        (&export.replace("\"id\":\"s1\"", "\"id\":\" s1\""), "white space around it"),
        (&export.replace("{\"end\":{\"events\":2}}", "{\"end\":{\"events\":3}}"), "2 events and not 3"),
    ] {
        folder.run_with(&args, input).fails(2, said);
    }
    let newer = export.replace("\"format\":1", "\"format\":2");
    folder.run_with(&args, &newer).fails(1, "is in format 2");
    folder.run(&["sessions", "import", "none.jsonl"]).fails(3, "there is no file none.jsonl");
    folder.run_with(&args, &export).ok();
}

#[test]
fn imports_at_once_overwrite_no_shared_key_of_each_other() {
    let folder = Folder::new();
    folder.run(&["db", "migrate"]).ok();
    for round in 0..5 {
        let import = |value: u32| {
            let lines = [
                json!({"sessileExport": {"format": 1}}),
                json!({"appState": {"app": "shop", "state": {format!("k{round}"): value}}}),
            ];
            folder.run_with(&["sessions", "import", "-"], &lines.map(|line| format!("{line}\n")).concat())
        };
        let codes = std::thread::scope(|scope| {
            let other = scope.spawn(|| import(2).code);
            [import(1).code, other.join().expect("the thread ends")]
        });
        let winner = codes.iter().position(|code| *code == Some(0)).expect("one of them is imported") + 1;
        assert_eq!(codes[2 - winner], Some(4), "round {round}: {codes:?}");
        let stored = folder.run(&["state", "get", "shop", &format!("app:k{round}")]).ok();
        assert_eq!(stored, format!("{winner}\n"), "round {round}");
    }
}
