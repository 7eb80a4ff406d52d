//! Servers that are killed, and servers that share a store.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::served::{Served, request};
use crate::support::{Folder, new_schema};

/// Sends PATCHes from many threads until the servers are gone or `enough` were acknowledged;
/// returns those that were.
fn patch_until(addresses: &[String], session: &str, enough: usize, mut kill: impl FnMut()) -> Vec<String> {
    let (acknowledged, stopped) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let path = format!("/apps/shop/users/ada/sessions/{session}");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let address = &addresses[thread % addresses.len()];
            let (acknowledged, stopped, path) = (&acknowledged, &stopped, &path);
            scope.spawn(move || {
                for n in 0.. {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = format!("t{thread}-{n}");
                    let body = json!({"stateDelta": {key.clone(): n, format!("app:{key}"): n}});
                    match request(address, "PATCH", path, Some(&body), "") {
                        Ok(answer) if answer.status == 200 => {
                            acknowledged.lock().expect("no thread panicked").push(key);
                        }
                        Ok(answer) => panic!("{answer:?}"),
                        Err(_) => return,
                    }
                }
            });
        }
        while acknowledged.lock().expect("no thread panicked").len() < enough {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        kill();
        stopped.store(true, Ordering::Relaxed);
    });
    acknowledged.into_inner().expect("no thread panicked")
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged() {
    kill_under_load(&Folder::new(), "sqlite:///sessile.db");
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged_on_postgres() {
    kill_under_load(&Folder::new(), &new_schema());
}

fn kill_under_load(folder: &Folder, store: &str) {
    for round in 0..3 {
        let session = format!("s{round}");
        let served = Served::new(folder, &["--store", store]);
        served.post("/apps/shop/users/ada/sessions", &json!({"sessionId": session}));
        let acknowledged =
            patch_until(std::slice::from_ref(&served.address), &session, 40 * (round + 1), || {
                served.kill("KILL")
            });
        drop(served);

        let reopened = Served::new(folder, &["--store", store]);
        let session = reopened.get(&format!("/apps/shop/users/ada/sessions/{session}"));
        for key in &acknowledged {
            assert!(
                session["state"].get(key).is_some() && session["state"].get(format!("app:{key}")).is_some(),
                "{key}"
            );
        }
        drop(reopened);
        folder.run(&["db", "check", "--store", store]).ok();
    }
}

/// Two servers on one store, both written to at once, one watched through the other.
fn share(folder: &Folder, store: &str) {
    let args = ["--store", store, "--artifacts", "memory://", "--memory", "memory://"];
    let (one, other) = (Served::new(folder, &args), Served::new(folder, &args));
    one.post("/apps/shop/users/ada/sessions", &json!({"sessionId": "both"}));
    let addresses = [one.address.clone(), other.address.clone()];
    let acknowledged = patch_until(&addresses, "both", 200, || ());
    for served in [&one, &other] {
        let session = served.get("/apps/shop/users/ada/sessions/both");
        let events = session["events"].as_array().expect("a list");
        assert!(events.len() >= acknowledged.len());
        for key in &acknowledged {
            assert!(session["state"].get(key).is_some(), "{key} is lost");
            assert!(session["state"].get(format!("app:{key}")).is_some(), "app:{key} is lost");
        }
    }
    let metrics = one.request("GET", "/metrics", None).body;
    assert_eq!(metrics.contains("sessile_pool_open"), store.starts_with("postgresql"), "{metrics}");
    watch_sees_both(&one, &other);
    folder.run(&["db", "check", "--store", store]).ok();
}

fn watch_sees_both(one: &Served, other: &Served) {
    use std::io::{BufRead, BufReader, Write};
    one.post("/apps/shop/users/ada/sessions", &json!({"sessionId": "watched"}));
    let mut stream = std::net::TcpStream::connect(&one.address).expect("it connects");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a timeout is set");
    write!(
        stream,
        "GET /apps/shop/users/ada/sessions/watched/watch HTTP/1.1\r\nhost: {}\r\n\r\n",
        one.address
    )
    .expect("it is sent");
    let mut lines = BufReader::new(stream).lines();
    let mut until = |wanted: &str| {
        let found =
            lines.by_ref().map(|line| line.expect("the watch goes on")).find(|line| line.contains(wanted));
        assert!(found.is_some(), "{wanted} was not seen");
    };
    until("data:");
    for (served, key) in [(one, "from_one"), (other, "from_other"), (one, "from_one_again")] {
        let path = "/apps/shop/users/ada/sessions/watched";
        let answer = served.request("PATCH", path, Some(&json!({"stateDelta": {key: 1}})));
        assert_eq!(answer.status, 200, "{answer:?}");
        until(key);
    }
}

#[test]
fn two_servers_share_a_file() {
    share(&Folder::new(), "sqlite:///shared.db");
}

#[test]
fn two_servers_share_a_database_on_postgres() {
    share(&Folder::new(), &new_schema());
}
