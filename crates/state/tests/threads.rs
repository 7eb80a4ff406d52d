//! Real threads: no lost update, no torn read, no deadlock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_state::{Delta, State, StateError};

const THREADS: usize = 8;

/// Runs `call` on its own thread and fails if it does not end.
fn ends<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(call()));
    wait.recv_timeout(Duration::from_secs(60)).expect("the call hangs, or panicked")
}

fn on_all_threads(call: impl Fn(usize) + Sync) {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (call, start) = (&call, &start);
            scope.spawn(move || {
                start.wait();
                call(number);
            });
        }
    });
}

#[test]
fn modify_loses_nothing_on_one_key() {
    let state = State::new();
    on_all_threads(|_| {
        for _ in 0..2_000 {
            state.modify("count", 0u64, |n| n + 1);
        }
    });
    assert_eq!(state.get::<u64>("count"), Some(THREADS as u64 * 2_000));
}

#[test]
fn what_is_applied_to_unchanged_keys_only_loses_no_write_of_others() {
    let state = State::new();
    state.set("count", 0_u64);
    let applied = AtomicU64::new(0);
    on_all_threads(|number| {
        for _ in 0..500 {
            if number % 2 == 0 {
                state.modify("count", 0_u64, |count| count + 1);
                continue;
            }
            let before = state.snapshot_values(&["count"]);
            let next = Delta::from([("count", json!(before["count"].as_u64().unwrap() + 1_000_000))]);
            let made = state.try_apply_unchanged(&next, &before).unwrap();
            applied.fetch_add(made.len() as u64, Ordering::Relaxed);
        }
    });
    let modified = THREADS as u64 / 2 * 500;
    assert_eq!(state.get("count"), Some(applied.into_inner() * 1_000_000 + modified));
}

#[test]
fn modify_loses_nothing_through_a_view() {
    let state = State::new();
    let view = state.with_delta_tracking();
    on_all_threads(|number| {
        for step in 0..500 {
            view.modify("count", 0u64, |n| n + 1);
            if number == 0 && step % 50 == 0 {
                view.commit();
            }
        }
    });
    view.commit();
    assert_eq!(state.get::<u64>("count"), Some(THREADS as u64 * 500));
}

#[test]
fn writers_of_different_keys_never_meet() {
    let state = State::new();
    on_all_threads(|number| {
        for step in 0..500 {
            state.set(format!("app:{number}:{step}"), step);
            state.modify(&format!("own{number}"), 0, |n: u32| n + 1);
        }
    });
    assert_eq!(state.app().keys().len(), THREADS * 500);
    for number in 0..THREADS {
        assert_eq!(state.get::<u32>(&format!("own{number}")), Some(500));
    }
}

#[test]
fn a_commit_is_never_seen_half() {
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let state = State::new();
    state.update(keys.iter().map(|key| (key, 0)));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let names: Vec<&str> = keys.iter().map(String::as_str).collect();
                while !stop.load(Ordering::Relaxed) {
                    let seen = state.snapshot();
                    let first = seen.get_raw("k0");
                    assert!(
                        keys.iter().all(|key| seen.get_raw(key) == first),
                        "a snapshot shows half a commit"
                    );
                    let picked = state.snapshot_values(&names);
                    assert!(picked.values().all(|value| *value == picked["k0"]), "half a commit is picked");
                    // Single reads are ordered: a later one never shows an older commit.
                    let before: u64 = state.get("k3").unwrap();
                    assert!(state.get::<u64>("k17").unwrap() >= before, "k17 lags behind k3");
                }
            });
        }
        let view = state.with_delta_tracking();
        for round in 1..3_000 {
            view.update(keys.iter().map(|key| (key, round)));
            view.commit();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_rename_never_hides_the_value() {
    let state = State::new();
    state.set("risk", 1);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(state.get::<u32>("risk"), Some(1), "it is always under one of the two keys");
            }
        });
        for _ in 0..20_000 {
            state.rename("risk", "derived:risk");
            state.rename("derived:risk", "risk");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_write_waits_for_a_modify_in_progress_and_reads_do_not() {
    ends(|| {
        let state = State::new();
        state.set("k", 1);
        let (inside, entered) = mpsc::channel();
        let other = state.clone();
        let modifier = thread::spawn(move || {
            other.modify("k", 0, |n: i32| {
                inside.send(()).unwrap();
                thread::sleep(Duration::from_millis(50));
                n + 1
            })
        });
        entered.recv().unwrap();
        assert_eq!(state.get::<i32>("k"), Some(1), "a read sees the old value meanwhile");
        state.set("other", true);
        state.set("k", 100);
        assert_eq!(modifier.join().unwrap(), 2);
        assert_eq!(state.get::<i32>("k"), Some(100), "the set came after the whole modify");
    });
}

#[test]
fn a_closure_may_use_the_rest_of_the_state() {
    ends(|| {
        let state = State::new();
        state.set("price", 20);
        state.set("list", json!([1]));
        let total = state.modify("total", 0, |total: i32| {
            state.set("seen", true);
            state.modify("steps", 0, |n: i32| n + 1);
            let view = state.with_delta_tracking();
            view.set("total", 5);
            view.rollback();
            total + state.get::<i32>("price").unwrap()
        });
        assert_eq!(total, 20);
        let nested = state.with("list", |list| {
            state.set("list", 2);
            state.modify("list", 0, |n: i32| n + 1);
            list.clone()
        });
        assert_eq!((nested, state.get::<i32>("list")), (Some(json!([1])), Some(3)));
    });
}

#[test]
fn writing_the_key_being_modified_is_an_error() {
    ends(|| {
        let state = State::new();
        state.set("k", 1);
        state.set("other", 2);
        type Attempt = (&'static str, fn(&State) -> Result<(), StateError>);
        let attempts: [Attempt; 9] = [
            ("set", |s| s.try_set("k", 2)),
            ("modify", |s| s.try_modify("k", 0, |n: i32| n).map(drop)),
            ("remove", |s| s.try_remove("k").map(drop)),
            ("rename from", |s| s.try_rename("k", "x").map(drop)),
            ("rename to", |s| s.try_rename("other", "k").map(drop)),
            ("merge", |s| s.try_merge(&s.pick(&["k"]))),
            ("clear_prefix", |s| s.try_clear_prefix("").map(drop)),
            ("set_default", |s| s.try_set_default("k", 0).map(drop)),
            ("commit", |s| {
                let view = s.with_delta_tracking();
                view.set("k", 3);
                view.try_commit()
            }),
        ];
        for (name, attempt) in attempts {
            let new = state.modify("k", 0, |n: i32| {
                let error = attempt(&state).expect_err(name);
                assert!(matches!(&error, StateError::Reentrant { key } if key == "k"), "{name}: {error}");
                n + 1
            });
            assert_eq!(state.get::<i32>("k"), Some(new), "{name}");
        }
        assert_eq!(Value::from(state.to_map()), json!({"k": 10, "other": 2}));
        let view = state.with_delta_tracking();
        view.set("k", 1);
        view.modify("k", 0, |n: i32| {
            assert!(matches!(view.try_rollback(), Err(StateError::Reentrant { .. })));
            view.commit();
            n + 1
        });
        assert_eq!((state.get::<i32>("k"), view.get::<i32>("k")), (Some(1), Some(2)), "commit, then modify");
    });
}

#[test]
fn a_reentrant_set_panics_and_leaves_the_state_usable() {
    ends(|| {
        let state = State::new();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            state.modify("k", 0, |_: i32| {
                state.set("k", 1);
                2
            })
        }))
        .unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("state key `k` is being modified by the closure"), "{message}");
        assert!(!state.contains("k"));
        assert_eq!(state.modify("k", 0, |n: i32| n + 1), 1);
    });
}

#[test]
fn a_panicking_closure_changes_nothing_and_frees_the_key() {
    ends(|| {
        let state = State::new();
        state.set("k", 1);
        assert!(
            catch_unwind(AssertUnwindSafe(|| state.modify("k", 0, |_: i32| panic!("on purpose")))).is_err()
        );
        assert_eq!(state.modify("k", 0, |n: i32| n + 1), 2);
    });
}

#[test]
fn two_closures_that_wait_for_each_other_are_an_error() {
    ends(|| {
        for _ in 0..200 {
            let state = State::new();
            let both_inside = Arc::new(Barrier::new(2));
            let run = |mine: &'static str, theirs: &'static str| {
                let (state, both_inside) = (state.clone(), both_inside.clone());
                thread::spawn(move || {
                    state.modify(mine, 0, |n: i32| {
                        both_inside.wait();
                        match state.try_modify(theirs, 0, |n: i32| n + 10) {
                            Ok(_) => n + 1,
                            Err(StateError::Busy { .. }) => n + 2,
                            Err(other) => panic!("{other}"),
                        }
                    })
                })
            };
            let (a, b) = (run("a", "b"), run("b", "a"));
            let ends: Vec<i32> = [a, b].into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(ends.contains(&2), "at least one of them is refused");
        }
    });
}

#[test]
fn a_closure_that_waits_for_a_thread_that_waits_for_it_ends() {
    ends(|| {
        let state = State::new();
        let result = state.modify("k", 0, |n: i32| {
            let other = state.clone();
            let refused = thread::spawn(move || other.try_set("k", 5)).join().unwrap();
            assert!(matches!(refused, Err(StateError::Busy { .. })));
            n + 1
        });
        assert_eq!((result, state.get::<i32>("k")), (1, Some(1)));
    });
}

#[test]
fn merging_with_itself_or_its_views_ends() {
    ends(|| {
        let state = State::new();
        state.update([("a", 1), ("b", 2)]);
        let view = state.with_delta_tracking();
        view.set("c", 3);
        let inner = view.with_delta_tracking();
        inner.remove("a");
        state.merge(&state);
        view.merge(&view);
        state.merge(&view);
        view.merge(&state);
        inner.merge(&inner);
        state.merge(&inner);
        assert_eq!(state.keys(), ["a", "b", "c"]);
    });
}

#[test]
fn everything_at_once_ends() {
    ends(|| {
        let state = State::new();
        let views: Vec<State> = (0..3).map(|_| state.with_delta_tracking()).collect();
        on_all_threads(|number| {
            let view = &views[number % views.len()];
            for step in 0..300 {
                let key = format!("app:{}", step % 7);
                match (step + number) % 8 {
                    0 => state.set(&key, step),
                    1 => drop(state.modify(&key, 0, |n: i64| n + 1)),
                    2 => view.merge(&state),
                    3 => view.commit(),
                    4 => state.merge(view),
                    5 => drop(state.rename(&key, "app:0")),
                    6 => drop((state.clear_prefix("app:"), view.remove(&key))),
                    _ => drop((view.modify(&key, 0, |n: i64| n + state.len() as i64), view.rollback())),
                }
            }
        });
        assert_eq!(state.keys().len(), state.snapshot().iter().count(), "index and tables agree");
    });
}

#[test]
fn writes_of_many_keys_get_their_turn_among_busy_closures() {
    ends(|| {
        let state = State::new();
        let view = state.with_delta_tracking();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..4 {
                let (state, view, stop) = (&state, &view, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        for target in [state, view] {
                            target.modify(&format!("k{number}"), 0, |n: u64| {
                                thread::sleep(Duration::from_millis(1));
                                n + 1
                            });
                        }
                    }
                });
            }
            for round in 0..20 {
                let all = (0..4).map(|number| (format!("k{number}"), round));
                state.update(all.clone());
                view.update(all);
                view.commit();
                state.clear_prefix("k");
                state.rename("k0", "k1");
                view.rollback();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn merging_with_itself_or_a_view_loses_no_update() {
    let state = State::new();
    let view = state.with_delta_tracking();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                state.merge(&state);
                state.merge(&view);
            }
        });
        for _ in 0..5_000 {
            state.modify("n", 0u64, |n| n + 1);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(state.get::<u64>("n"), Some(5_000));
}
