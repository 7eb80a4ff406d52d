//! Recording what a long-lived state is changed by and read for.

use serde_json::{Value, json};
use sessile_state::{Recorded, SharedValue, State};

fn recorded_json(recorded: &Recorded) -> Value {
    json!({ "delta": recorded.delta, "reads": recorded.reads })
}

fn stored(entries: &[(&str, Value)]) -> std::collections::BTreeMap<String, Option<SharedValue>> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (!value.is_null()).then(|| value.clone().into())))
        .collect()
}

#[test]
fn operations_stay_operations_and_sets_carry_what_was_read() {
    let state =
        State::from_iter([("read", json!(1)), ("gone", json!(2)), ("list", json!([1])), ("seen", json!(0))]);
    let recorder = state.record(|key| !key.starts_with("turn:")).unwrap();
    state.add("n", 1);
    state.add("n", 2);
    state.append("list", [2]);
    state.union("tags", ["a"]);
    state.set("blind", 1);
    let read: u32 = state.get("read").unwrap();
    state.set("read", read + 1);
    state.remove("gone");
    state.modify("made", 0, |n: u32| n + 1);
    state.get::<u32>("seen");
    state.set("turn:x", 1);
    assert_eq!(
        recorded_json(&recorder.take()),
        json!({
            "delta": {
                "set": {"blind": 1, "made": 1, "read": 2},
                "remove": ["gone"],
                "ops": {"list": {"append": [2]}, "n": {"add": 3}, "tags": {"union": ["a"]}},
            },
            "reads": {"gone": 2, "made": null, "read": 1},
        })
    );
    assert_eq!(recorder.take(), Recorded::default(), "it is taken once");
}

#[test]
fn the_value_that_counts_is_the_one_before_the_own_changes() {
    let state = State::from_iter([("n", json!(5)), ("m", json!(5)), ("own", json!(5))]);
    let recorder = state.record(|_| true).unwrap();
    state.add("n", 1);
    assert_eq!(state.modify("n", 0, |n: u32| n * 2), 12);
    state.get::<u32>("m");
    state.set("m", 6);
    assert_eq!(state.modify("m", 0, |n: u32| n + 1), 7);
    state.set("own", 1);
    state.modify("own", 0, |n: u32| n + 1);
    let recorded = recorder.take();
    assert_eq!(
        json!(recorded.reads),
        json!({"m": 5, "n": 5}),
        "what was set without a read is no read either"
    );
    assert_eq!(json!(recorded.delta), json!({"set": {"m": 7, "n": 12, "own": 2}}));
}

#[test]
fn views_are_recorded_when_they_are_committed() {
    let state = State::from_iter([("n", json!(5)), ("k", json!(1))]);
    let recorder = state.record(|_| true).unwrap();
    let view = state.with_read_tracking();
    view.add("n", 1);
    view.modify("k", 0, |k: u32| k + 1);
    view.set("rolled back", 1);
    assert!(recorder.take().delta.is_empty());
    view.remove("rolled back");
    view.commit();
    let recorded = recorder.take();
    assert_eq!(json!(recorded.delta)["ops"], json!({"n": {"add": 1}}));
    assert_eq!(json!(recorded.reads)["k"], json!(1), "also if it was read before the last time");
    assert!(!recorded.reads.contains_key("n"), "an operation reads nothing");
}

#[test]
fn a_handle_without_read_tracking_records_no_reads() {
    let state = State::from_iter([("k", json!(1)), ("derived:risk", json!(2))]);
    let recorder = state.record(|_| true).unwrap();
    let quiet = state.without_read_tracking();
    assert_eq!((quiet.get("k"), quiet.get("risk"), quiet.get::<u32>("no")), (Some(1), Some(2), None));
    state.set("k", 2);
    assert!(recorder.take().reads.is_empty());
}

#[test]
fn what_is_committed_elsewhere_comes_in_under_the_own_changes() {
    let state =
        State::from_iter([("n", json!(5)), ("set", json!(1)), ("gone", json!(1)), ("same", json!(1))]);
    let recorder = state.record(|_| true).unwrap();
    state.add("n", 1);
    state.set("set", 2);
    recorder.absorb(stored(&[("n", json!(50)), ("set", json!(9)), ("gone", json!(null)), ("new", json!(3))]));
    assert_eq!(json!(state.to_map()), json!({"n": 51, "new": 3, "same": 1, "set": 2}));
    assert_eq!(state.keys(), ["n", "new", "same", "set"]);
    assert_eq!(state.modify("n", 0, |n: u32| n + 1), 52);
    let recorded = recorder.take();
    assert_eq!(recorded_json(&recorded), json!({"delta": {"set": {"n": 52, "set": 2}}, "reads": {"n": 50}}));
}

#[test]
fn a_read_before_the_last_take_is_still_reported() {
    let state = State::from_iter([("n", json!(5))]);
    let recorder = state.record(|_| true).unwrap();
    let n: u32 = state.get("n").unwrap();
    recorder.take();
    recorder.absorb(stored(&[("n", json!(7))]));
    state.set("n", n + 1);
    assert_eq!(json!(recorder.take().reads), json!({"n": 5}), "a task that straddles a commit is found out");
    state.set("n", 1);
    assert!(recorder.take().reads.is_empty(), "a blind set stays blind");
}

#[test]
fn there_is_one_recorder_at_a_time() {
    let state = State::new();
    let recorder = state.record(|_| true).unwrap();
    assert!(state.record(|_| true).is_none() && state.with_delta_tracking().record(|_| true).is_none());
    state.set("lost", 1);
    drop(recorder);
    let recorder = state.record(|_| true).unwrap();
    assert!(recorder.take().delta.is_empty());
}

#[test]
fn nothing_is_lost_while_threads_write_and_the_recorder_takes() {
    let state = State::new();
    let recorder = state.record(|_| true).unwrap();
    let mut sum = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..500).for_each(|_| state.add("n", 1)))).collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            sum += additions(&recorder.take());
        }
    });
    sum += additions(&recorder.take());
    assert_eq!((sum, state.get("n")), (2000, Some(2000)));
}

fn additions(recorded: &Recorded) -> u64 {
    let operations = recorded.delta.operations().flat_map(|(_, operations)| operations.iter());
    operations.filter_map(|operation| operation.addend()?.as_u64()).sum()
}
