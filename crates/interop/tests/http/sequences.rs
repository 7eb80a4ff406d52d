//! Random sequences of requests get the same answers.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::Both;
use crate::call::Call;

/// Enough sequences to meet most pairs of requests, few enough for every run of the tests.
const SEQUENCES: u32 = 24;

#[test]
fn random_sequences_get_the_same_answers() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let both = runtime.block_on(Both::start());
    let mut runner =
        TestRunner::new(Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(calls(), 1..40), |calls| {
        // Users of their own, so that a sequence meets nothing of the ones before it but the
        // application's state.
        let run = uuid::Uuid::new_v4().simple().to_string();
        for (index, call) in calls.iter().enumerate() {
            let (reference, ours) = runtime.block_on(both.send(&call.of_run(&run)));
            prop_assert_eq!(reference, ours, "answer {} of {:#?}", index, calls);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn calls() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (user(), option::of(id()), state()).prop_map(|(user, id, state)| Call::Create { user, id, state }),
        2 => (user(), id(), option::of(state())).prop_map(|(user, id, state)| Call::CreateAt { user, id, state }),
        4 => (user(), id()).prop_map(|(user, id)| Call::Get { user, id }),
        2 => user().prop_map(|user| Call::List { user }),
        6 => (user(), id(), state(), any::<bool>())
            .prop_map(|(user, id, delta, snake_case)| Call::Patch { user, id, delta, snake_case }),
        2 => (user(), id()).prop_map(|(user, id)| Call::Delete { user, id }),
        4 => (user(), id(), "[a-zé{}\" ]{1,8}", option::of(state()))
            .prop_map(|(user, id, text, delta)| Call::Run { user, id, text, delta }),
        2 => (user(), id(), name(), "[a-z]{0,4}")
            .prop_map(|(user, id, name, text)| Call::SaveArtifact { user, id, name, text }),
        1 => (user(), id()).prop_map(|(user, id)| Call::Artifacts { user, id }),
        2 => (user(), id(), name(), option::of(0..3u8))
            .prop_map(|(user, id, name, version)| Call::Artifact { user, id, name, version }),
        1 => (user(), id(), name()).prop_map(|(user, id, name)| Call::ArtifactVersions { user, id, name }),
        1 => (user(), id(), name()).prop_map(|(user, id, name)| Call::DeleteArtifact { user, id, name }),
        1 => (user(), id()).prop_map(|(user, id)| Call::Remember { user, id }),
    ]
}

fn user() -> impl Strategy<Value = String> {
    prop_oneof![Just("ada".to_owned()), Just("bob".to_owned())]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![Just("one".to_owned()), Just("two".to_owned())]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("note.txt".to_owned()), Just("user:note.txt".to_owned())]
}

fn state() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-c]",
        Just("user:level".to_owned()),
        Just("app:motd".to_owned()),
        Just("temp:scratch".to_owned()),
        Just("other:x".to_owned()),
        Just("ключ".to_owned()),
    ];
    btree_map(key, value(), 0..4).prop_map(|state| json!(state))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(0.1)),
        "[a-zé\u{1F600}\"\\\\]{0,6}".prop_map(Value::from),
        Just(json!([1, {"deep": [null, {}]}])),
        Just(json!({"camelCase": 1, "snake_case": {"id": "kept"}})),
    ]
}
