//! The concurrent core under shuttle's scheduler, which tries thousands of interleavings.
//!
//! Runs with `RUSTFLAGS="--cfg shuttle" cargo test -p sessile-state --test interleavings`;
//! otherwise this file is empty.
#![cfg(shuttle)]

use sessile_state::{State, StateError};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

const SCHEDULES: usize = 3_000;

/// Random schedules, and schedules with few, well placed preemptions.
fn explore(scenario: impl Fn() + Send + Sync + Copy + 'static) {
    // Simulated threads have small stacks of their own, too small for a debug build that locks all
    // shards.
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    Runner::new(RandomScheduler::new(SCHEDULES), config.clone()).run(scenario);
    Runner::new(PctScheduler::new(3, SCHEDULES), config).run(scenario);
}

fn join<T: Send + 'static>(threads: impl IntoIterator<Item = thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
}

#[test]
fn modify_loses_nothing() {
    explore(|| {
        let state = State::new();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let state = state.clone();
                thread::spawn(move || {
                    state.modify("n", 0, |n: u32| n + 1);
                    state.modify("n", 0, |n: u32| n + 1);
                })
            })
            .collect();
        join(threads);
        assert_eq!(state.get::<u32>("n"), Some(6));
    });
}

#[test]
fn set_and_remove_come_before_or_after_a_modify() {
    explore(|| {
        let state = State::new();
        state.set("n", 1);
        let (a, b, c) = (state.clone(), state.clone(), state.clone());
        join([
            thread::spawn(move || {
                a.modify("n", 100, |n: u32| n + 1);
            }),
            thread::spawn(move || b.set("n", 10)),
            thread::spawn(move || {
                c.remove("n");
            }),
        ]);
        // All six orders of the three, and no other outcome.
        assert!([None, Some(10), Some(11), Some(101)].contains(&state.get::<u32>("n")));
    });
}

#[test]
fn a_commit_is_seen_whole() {
    explore(|| {
        let state = State::new();
        state.update([("a", 0), ("b", 0), ("c", 0)]);
        let (writer, reader, third) = (state.clone(), state.clone(), state.clone());
        join([
            thread::spawn(move || {
                let view = writer.with_delta_tracking();
                view.update([("a", 1), ("b", 1), ("new", 1)]);
                view.remove("c");
                view.commit();
            }),
            thread::spawn(move || {
                let seen = reader.snapshot();
                let whole = [seen.contains("new"), !seen.contains("c"), *seen.get_raw("a").unwrap() == 1];
                assert!(whole == [true; 3] || whole == [false; 3], "{whole:?}");
                assert_eq!(seen.get_raw("a"), seen.get_raw("b"));
            }),
            thread::spawn(move || {
                let before: u32 = third.get("a").unwrap();
                assert!(third.get::<u32>("b").unwrap() >= before);
                let keys = third.keys();
                assert!(keys == ["a", "b", "c"] || keys == ["a", "b", "new"], "{keys:?}");
            }),
        ]);
    });
}

#[test]
fn commits_and_modifies_of_one_view_lose_nothing() {
    explore(|| {
        let state = State::new();
        let view = state.with_delta_tracking();
        let (a, b, c) = (view.clone(), view.clone(), state.clone());
        join([
            thread::spawn(move || {
                a.modify("n", 0, |n: u32| n + 1);
            }),
            thread::spawn(move || {
                b.modify("n", 0, |n: u32| n + 1);
                b.commit();
            }),
            thread::spawn(move || {
                c.modify("m", 0, |n: u32| n + 1);
            }),
        ]);
        view.commit();
        assert_eq!((state.get::<u32>("n"), state.get::<u32>("m")), (Some(2), Some(1)));
    });
}

#[test]
fn a_rollback_never_leaves_half_a_modify() {
    explore(|| {
        let view = State::new().with_delta_tracking();
        view.set("n", 10);
        let (a, b) = (view.clone(), view.clone());
        join([
            thread::spawn(move || {
                a.modify("n", 0, |n: u32| n + 1);
            }),
            thread::spawn(move || b.rollback()),
        ]);
        assert!([None, Some(1)].contains(&view.get::<u32>("n")), "what was rolled back lives on");
    });
}

#[test]
fn crossed_modifies_end() {
    explore(|| {
        let state = State::new();
        let cross = |mine: &'static str, theirs: &'static str| {
            let state = state.clone();
            thread::spawn(move || {
                state.modify(mine, 0, |n: u32| match state.try_modify(theirs, 0, |n: u32| n + 10) {
                    Ok(_) => n + 1,
                    Err(StateError::Busy { .. }) => n + 2,
                    Err(other) => panic!("{other}"),
                })
            })
        };
        let threads = [cross("a", "b"), cross("b", "a")];
        join(threads);
    });
}

#[test]
fn a_commit_waits_for_a_closure_that_reads_its_view() {
    explore(|| {
        let state = State::new();
        let view = state.with_delta_tracking();
        view.set("n", 5);
        let (a, b) = (state.clone(), view.clone());
        join([
            thread::spawn(move || {
                a.modify("n", 0, |n: u32| n + b.get::<u32>("n").unwrap());
            }),
            thread::spawn(move || view.commit()),
        ]);
        assert!([Some(5), Some(10)].contains(&state.get::<u32>("n")));
    });
}

#[test]
fn a_value_moved_between_a_key_and_its_computed_variable_is_always_found() {
    explore(|| {
        let state = State::new();
        state.set("risk", 1);
        let (a, b) = (state.clone(), state.clone());
        join([
            thread::spawn(move || {
                a.rename("risk", "derived:risk");
                a.rename("derived:risk", "risk");
            }),
            thread::spawn(move || (0..3).for_each(|_| assert_eq!(b.get::<u32>("risk"), Some(1)))),
        ]);
    });
}

#[test]
fn a_view_never_shows_what_it_never_had() {
    explore(|| {
        let state = State::new();
        state.set("app:k", 1);
        let view = state.with_delta_tracking();
        view.set("app:k", 2);
        let (writer, below) = (view.clone(), state.clone());
        join([
            thread::spawn(move || {
                writer.rollback(); // shows 1
                writer.set("app:k", 2);
                below.set("app:k", 3); // never shows
                below.remove("app:k");
            }),
            thread::spawn(move || {
                let seen = view.get::<u32>("app:k");
                assert!([Some(1), Some(2)].contains(&seen), "{seen:?}");
            }),
        ]);
    });
}

#[test]
fn changes_of_many_keys_and_modifies_keep_their_order() {
    explore(|| {
        let state = State::new();
        let (a, b, c) = (state.clone(), state.clone(), state.clone());
        join([
            thread::spawn(move || a.update([("x", 10), ("y", 10)])),
            thread::spawn(move || {
                b.modify("x", 0, |n: u32| n + 1);
            }),
            thread::spawn(move || {
                c.modify("y", 0, |n: u32| n + 1);
            }),
        ]);
        for key in ["x", "y"] {
            assert!([Some(10), Some(11)].contains(&state.get::<u32>(key)));
        }
    });
}

#[test]
fn a_commit_in_the_way_of_a_modify_loses_nothing() {
    explore(|| {
        let state = State::new();
        let view = state.with_delta_tracking();
        view.update([("x", 10), ("y", 10)]);
        let (a, b, c) = (state.clone(), view.clone(), view.clone());
        join([
            thread::spawn(move || {
                a.modify("x", 0, |n: u32| n + 1);
            }),
            thread::spawn(move || b.commit()),
            thread::spawn(move || c.commit()),
        ]);
        assert!(!view.has_delta());
        assert_eq!(state.get::<u32>("y"), Some(10));
        assert!([Some(10), Some(11)].contains(&state.get::<u32>("x")));
    });
}
