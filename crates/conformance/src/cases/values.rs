use serde_json::json;
use sessile_session::{
    Blob, Bytes, Content, CreateSession, Event, FunctionCall, FunctionResponse, Part, SessionError,
    SessionService,
};
use sessile_state::{Delta, SharedValue};

use super::{cases, empty, saying, session, setting, state_of, stored};

cases!(
    unicode_and_empty_keys,
    deep_json,
    large_values,
    many_keys,
    integers_beyond_64_bits,
    floats_to_the_last_digit,
    bytes_round_trip,
    every_field_of_an_event,
    a_nul_is_kept_or_refused_by_name,
);

async fn unicode_and_empty_keys(service: SessionService) {
    let state = json!({
        "": "empty", "ключ": "значение", "🦀": "\u{1F980}\u{200D}", "a\"b\\c": "\"\\\n\t\u{8}\u{c}", "a b": "\u{7f}\u{2028}",
        "user:é": "é", "user:e\u{301}": "not the same", "app:'; DROP TABLE sessions; --": "$1 ?1 :x {}",
    });
    let mut made = session(&service, "s'\"%_", state.clone()).await;
    service.append(&mut made, setting(json!({"键": "值"}))).await.unwrap();
    let mut expected = state;
    expected["键"] = json!("值");
    assert_eq!(state_of(&stored(&service, made.key()).await), expected);
}

async fn deep_json(service: SessionService) {
    let deep = (0..180)
        .fold(json!("bottom"), |inner, n| if n % 2 == 0 { json!([inner]) } else { json!({"k": inner}) });
    let mut made = session(&service, "s", json!({"at_creation": deep})).await;
    service.append(&mut made, setting(json!({"appended": deep, "app:deep": deep}))).await.unwrap();
    let expected = json!({"at_creation": deep, "appended": deep, "app:deep": deep});
    assert_eq!(state_of(&stored(&service, made.key()).await), expected);
}

async fn large_values(service: SessionService) {
    let large = "x".repeat(10_000_000);
    let mut made = session(&service, "s", empty()).await;
    let event = Event { id: "e1".to_owned(), ..saying("e1", &large) };
    service
        .append(&mut made, Event { actions: setting(json!({"large": large})).actions, ..event })
        .await
        .unwrap();
    let read = stored(&service, made.key()).await;
    assert!(read.state().get_raw("large").unwrap().as_str() == Some(&large));
    assert!(read.events()[0].content.as_ref().unwrap().parts()[0].text.as_deref() == Some(&large));
}

async fn many_keys(service: SessionService) {
    let state: serde_json::Map<_, _> = (0..2000).map(|n| (format!("key_{n}"), json!(n))).collect();
    let mut made = session(&service, "s", state.clone().into()).await;
    service.append(&mut made, setting(json!({"key_7": "changed"}))).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(read.state().keys().count(), 2000);
    assert_eq!(read.state().get::<String>("key_7").as_deref(), Some("changed"));
    assert_eq!(read.state().get::<u32>("key_1999"), Some(1999));
}

/// Values whose texts must come back as they are, in state and in events.
async fn exact(service: &SessionService, texts: &[&str]) {
    let value = |text: &str| SharedValue::from_json(text).unwrap();
    let initial = texts.iter().enumerate().map(|(n, text)| (format!("initial{n}"), value(text)));
    let mut made = service
        .create(CreateSession::new("shop", "ada").with_id("s").with_state(Delta::from_iter(initial)))
        .await
        .unwrap();
    let mut event = Event::new("agent");
    for (n, text) in texts.iter().enumerate() {
        for key in [format!("k{n}"), format!("user:k{n}"), format!("app:k{n}")] {
            event.actions.state_delta.set(key, value(text));
        }
        event.custom_metadata.get_or_insert_default().insert(format!("m{n}"), value(text));
    }
    service.append(&mut made, event).await.unwrap();
    service.append(&mut made, setting(json!({"other": 1, "user:other": 1, "app:other": 1}))).await.unwrap();
    let read = stored(service, made.key()).await;
    for (n, text) in texts.iter().enumerate() {
        for key in [format!("initial{n}"), format!("k{n}"), format!("user:k{n}"), format!("app:k{n}")] {
            assert_eq!(compact(&read.state().get_raw(&key).unwrap().to_string()), *text, "{key}");
        }
        let metadata = read.events()[0].custom_metadata.as_ref().unwrap();
        assert_eq!(compact(&metadata[&format!("m{n}")].to_string()), *text, "the event's metadata");
    }
}

/// Stores may put spaces between the parts of a value.
fn compact(text: &str) -> String {
    text.replace(' ', "")
}

async fn integers_beyond_64_bits(service: SessionService) {
    exact(
        &service,
        &[
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "-170141183460469231731687303715884105729",
            "[1,123456789012345678901234567890123456789012345678901234567890]",
        ],
    )
    .await;
}

async fn floats_to_the_last_digit(service: SessionService) {
    exact(
        &service,
        &[
            "1.0",
            "0.1",
            "0.30000000000000004",
            "2.2250738585072014e-308",
            "3.14159265358979323846264338327950288",
        ],
    )
    .await;
}

async fn bytes_round_trip(service: SessionService) {
    let bytes: Vec<u8> = (0..=255).cycle().take(10_001).collect();
    let blob = Blob { data: Some(Bytes(bytes)), mime_type: Some("image/png".to_owned()), ..Blob::default() };
    let mut part = Part::from(blob);
    part.thought_signature = Some(Bytes(vec![0xfb, 0xff]));
    let mut made = session(&service, "s", empty()).await;
    let content = Content { parts: Some(vec![part]), ..Content::default() };
    let event = service.append(&mut made, Event::new("user").with_content(content)).await.unwrap();
    assert_eq!(stored(&service, made.key()).await.events()[0].event, event);
}

async fn every_field_of_an_event(service: SessionService) {
    let call = FunctionCall {
        id: Some("adk-1".to_owned()),
        name: Some("look".to_owned()),
        args: Some([("camelArg".to_owned(), json!({"snake_key": 1}).into())].into()),
        ..FunctionCall::default()
    };
    let answer = FunctionResponse {
        id: Some("adk-1".to_owned()),
        response: Some([("result".to_owned(), json!(null).into())].into()),
        ..FunctionResponse::default()
    };
    let parts = vec![call.into(), Part { thought: Some(false), ..answer.into() }];
    let wire = json!({
        "id": "e1", "invocationId": "i", "author": "agent", "timestamp": 1794764954.284554, "branch": "a.b",
        "turnComplete": true, "finishReason": "STOP", "errorCode": "X", "errorMessage": "why", "interrupted": false,
        "longRunningToolIds": ["a", "b"], "output": [1], "nodeInfo": {"path": "a@1", "outputFor": ["b"]},
        "usageMetadata": {"totalTokenCount": 9}, "groundingMetadata": {"webSearchQueries": ["q"]},
        "citationMetadata": {"citations": [{"startIndex": 1}]}, "avgLogprobs": -0.25, "modelVersion": "m",
        "inputTranscription": {"text": "hi", "finished": true}, "cacheMetadata": {"cache_name": "c"},
        "actions": {"stateDelta": {}, "artifactDelta": {"f.txt": 3}, "requestedAuthConfigs": {},
            "requestedToolConfirmations": {"adk-1": {"hint": "sure?", "confirmed": false, "payload": {"aB": 1}}},
            "skipSummarization": true, "transferToAgent": "b", "escalate": true, "agentState": {"someKey": 1},
            "compaction": {"startTimestamp": 1.5, "endTimestamp": 2.5, "compactedContent": {"parts": [{"text": "s"}]}},
            "route": ["x", 1, true]},
        "customMetadata": {"anyKey": {"insideKey": null}},
    });
    let mut event: Event = serde_json::from_value(wire.clone()).unwrap();
    event.content =
        Some(Content { parts: Some(parts), role: Some("model".to_owned()), ..Content::default() });
    let mut made = session(&service, "s", empty()).await;
    let event = service.append(&mut made, event).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(read.events()[0].event, event);
    let mut written = serde_json::to_value(&*read.events()[0].event).unwrap();
    let content = written.as_object_mut().unwrap().remove("content").unwrap();
    assert_eq!(written, wire);
    assert_eq!(content["parts"][0]["functionCall"]["args"]["camelArg"]["snake_key"], 1);
}

async fn a_nul_is_kept_or_refused_by_name(service: SessionService) {
    let mut made = session(&service, "s", json!({"before": 1})).await;
    match service.append(&mut made, setting(json!({"nul": "a\u{0}b"}))).await {
        Ok(_) => {
            let read = stored(&service, made.key()).await;
            assert_eq!(read.state().get::<String>("nul").as_deref(), Some("a\u{0}b"));
        }
        Err(SessionError::InvalidState { key, reason }) => {
            assert!(key == "nul" && reason.contains("U+0000"), "{key}: {reason}");
            assert_eq!(state_of(&stored(&service, made.key()).await), json!({"before": 1}));
        }
        Err(other) => panic!("another error: {other}"),
    }
}
