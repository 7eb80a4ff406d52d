//! The operations of `State`, written once and compiled for each library.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::measure::{Row, Runner, on_two_threads};

/// A hundred items, as a tool's result may have.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Item {
    id: u32,
    name: String,
    price: f64,
    tags: Vec<String>,
}

fn large() -> Map<String, Value> {
    (0..100)
        .map(|id| {
            let item = Item {
                id,
                name: format!("item {id}"),
                price: f64::from(id) * 1.25,
                tags: vec!["a".into(), "b".into()],
            };
            (format!("item_{id}"), json!(item))
        })
        .collect()
}

/// The operations by name, for one library.
macro_rules! operations {
    ($module:ident, $state:ty, snapshot = $snapshot:ident) => {
        mod $module {
            use std::collections::HashMap;
            use std::hint::black_box;

            use super::*;

            type State = $state;

            /// The peers' newer version returns results where the others return nothing.
            fn done<T>(_: T) {}

            /// A state with 100 keys of the usual kinds.
            fn usual() -> State {
                let state = State::new();
                for n in 0..20 {
                    done(state.set(format!("app:setting_{n}"), n));
                    done(state.set(format!("user:preference_{n}"), "some text"));
                    done(state.set(format!("field_{n}"), n * 2));
                    done(state.set(format!("turn:note_{n}"), "some text"));
                    done(state.set(format!("derived:score_{n}"), 0.5));
                }
                done(state.set("turn_count", 5u32));
                done(state.set("large", large()));
                state
            }

            /// A state with 1000 keys, 20 of them in the app scope.
            fn thousand() -> State {
                let state = State::new();
                for n in 0..980 {
                    done(state.set(format!("some_key_{n}"), n));
                }
                for n in 0..20 {
                    done(state.set(format!("app:setting_{n}"), n));
                }
                state
            }

            fn all_in_scope() -> State {
                let state = State::new();
                for n in 0..1000 {
                    done(state.set(format!("app:setting_{n}"), n));
                }
                state
            }

            fn one<T>(state: State, call: impl Fn(&State, u64) -> T + 'static) -> Runner {
                Runner::One(Box::new(move |number| done(black_box(call(&state, number)))))
            }

            pub(super) fn runners() -> Vec<Runner> {
                const OWN: [[&str; 4]; 2] =
                    [["a_one", "a_two", "a_three", "a_four"], ["b_one", "b_two", "b_three", "b_four"]];
                vec![
                    one(usual(), |s, _| s.get::<u32>("turn_count")),
                    one(usual(), |s, _| s.with("turn_count", |v| v.as_u64())),
                    one(usual(), |s, n| done(s.set("turn_count", n as u32))),
                    one(usual(), |s, _| done(s.modify("turn_count", 0u32, |n| n.wrapping_add(1)))),
                    one(usual(), |s, _| s.get::<f64>("score_7")),
                    one(usual(), |s, _| s.app().get::<u32>("setting_7")),
                    one(thousand(), |s, _| s.app().keys()),
                    one(all_in_scope(), |s, _| s.app().keys()),
                    one(usual(), |s, _| s.get_raw("large")),
                    one(usual(), |s, _| s.get::<HashMap<String, Item>>("large")),
                    one(thousand(), |s, _| s.$snapshot()),
                    one(usual(), |s, number| {
                        let view = s.with_delta_tracking();
                        for key in OWN.iter().flatten().chain(&["turn_count", "field_1"]) {
                            done(view.set(*key, number));
                        }
                        view.commit();
                    }),
                    on_two_threads(usual, |s, thread, n| done(s.set(OWN[thread][n as usize % 4], n))),
                    on_two_threads(usual, |s, thread, n| {
                        done(s.modify(OWN[thread][n as usize % 4], 0u64, |n| n + 1))
                    }),
                ]
            }
        }
    };
}

operations!(sessile, sessile_state::State, snapshot = snapshot);
operations!(peer_06, gemini_adk_06::State, snapshot = to_hashmap);
operations!(peer_40, gemini_adk_40::State, snapshot = to_hashmap);

const NAMES: [&str; 14] = [
    "`get` of a u32",
    "`with` of a u32",
    "`set` of a u32",
    "`modify` of a u32",
    "`get` that falls back to `derived:`",
    "`app().get`",
    "`app().keys()`: 20 of 1000 keys",
    "`app().keys()`: all of 1000 keys",
    "`get_raw` of a 100-item object",
    "`get::<T>` of a 100-item object",
    "whole-state snapshot of 1000 keys",
    "delta view: 10 writes and `commit`",
    "`set`, two threads, own keys",
    "`modify`, two threads, own keys",
];

pub fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = NAMES.map(|name| Row { name, runners: Vec::new() }).into();
    for runners in [sessile::runners(), peer_06::runners(), peer_40::runners()] {
        for (row, runner) in rows.iter_mut().zip(runners) {
            row.runners.push(runner);
        }
    }
    rows
}
