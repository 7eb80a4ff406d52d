//! Events on the wire and in storage.

use serde_json::{Value, json};
use sessile_session::{
    ActionExtras, Bytes, Content, Event, EventActions, EventExtras, FunctionCall, FunctionResponse, Part,
    PartExtras, REMOVED, Stored,
};
use sessile_state::Delta;

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
    let event = Event::new("user").with_delta(&delta);
    assert_eq!(event.delta(), delta);
    assert_eq!(event.custom_metadata.as_ref().unwrap()[REMOVED], json!(["gone"]));
    let again: Event = serde_json::from_str(&event.to_stored_json().unwrap()).unwrap();
    assert_eq!(again.delta(), delta);
    let cleared = again.with_delta(&Delta::new());
    assert_eq!((&cleared.custom_metadata, cleared.actions.state_delta.len()), (&None, 0));
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
