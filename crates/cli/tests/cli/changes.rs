//! Changes of state over HTTP on every store: operations, guards, conditions and repetitions.

use serde_json::{Value, json};

use crate::served::{Answer, Served};
use crate::support::{Folder, new_schema};

const S: &str = "/apps/shop/users/ada/sessions/s";
const EVENTS: &str = "/apps/shop/users/ada/sessions/s/events";
const USER: &str = "/apps/shop/users/ada/state";
const APP: &str = "/apps/shop/state";

#[test]
fn changes_of_state_on_sqlite() {
    changes_of_state("sqlite:///sessile.db");
}

#[test]
fn changes_of_state_on_sqlite_in_the_other_layout() {
    changes_of_state("sqlite+aiosqlite:///sessile.db");
}

#[test]
fn changes_of_state_on_postgres() {
    changes_of_state(&new_schema());
}

/// A server on a store.
struct Api(Served);

impl Api {
    fn send(&self, method: &str, path: &str, body: &Value, headers: &str) -> Answer {
        self.0.request_with(method, path, Some(body), headers).expect("the server answers")
    }

    fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, body, "")
    }

    fn if_match(&self, etag: &str, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, body, &format!("If-Match: {etag}\r\n"))
    }

    fn once(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, body, &format!("Idempotency-Key: {key}\r\n"))
    }

    fn etag(&self, path: &str) -> String {
        etag(&self.0.request("GET", path, None))
    }

    /// Everything that is stored.
    fn stored(&self) -> Value {
        json!([self.0.get(S), self.0.get(USER), self.0.get(APP)])
    }
}

fn etag(answer: &Answer) -> String {
    let line = answer.headers.lines().find_map(|line| line.strip_prefix("etag: "));
    line.expect("there is an ETag").trim().to_owned()
}

#[track_caller]
fn ok(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[track_caller]
fn refused(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    answer.json()
}

fn changes_of_state(store: &str) {
    let folder = Folder::new();
    let api = Api(Served::new(&folder, &["--store", store, "--max-state", "2000"]));
    api.0.post(S, &json!({"n": 1}));
    operations(&api);
    guards(&api);
    conditions(&api);
    repetitions(&api);
    sessions_that_are_replaced(&api);
}

fn operations(api: &Api) {
    let ops = json!({"n": {"add": 2}, "user:n": {"add": 0.5}, "app:log": [{"append": [1]}, {"append": [{"a": 1.0}]}],
                     "user:tags": {"union": ["x", 1, 1.0]}, "address": {"union": {"city": "Paris"}}});
    let changed = ok(api.patch(S, &json!({"stateOps": ops, "stateDelta": {"null": null}})));
    let state = json!({"n": 3, "null": null, "user:n": 0.5, "app:log": [1, {"a": 1.0}], "user:tags": ["x", 1],
                       "address": {"city": "Paris"}});
    assert_eq!(
        (&changed["state"], &changed["events"][0]["actions"]["stateDelta"]["user:n"]),
        (&state, &json!(0.5))
    );
    assert_eq!(changed, api.0.get(S));
    let event = json!({"id": "e1", "author": "x", "actions": {"stateOps": {"user:n": {"add": 0.5}}, "stateRemove": ["null"]}});
    let first = api.send("POST", EVENTS, &event, "");
    ok(api.patch(S, &json!({"stateDelta": {"user:n": 9}})));
    let again = api.send("POST", EVENTS, &event, "If-Match: \"nonsense\"\r\n");
    assert_eq!((etag(&again), &again.body), (etag(&first), &first.body));
    assert!(etag(&first).starts_with("\"2-"), "{first:?}");
    assert_eq!(ok(first)["actions"]["stateDelta"], json!({"user:n": 1.0, "null": null}));
    assert_eq!(ok(api.patch(USER, &json!({"stateOps": {"n": {"add": -9}}})))["n"], 0);

    let before = api.stored();
    for (ops, told) in [
        (json!({"n": {"add": -4, "min": 0}}), "of session shop/ada/s, which holds 3: the sum would be -1"),
        (json!({"app:log": {"add": 1}}), "of application shop: it holds an array"),
        (json!({"user:none": {"add": 1, "max": 0}}), "of user ada of application shop, which is absent"),
    ] {
        let answer = api.patch(S, &json!({"stateOps": ops, "stateDelta": {"other": 1, "app:other": 1}}));
        let detail = refused(&answer, 409)["detail"].to_string();
        assert!(detail.contains(told), "{detail}");
    }
    let large = json!({"stateOps": {"app:log": {"append": ["x".repeat(2000)]}}, "stateDelta": {"other": 1}});
    refused(&api.patch(S, &large), 413);
    assert_eq!(api.stored(), before);
}

fn guards(api: &Api) {
    let before = api.stored();
    let change = json!({"stateDelta": {"n": 4}, "stateRead": {"n": 2, "app:log": [1.0, {"a": 1}]},
                        "stateAbsent": ["user:tags", "user:none"]});
    let body = refused(&api.patch(S, &change), 409);
    assert_eq!((&body["current"], &body["absent"]), (&json!({"n": 3, "user:tags": ["x", 1]}), &json!([])));
    let body =
        refused(&api.patch(USER, &json!({"stateDelta": {"n": 4}, "stateRead": {"n": 2, "none": null}})), 409);
    assert_eq!((&body["current"], &body["absent"]), (&json!({"n": 0}), &json!(["none"])));
    assert_eq!(api.stored(), before);
    let change = json!({"stateDelta": {"n": 4}, "stateRead": {"n": 2, "app:log": 1}, "stateAbsent": ["user:n"],
                        "onOverwrite": "report"});
    let events = ok(api.patch(S, &change))["events"].clone();
    let last = events.as_array().expect("a list").last().expect("an event").clone();
    let overwrote = json!({"n": {"read": 2, "found": 3}, "app:log": {"read": 1, "found": [1, {"a": 1.0}]},
                           "user:n": {"found": 0}});
    let told = &last["customMetadata"]["sessile:overwrote"];
    assert!(numbers_by_value(told, &overwrote), "{told}");
    ok(api.patch(APP, &json!({"stateDelta": {"x": 1}, "stateAbsent": ["x"]})));
}

/// Whether two values are the same, with 0 and 0.0 taken for the same number: not every database
/// keeps their spelling.
fn numbers_by_value(one: &Value, other: &Value) -> bool {
    sessile_state::same_json(&one.to_string(), &other.to_string())
}

fn conditions(api: &Api) {
    for path in [S, USER, APP] {
        let (old, change) = (api.etag(path), json!({"stateDelta": {"c": 1}}));
        for never in [
            "\"9223372036854775807\"",
            "\"9223372036854775806\"",
            "\"nonsense\"",
            "\"99999-7fffffffffffffff\"",
        ] {
            refused(&api.if_match(never, path, &change), 412);
        }
        refused(&api.if_match(&format!("W/{old}"), path, &change), 412);
        assert_eq!(api.etag(path), old);
        let changed = api.if_match(&format!("\"nonsense\", {old}"), path, &change);
        assert_ne!(etag(&changed), old);
        assert_eq!(etag(&changed), api.etag(path));
        refused(&api.if_match(&old, path, &change), 412);
        ok(api.if_match(&etag(&changed), path, &change));
    }
}

fn repetitions(api: &Api) {
    for path in [S, USER, APP] {
        let change = json!({"stateOps": {"count": {"add": 1}}, "stateDelta": {"a": [1, 2.0]}});
        let first = api.once("request-1", path, &change);
        let (tag, first) = (etag(&first), ok(first));
        ok(api.patch(path, &json!({"stateDelta": {"count": 100}})));
        let again = api.once("request-1", path, &change);
        assert_eq!(etag(&again), tag);
        let again = ok(again);
        let state = |answer: &Value| if path == S { answer["state"].clone() } else { answer.clone() };
        assert_eq!((&state(&again)["count"], &state(&again)["a"]), (&json!(1), &json!([1, 2.0])));
        assert_eq!(again["events"], first["events"]);
        refused(&api.once("request-1", path, &json!({"stateOps": {"count": {"add": 2}}})), 409);
        assert_eq!(state(&api.0.get(path))["count"], 100);
    }
}

fn sessions_that_are_replaced(api: &Api) {
    let old = api.etag(S);
    let change = json!({"stateDelta": {"k": 1}});
    assert_eq!(api.0.request("DELETE", S, None).status, 200);
    refused(&api.if_match(&old, S, &change), 404);
    api.0.post(S, &json!({}));
    refused(&api.if_match(&old, S, &change), 412);
    refused(&api.if_match("\"0\"", S, &change), 412);
    let gone = api.0.request_with("DELETE", S, None, &format!("If-Match: {old}\r\n")).expect("it answers");
    assert_eq!(gone.status, 412);
    let again = api.once("request-1", S, &change);
    assert!(etag(&again).starts_with("\"1-"), "{again:?}");
}
