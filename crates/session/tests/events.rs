//! Events on the wire and in storage.

use serde_json::{Value, json};
use sessile_session::{
    ActionExtras, Bytes, Content, CreateSession, Event, EventActions, EventExtras, FunctionCall,
    FunctionResponse, JsonAroundDelta, MemoryStore, OPERATIONS, OVERWROTE, Part, PartExtras, REMOVED,
    SessionService, Stored,
};
use sessile_state::{Delta, Operation, SharedValue};

#[test]
fn an_event_as_google_adk_stores_it_is_written_as_it_was() {
    let stored = json!({
        "content": {"parts": [{"text": "hi"}], "role": "user"},
        "invocation_id": "inv1", "author": "user",
        "actions": {
            "state_delta": {"app:b": [1, 2], "k": null},
            "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}
        },
        "node_info": {"path": ""}, "id": "e1", "timestamp": 1794764954.284554,
    });
    let event: Event = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(Stored(&event)).unwrap(), stored);
}

#[test]
fn wire_and_storage_differ_only_in_the_names_of_fields() {
    let wire = json!({
        "id": "e1", "invocationId": "i", "author": "a", "timestamp": 1.5, "nodeInfo": {"path": "p", "outputFor": ["x"]},
        "content": {"parts": [
            {"functionCall": {"id": "1", "name": "f", "args": {"camelKey": 1, "snake_key": {"innerKey": 2}}, "willContinue": true}},
            {"inlineData": {"data": "-_8=", "mimeType": "image/png"}, "thoughtSignature": "AAE="},
            {"partMetadata": {"ownKey": 1}},
        ]},
        "actions": {
            "stateDelta": {"user:someKey": {"deepKey": 1}}, "artifactDelta": {}, "requestedAuthConfigs": {},
            "requestedToolConfirmations": {}, "rewindBeforeInvocationId": "r", "agentState": {"currentSubAgent": "s"},
        },
        "usageMetadata": {"promptTokenCount": 1, "promptTokensDetails": [{"tokenCount": 1}]},
        "customMetadata": {"myKey": {"yourKey": 1}},
        "cacheMetadata": {"cache_name": "c"},
    });
    let stored = json!({
        "id": "e1", "invocation_id": "i", "author": "a", "timestamp": 1.5, "node_info": {"path": "p", "output_for": ["x"]},
        "content": {"parts": [
            {"function_call": {"id": "1", "name": "f", "args": {"camelKey": 1, "snake_key": {"innerKey": 2}}, "will_continue": true}},
            {"inline_data": {"data": "-_8=", "mime_type": "image/png"}, "thought_signature": "AAE="},
            {"part_metadata": {"ownKey": 1}},
        ]},
        "actions": {
            "state_delta": {"user:someKey": {"deepKey": 1}}, "artifact_delta": {}, "requested_auth_configs": {},
            "requested_tool_confirmations": {}, "rewind_before_invocation_id": "r", "agent_state": {"currentSubAgent": "s"},
        },
        "usage_metadata": {"prompt_token_count": 1, "prompt_tokens_details": [{"token_count": 1}]},
        "custom_metadata": {"myKey": {"yourKey": 1}},
        "cache_metadata": {"cache_name": "c"},
    });
    let from_wire: Event = serde_json::from_value(wire.clone()).unwrap();
    let from_stored: Event = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(from_wire, from_stored);
    assert_eq!(serde_json::to_value(&from_stored).unwrap(), wire);
    assert_eq!(serde_json::to_value(Stored(&from_wire)).unwrap(), stored);
}

#[test]
fn unknown_fields_stay_where_and_as_they_were() {
    let text = r#"{"id":"e","later":{"camelCase":1,"n":123456789012345678901234567890},"content":{"parts":[{"novel":[1.0]}]}}"#;
    let event: Event = serde_json::from_str(text).unwrap();
    for written in [serde_json::to_string(&event).unwrap(), event.to_stored_json().unwrap()] {
        assert!(
            written.contains(r#""later":{"camelCase":1,"n":123456789012345678901234567890}"#),
            "{written}"
        );
        assert!(written.contains(r#""novel":[1.0]"#), "{written}");
    }
}

#[test]
fn bytes_are_read_in_either_alphabet_padded_or_not() {
    for text in ["-_8=", "-_8", "+/8=", "+/8"] {
        assert_eq!(serde_json::from_value::<Bytes>(json!(text)).unwrap().0, [0xfb, 0xff], "{text}");
    }
    assert_eq!(serde_json::to_value(Bytes(vec![0xfb, 0xff])).unwrap(), json!("-_8="));
    assert!(serde_json::from_value::<Bytes>(json!("!!")).is_err());
}

#[test]
fn names_that_are_data_are_not_translated() {
    let scheme = json!({"type": "oauth2", "flows": {"authorizationCode": {"tokenUrl": "u", "scopes": {"read_mail": "x", "readAll": "y"}}}});
    let wire = json!({"authScheme": scheme, "credentialKey": "k", "rawAuthCredential": {
        "authType": "http", "http": {"additionalHeaders": {"X-Some_Header": "1", "camelHeader": "2"}}}});
    let event: Event =
        serde_json::from_value(json!({"actions": {"requestedAuthConfigs": {"callId_1": wire}}})).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap()["actions"]["requestedAuthConfigs"]["callId_1"], wire);
    let stored = serde_json::to_value(Stored(&event)).unwrap();
    let stored = &stored["actions"]["requested_auth_configs"]["callId_1"];
    assert_eq!(stored["auth_scheme"], scheme);
    assert_eq!(
        stored["raw_auth_credential"],
        json!({"auth_type": "http", "http": {"additional_headers": {"X-Some_Header": "1", "camelHeader": "2"}}})
    );
}

#[test]
fn what_is_no_event_is_refused() {
    for text in
        ["[]", "1", r#"{"id": 5}"#, r#"{"timestamp": "now"}"#, r#"{"actions": {"stateDelta": []}}"#, "{"]
    {
        assert!(serde_json::from_str::<Event>(text).is_err(), "{text}");
    }
}

#[test]
fn a_delta_with_removals_survives_in_an_event() {
    let mut delta = Delta::from_iter([("a", json!(1)), ("nulled", json!(null))]);
    delta.remove("gone");
    let mut event = Event::new("user").with_actions(EventActions::from_delta(&delta));
    event.custom_metadata = Some([("mine".to_owned(), json!(1).into())].into());
    let stored = serde_json::to_value(Stored(&event)).unwrap();
    assert_eq!(stored["custom_metadata"], json!({REMOVED: ["gone"], "mine": 1}));
    assert_eq!(
        stored["actions"]["state_delta"],
        json!({"a": 1, "nulled": null, "gone": null}),
        "as google-adk reads it"
    );
    let wire = serde_json::to_value(&event).unwrap();
    assert_eq!(wire["customMetadata"], stored["custom_metadata"]);
    for text in [event.to_stored_json().unwrap(), serde_json::to_string(&event).unwrap()] {
        let again: Event = serde_json::from_str(&text).unwrap();
        assert_eq!(again, event, "what tells removals from nulls is no metadata of the event's own");
    }
    let mut bare = event.clone();
    bare.custom_metadata = None;
    let again: Event = serde_json::from_str(&bare.to_stored_json().unwrap()).unwrap();
    assert_eq!((&again.actions.state_delta, &again.custom_metadata), (&delta, &None));
}

#[test]
fn a_key_is_removed_only_if_it_is_null_too() {
    let wire = json!({
        "actions": {"stateDelta": {"gone": null, "null": null, "set": 1}},
        "customMetadata": {REMOVED: ["gone", "set", "unknown", 5]},
    });
    let event: Event = serde_json::from_value(wire).unwrap();
    assert_eq!(event.actions.state_delta.removed().collect::<Vec<_>>(), ["gone"]);
    assert_eq!(event.actions.state_delta.values().map(|(key, _)| key).collect::<Vec<_>>(), ["null", "set"]);
    assert_eq!(event.actions.state_delta.len(), 3);
}

#[test]
fn operations_are_read_in_both_spellings() {
    let operations = json!({
        "user:points": {"add": 1, "min": 0, "max": 2.5},
        "log": [{"append": ["x", {"innerKey": 1}]}, {"union": ["y"]}],
        "someMap": {"union": {"fieldName": null, "field_name": 1}},
    });
    let mut expected = Delta::from_iter([("plain", json!(1))]);
    expected.operate("user:points", Operation::add(1).at_least(0).at_most(2.5));
    expected.append("log", [json!("x"), json!({"innerKey": 1})]);
    expected.union("log", [json!("y")]);
    let fields = [("fieldName", json!(null)), ("field_name", json!(1))];
    expected.operate("someMap", Operation::union_fields(fields));
    for (delta, ops) in [
        ("stateDelta", "stateOps"),
        ("state_delta", "state_ops"),
        ("stateDelta", "state_ops"),
        ("state_delta", "stateOps"),
    ] {
        let event: Event =
            serde_json::from_value(json!({"actions": {delta: {"plain": 1}, ops: operations}})).unwrap();
        assert_eq!(event.actions.state_delta, expected, "{delta} and {ops}");
        assert!(event.actions.unknown.is_empty(), "they are understood");
        assert!(event.operations().is_empty(), "they are not committed yet");
    }
    let both = json!({"actions": {"stateOps": {"a": {"add": 1}}, "state_ops": {"b": {"add": 2}}}});
    let event: Event = serde_json::from_value(both).unwrap();
    assert_eq!(event.actions.state_delta.operations().count(), 2);
}

#[test]
fn an_event_with_operations_comes_back_as_it_was() {
    let mut delta = Delta::from_iter([("a", json!(1))]);
    delta.remove("gone");
    delta.add("n", 0.1);
    delta.operate("n", Operation::add(u64::MAX).at_most(u64::MAX));
    let big = SharedValue::from_json("[123456789012345678901234567890, 1.0]").unwrap();
    delta.append("list", [big.clone(), json!("x").into()]);
    delta.operate("map", Operation::union_fields([("b", big), ("a", json!({"x": [1]}).into())]));
    let event = Event::new("agent").with_actions(EventActions::from_delta(delta));
    let (wire, stored) = (serde_json::to_string(&event).unwrap(), event.to_stored_json().unwrap());
    assert!(wire.contains("\"stateOps\":") && !wire.contains("state_ops"), "{wire}");
    assert!(stored.contains("\"state_ops\":") && !stored.contains("stateOps"), "{stored}");
    for text in [wire, stored] {
        assert!(text.contains("123456789012345678901234567890"), "every digit is kept: {text}");
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
    }
}

#[test]
fn operations_that_cannot_be_understood_are_an_error() {
    for (actions, expected) in [
        (json!({"stateOps": {"k": {"sub": 1}}}), "the operation on \"k\" is invalid: unknown operation"),
        (json!({"stateOps": {"k": {"add": "x"}}}), "`add` must be a number"),
        (json!({"stateOps": {"k": {"add": 1, "step": 1}}}), "`add` has no field \"step\""),
        (json!({"stateOps": {"k": []}}), "the list is empty"),
        (json!({"stateOps": {"k": 1}}), "a number is not an operation"),
        (json!({"stateOps": [{"add": 1}]}), "the operations are not an object of keys"),
        (json!({"state_ops": {"k": {"append": {"a": 1}}}}), "`append` takes a list"),
        (
            json!({"stateDelta": {"k": 1}, "stateOps": {"k": {"add": 1}}}),
            "the key \"k\" is both set and operated on",
        ),
        (json!({"stateDelta": {"k": null}, "state_ops": {"k": {"add": 1}}}), "the key \"k\" is both set"),
        (json!({"stateOps": {"k": {"add": 1}}, "state_ops": {"k": {"add": 1}}}), "the key \"k\" is both"),
    ] {
        let text = json!({ "actions": actions }).to_string();
        let refused = serde_json::from_str::<Event>(&text).unwrap_err().to_string();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
}

/// Commits an event to a session with this state.
async fn committed(state: Value, event: Event) -> std::sync::Arc<Event> {
    let service = SessionService::new(MemoryStore::new());
    let new = CreateSession::new("shop", "ada").with_state(state);
    let mut session = service.create(new).await.expect("the session is created");
    service.append(&mut session, event).await.expect("the event is committed")
}

#[tokio::test]
async fn a_committed_event_is_stored_with_results_alone() {
    let mut delta = Delta::from_iter([("plain", json!(null))]);
    delta.add("n", 1);
    delta.append("user:list", [json!("b")]);
    delta.remove("gone");
    let event = Event::new("agent").with_actions(EventActions::from_delta(delta));
    let event = committed(json!({"n": 5, "user:list": ["a"], "gone": 1}), event).await;
    let stored = serde_json::to_value(Stored(&*event)).unwrap();
    assert_eq!(
        stored["actions"],
        json!({
            "state_delta": {"plain": null, "n": 6, "user:list": ["a", "b"], "gone": null},
            "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {},
        }),
        "google-adk forbids fields of actions that it does not know"
    );
    let told = json!({OPERATIONS: {"n": {"add": 1}, "user:list": {"append": ["b"]}}, REMOVED: ["gone"]});
    assert_eq!(stored["custom_metadata"], told);
    let wire = serde_json::to_value(&*event).unwrap();
    assert!(wire["actions"].get("stateOps").is_none());
    assert_eq!(wire["customMetadata"], told);

    let again: Event = serde_json::from_value(stored).unwrap();
    assert_eq!(again, *event, "reading it back executes nothing");
    assert_eq!(again.operations().into_keys().collect::<Vec<_>>(), ["n", "user:list"]);
    assert!(!again.actions.state_delta.has_operations());
}

#[tokio::test]
async fn the_json_around_the_changes_of_an_event_becomes_whole_with_their_results() {
    let mut delta = Delta::from_iter([("plain", json!({"deep": [1]})), ("zero", json!(null))]);
    delta.add("app:n", 1);
    delta.union("user:list", [json!("b")]);
    delta.remove("gone");
    // What looks like the place of the changes is not always it.
    let text = r#"{"actions":{"state_delta":{}}}"#;
    let mut event = Event::new("agent")
        .with_content(Content::text("model", text))
        .with_actions(EventActions::from_delta(delta));
    event.actions.escalate = Some(true);
    event.output = Some(json!({"actions": {"state_delta": {"a": 1}}}).into());
    event.unknown.insert("a_field".to_owned(), json!({"state_delta": 1}).into());
    let sent = event.clone();
    let around = JsonAroundDelta::new(&mut event).unwrap();
    assert_eq!(event, sent);

    let event =
        committed(json!({"app:n": 5, "user:list": ["a"], "gone": 1}), event.with_timestamp(1.5)).await;
    let mut whole: Event = serde_json::from_str(&around.with(&event.actions.state_delta).unwrap()).unwrap();
    (whole.id, whole.timestamp) = (event.id.clone(), event.timestamp);
    assert_eq!(whole, *event);
    assert_eq!(whole.operations().len(), 2);
}

#[tokio::test]
async fn a_committed_event_is_not_appended_again_with_its_operations() {
    let mut delta = Delta::new();
    delta.add("n", 1);
    let event = committed(json!({}), Event::new("a").with_actions(EventActions::from_delta(delta))).await;
    let service = SessionService::new(MemoryStore::new());
    let mut other = service.create(CreateSession::new("shop", "ada")).await.expect("the session is created");
    let refused =
        service.append(&mut other, Event::clone(&event)).await.expect_err("only a commit notes them");
    assert!(refused.to_string().contains(OPERATIONS), "{refused}");
}

#[tokio::test]
async fn an_event_without_operations_is_stored_as_it_was_sent() {
    let event = Event::new("agent").with_actions(EventActions::from_delta(json!({"a": 1})));
    let event = committed(json!({}), event).await;
    assert_eq!(event.custom_metadata, None);
    assert_eq!(event.overwrote(), None);
    assert!(serde_json::to_value(Stored(&*event)).unwrap().get("custom_metadata").is_none());
}

#[test]
fn notes_that_cannot_be_understood_are_kept_and_tell_nothing() {
    let wire =
        json!({"customMetadata": {OPERATIONS: {"n": {"later": 1}}, OVERWROTE: 5, "sessile:later": [1]}});
    let event: Event = serde_json::from_value(wire.clone()).unwrap();
    assert!(event.operations().is_empty());
    assert_eq!(serde_json::to_value(&event).unwrap()["customMetadata"], wire["customMetadata"]);
}

#[test]
fn a_timestamp_is_left_out_until_there_is_one() {
    let event: Event = serde_json::from_value(json!({"author": "a"})).unwrap();
    assert_eq!((event.timestamp, event.time()), (None, 0.0));
    assert!(serde_json::to_value(&event).unwrap().get("timestamp").is_none());
    let event = event.with_timestamp(0.0).with_invocation("i");
    assert_eq!((event.timestamp, event.invocation_id.as_str()), (Some(0.0), "i"));
    let again: Event = serde_json::from_str(&event.to_stored_json().unwrap()).unwrap();
    assert_eq!(again.timestamp, Some(0.0), "1970 is a time");
}

#[test]
fn is_final_response() {
    let call = || Part::from(FunctionCall::default());
    let answer = || Part::from(FunctionResponse::default());
    let result = || {
        let outcome = Some(json!({"outcome": "OK"}).into());
        let extras = PartExtras { code_execution_result: outcome, ..PartExtras::default() };
        Part { extras: extras.into(), ..Part::default() }
    };
    let with =
        |parts: Vec<Part>| Event::new("a").with_content(Content { parts: Some(parts), ..Content::default() });
    let extras = ActionExtras { skip_summarization: Some(true), ..ActionExtras::default() };
    let skipping = EventActions { extras: extras.into(), ..EventActions::default() };

    assert!(Event::new("a").is_final_response(), "an event of state alone");
    assert!(with(vec![Part::text("done")]).is_final_response());
    assert!(!with(vec![Part::text("let me"), call()]).is_final_response());
    assert!(!with(vec![answer()]).is_final_response());
    assert!(!with(vec![Part::text("x"), result()]).is_final_response());
    assert!(with(vec![result(), Part::text("x")]).is_final_response());
    assert!(!Event { partial: Some(true), ..with(vec![Part::text("do")]) }.is_final_response());
    assert!(Event { actions: skipping, ..with(vec![answer()]) }.is_final_response());
    let waiting_for = |ids: &[&str], event: Event| {
        let ids = Some(ids.iter().map(|&id| id.to_owned()).collect());
        let extras = EventExtras { long_running_tool_ids: ids, ..EventExtras::default() };
        Event { extras: extras.into(), ..event }
    };
    assert!(waiting_for(&["id"], Event { partial: Some(true), ..with(vec![call()]) }).is_final_response());
    assert!(!waiting_for(&[], with(vec![call()])).is_final_response());
    let failed = |mut event: Event| {
        event.error_code = Some("X".to_owned());
        event
    };
    assert!(failed(with(vec![answer()])).is_final_response());
    assert!(!failed(with(vec![call()])).is_final_response());
}

#[test]
fn fields_that_few_have_take_room_only_when_they_are_set() {
    let mut event: Event = serde_json::from_value(
        json!({"author": "a", "nodeInfo": {"path": ""}, "actions": {"artifactDelta": {}}}),
    )
    .unwrap();
    assert_eq!(event, Event::new("a"));
    assert_eq!(format!("{:?}", event.extras), "none");
    assert_eq!(event.error_code, None);

    event.error_code = Some("X".to_owned());
    assert_ne!(event, Event::new("a"));
    event.error_code = None;
    assert_eq!(event, Event::new("a"), "set and unset is as never set");
    assert!(size_of::<Event>() <= 256, "an event is small: {}", size_of::<Event>());
}

#[test]
fn a_session_looks_as_clients_expect() {
    let service = sessile_session::SessionService::new(sessile_session::MemoryStore::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let new =
        sessile_session::CreateSession::new("shop", "ada").with_id("s").with_state([("user:k", json!(null))]);
    let session = runtime.block_on(service.create(new)).unwrap();
    let mut wire = serde_json::to_value(&session).unwrap();
    assert!(wire["lastUpdateTime"].take().as_f64().unwrap() > 1.6e9);
    assert_eq!(
        wire,
        json!({"id": "s", "appName": "shop", "userId": "ada", "state": {"user:k": null}, "events": [], "lastUpdateTime": Value::Null})
    );
}
