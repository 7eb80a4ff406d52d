//! Both write to one session in turns.

use serde_json::{Value, json};
use sessile_session::{CreateSession, EventWindow, ListSessions};

use crate::python::place;
use crate::{Both, Database, Outcome, ids, in_every_database, key, python_setting, setting};

in_every_database!(
    events_keep_the_order_of_the_turns,
    scoped_state_is_shared,
    null_is_a_value_to_both,
    a_key_that_rust_removes_is_gone_in_python,
    a_session_that_one_deletes_is_gone_for_the_other,
    python_opens_and_lists_the_file_afterwards,
    a_database_of_python_is_opened_by_rust,
    what_rust_rewinds_or_forks_reads_the_same_in_python,
);

fn value(read: impl serde::Serialize) -> Value {
    serde_json::to_value(read).expect("it has a JSON form")
}

async fn events_keep_the_order_of_the_turns(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    assert_eq!(both.session().await.version(), 0);
    assert_eq!(both.rust.append_to(&key("s"), setting("r1", json!({"n": 1}))).await?, Some(1));
    both.python.append("s", python_setting("p2", json!({"n": 2})));
    let mut session = both.session().await;
    both.rust.append(&mut session, setting("r3", json!({"n": 3}))).await?;
    both.python.append("s", python_setting("p4", json!({})));
    let read = both.session().await;
    let places: Vec<_> = read.events().iter().map(|event| (event.version, event.id.as_str())).collect();
    assert_eq!(places, [(1, "r1"), (2, "p2"), (3, "r3"), (4, "p4")]);
    assert_eq!((read.version(), read.state().get("n")), (4, Some(3)));
    let seen = value(both.python.get("s"));
    assert_eq!(ids(&seen), ["r1", "p2", "r3", "p4"]);
    assert_eq!(seen["state"], json!({"n": 3}));
    assert_eq!(value(both.rust.state_at(&key("s"), 2).await?), json!({"n": 2}));
    Ok(())
}

async fn scoped_state_is_shared(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.rust.create(CreateSession::new("shop", "ada").with_id("sibling")).await?;
    both.rust.create(CreateSession::new("shop", "bob").with_id("other")).await?;
    both.python.append("s", python_setting("p1", json!({"own": 1, "app:p": 1, "user:p": {"a": 1}})));
    both.rust.append_to(&key("s"), setting("r2", json!({"app:r": 2, "user:r": 2}))).await?;
    both.python.append("s", python_setting("p3", json!({"app:r": 3, "user:p": {"b": 1}})));

    let shared = json!({"app:p": 1, "app:r": 3, "user:p": {"b": 1}, "user:r": 2});
    let sibling = both.rust.get(&key("sibling"), EventWindow::ALL).await?.expect("it exists");
    assert_eq!(value(sibling.state().to_map()), shared);
    assert_eq!(value(both.python.get("sibling"))["state"], shared);
    let other = both.python.ask("get", json!({"app": "shop", "user": "bob", "id": "other"}));
    assert_eq!(other["session"]["state"], json!({"app:p": 1, "app:r": 3}));
    let user = both.python.ask("user_state", json!({"app": "shop", "user": "ada"}));
    assert_eq!(user["state"], json!({"p": {"b": 1}, "r": 2}));
    assert_eq!(value(both.rust.user_state("shop", "ada").await?), user["state"]);
    assert_eq!(value(both.rust.app_state("shop").await?), json!({"p": 1, "r": 3}));
    Ok(())
}

async fn null_is_a_value_to_both(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.rust.append_to(&key("s"), setting("r", json!({"r": null, "app:r": null, "user:r": null}))).await?;
    both.python.append("s", python_setting("p", json!({"p": null, "app:p": null, "user:p": null})));
    let nulls = json!({"r": null, "app:r": null, "user:r": null, "p": null, "app:p": null, "user:p": null});
    assert_eq!(value(both.session().await.state().to_map()), nulls);
    assert_eq!(value(both.python.get("s"))["state"], nulls);
    Ok(())
}

async fn a_key_that_rust_removes_is_gone_in_python(mut both: Both) -> Outcome {
    let mut arguments = place("s");
    arguments["state"] = json!({"own": 1, "kept": null, "app:a": 1, "user:u": 1, "user:kept": 1});
    both.python.ask("create", arguments);
    both.rust
        .transact(&key("s"), |state| {
            ["own", "app:a", "user:u"].iter().for_each(|name| drop(state.remove(name)));
            Ok(())
        })
        .await?;
    let left = json!({"kept": null, "user:kept": 1});
    assert_eq!(value(both.python.get("s"))["state"], left);
    both.python.append("s", python_setting("p", json!({})));
    assert_eq!(value(both.python.get("s"))["state"], left, "an append of Python's does not bring it back");
    assert_eq!(value(both.session().await.state().to_map()), left);
    Ok(())
}

async fn a_session_that_one_deletes_is_gone_for_the_other(mut both: Both) -> Outcome {
    for id in ["s", "theirs"] {
        both.python.ask("create", place(id));
        both.rust.append_to(&key(id), setting("r", json!({"a": 1, "user:kept": 1}))).await?;
        both.python.append(id, python_setting("p", json!({"b": 1})));
    }
    assert!(both.rust.delete(&key("s")).await?);
    assert!(both.python.ask("get", place("s"))["session"].is_null());
    both.python.ask("delete", place("theirs"));
    assert!(both.rust.get(&key("theirs"), EventWindow::ALL).await?.is_none());
    both.python.ask("create", place("theirs"));
    let again = both.rust.get(&key("theirs"), EventWindow::ALL).await?.expect("it exists");
    assert_eq!((again.version(), again.events().len()), (0, 0));
    assert_eq!(value(again.state().to_map()), json!({"user:kept": 1}));
    Ok(())
}

async fn python_opens_and_lists_the_file_afterwards(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.rust.create(CreateSession::new("shop", "ada").with_id("t")).await?;
    both.rust.append_to(&key("s"), setting("r", json!({"a": 1, "app:x": 2}))).await?;
    let mut python = both.another_python();
    drop(both.rust);
    drop(both.python);
    let listed = python.ask("list", json!({"app": "shop", "user": "ada"}));
    let states: Vec<_> = listed["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| (session["id"].as_str().expect("an id"), &session["state"]))
        .collect();
    assert_eq!(states, [("t", &json!({"app:x": 2})), ("s", &json!({"a": 1, "app:x": 2}))]);
    python.append("s", python_setting("p", json!({"a": 2})));
    assert_eq!(ids(&value(python.get("s"))), ["r", "p"]);
    Ok(())
}

async fn a_database_of_python_is_opened_by_rust(both: Both) -> Outcome {
    let theirs = Database::new(both.database.kind).await;
    let mut python = theirs.python();
    for id in ["a", "b", "c"] {
        let mut arguments = place(id);
        arguments["state"] = json!({"first": id, "user:last": id});
        python.ask("create", arguments);
        for n in 0..5 {
            python.append(id, python_setting(&format!("{id}{n}"), json!({"n": n, "app:count": n})));
        }
    }
    let rust = theirs.rust().await;
    let of_ada =
        ListSessions { app: "shop".to_owned(), user: Some("ada".to_owned()), ..ListSessions::default() };
    assert_eq!(rust.list(&of_ada).await?.sessions.len(), 3);
    for id in ["a", "b", "c"] {
        let read = rust.get(&key(id), EventWindow::ALL).await?.expect("it exists");
        let mut written = value(python.get(id));
        assert_eq!(value(&read), written.take(), "every field of the session");
        let places: Vec<_> = read.events().iter().map(|event| event.version).collect();
        assert_eq!((places.as_slice(), read.version()), ([1, 2, 3, 4, 5].as_slice(), 5));
        assert_eq!(rust.append_to(&key(id), setting("r", json!({"n": 9}))).await?, Some(6));
        python.append(id, python_setting("p", json!({"n": 10})));
        assert_eq!(ids(&value(python.get(id)))[5..], ["r", "p"]);
    }
    Ok(())
}

async fn what_rust_rewinds_or_forks_reads_the_same_in_python(mut both: Both) -> Outcome {
    let mut arguments = place("s");
    arguments["state"] = json!({"a": 0});
    both.python.ask("create", arguments);
    both.python.append("s", python_setting("p1", json!({"a": 1, "b": null, "user:u": 1})));
    both.rust.fork(&key("s"), 1, Some("fork")).await?;
    both.rust.rewind(&key("s"), "i").await?;
    let rewound = value(both.python.get("s"));
    assert_eq!(
        rewound["state"],
        json!({"a": 0, "user:u": 1}),
        "the initial value is back, the new key is gone"
    );
    assert_eq!(rewound["events"].as_array().map(Vec::len), Some(2));
    let fork = value(both.python.get("fork"));
    assert_eq!((&fork["state"], ids(&fork)), (&json!({"a": 1, "b": null, "user:u": 1}), vec!["p1"]));
    both.python.append("fork", python_setting("p2", json!({"a": 2})));
    let read = both.rust.get(&key("fork"), EventWindow::ALL).await?.expect("it exists");
    assert_eq!((read.version(), read.state().get("a")), (2, Some(2)));
    Ok(())
}
