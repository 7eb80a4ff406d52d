//! Random sequences of changes through several views, against lists of changes that are made one
//! after the other.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use sessile_state::{Change, Delta, Operation, OperationError, Operations, SharedValue, State, StateError};

use crate::json::{Json, Op, any_json, op};

#[derive(Debug, Clone)]
enum Step {
    Set(Json),
    Remove,
    Operate(Op),
    Modify,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any_json().prop_map(Step::Set),
        1 => Just(Step::Remove),
        8 => op().prop_map(Step::Operate),
        1 => Just(Step::Modify),
    ]
}

const KEYS: [&str; 4] = ["a", "b", "user:c", "derived:a"];

/// Below each of the views 1 to 4: the state itself (0) three times, and the first view once.
const BELOW: [usize; 5] = [0, 0, 0, 0, 1];

#[derive(Debug, Clone)]
enum Action {
    /// A change through a view, or of the state itself.
    Change(usize, &'static str, Step),
    Commit(usize),
    Rollback(usize),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => (0..BELOW.len(), prop::sample::select(&KEYS[..]), step()).prop_map(|(place, key, step)| Action::Change(place, key, step)),
        3 => (1..BELOW.len()).prop_map(Action::Commit),
        1 => (1..BELOW.len()).prop_map(Action::Rollback),
    ]
}

/// Every view as the list of its changes, which are made one after the other when it is committed.
#[derive(Debug, Clone, Default)]
struct Model {
    state: BTreeMap<String, Json>,
    pending: [BTreeMap<String, Vec<Step>>; 5],
}

impl Model {
    /// What a view shows under a key.
    fn shown(&self, place: usize, key: &str) -> Option<Json> {
        if place == 0 {
            return self.state.get(key).cloned();
        }
        let below = self.shown(BELOW[place], key);
        match self.pending[place].get(key) {
            None => below,
            Some(steps) => folded(steps, below.as_ref()).unwrap_or(below),
        }
    }

    /// Makes a change; tells whether it can be made.
    fn change(&mut self, place: usize, key: &str, step: &Step) -> bool {
        let shown = self.shown(place, key);
        let step = match step {
            Step::Modify => Step::Set(modified(shown.as_ref())),
            Step::Remove if shown.is_none() => return true,
            Step::Operate(op) if op.apply(shown.as_ref()).is_none() => return false,
            step => step.clone(),
        };
        if place == 0 {
            let result = folded(std::slice::from_ref(&step), shown.as_ref()).expect("it was tried above");
            put(&mut self.state, key, result);
        } else {
            self.pending[place].entry(key.to_owned()).or_default().push(step);
        }
        true
    }

    /// Commits a view; tells whether it can be committed. If not, nothing changes.
    fn commit(&mut self, place: usize) -> bool {
        let mut after = self.clone();
        for (key, steps) in std::mem::take(&mut after.pending[place]) {
            let steps = effective(&steps);
            if BELOW[place] == 0 {
                let Some(result) = folded(steps, self.state.get(&key)) else { return false };
                put(&mut after.state, &key, result);
            } else {
                let below = after.pending[BELOW[place]].entry(key).or_default();
                below.extend_from_slice(steps);
                // On a value that is set below, an operation can be refused at once.
                let replaced = effective(below);
                if !matches!(replaced[0], Step::Operate(_)) && folded(replaced, None).is_none() {
                    return false;
                }
            }
        }
        *self = after;
        true
    }
}

/// The changes since the last one that replaces the value.
fn effective(steps: &[Step]) -> &[Step] {
    let last = steps.iter().rposition(|step| !matches!(step, Step::Operate(_)));
    &steps[last.unwrap_or(0)..]
}

/// What changes make of a value, one after the other; `None` if one of them cannot be made.
fn folded(steps: &[Step], value: Option<&Json>) -> Option<Option<Json>> {
    let mut value = value.cloned();
    for step in effective(steps) {
        value = match step {
            Step::Set(new) => Some(new.clone()),
            Step::Remove => None,
            Step::Operate(op) => Some(op.apply(value.as_ref())?),
            Step::Modify => panic!("it was computed when it was made"),
        };
    }
    Some(value)
}

fn put(state: &mut BTreeMap<String, Json>, key: &str, value: Option<Json>) {
    match value {
        Some(value) => drop(state.insert(key.to_owned(), value)),
        None => drop(state.remove(key)),
    }
}

/// What [`Step::Modify`] makes of a value.
fn modified(held: Option<&Json>) -> Json {
    match held {
        Some(Json::Integer(n)) if i32::try_from(*n).is_ok() => Json::Integer(n * 2),
        _ => Json::Integer(1),
    }
}

/// The same for a state.
fn modify(state: &State, key: &str) {
    state.modify(key, json!(null), |held| match held.as_i64().filter(|n| i32::try_from(*n).is_ok()) {
        Some(n) => json!(n * 2),
        None => json!(1),
    });
}

fn make(state: &State, key: &str, step: &Step) -> bool {
    match step {
        Step::Set(value) => state.try_set_raw(key, value.shared()).is_ok(),
        Step::Remove => state.try_remove(key).is_ok(),
        Step::Operate(op) => state.try_operate(key, op.operation()).is_ok(),
        Step::Modify => {
            modify(state, key);
            true
        }
    }
}

/// Compares every way of reading a view with the model.
fn shows(view: &State, place: usize, model: &Model) -> Result<(), TestCaseError> {
    let expected: BTreeMap<&str, Json> =
        KEYS.iter().filter_map(|key| Some((*key, model.shown(place, key)?))).collect();
    let snapshot = view.snapshot();
    let found: BTreeMap<&str, Json> = KEYS
        .iter()
        .filter_map(|key| {
            Some((*key, Json::parse(&snapshot.iter().find(|(name, _)| name == key)?.1.to_string())))
        })
        .collect();
    prop_assert_eq!(&found, &expected, "view {}", place);
    prop_assert_eq!(view.keys(), expected.keys().copied().collect::<Vec<_>>());
    prop_assert_eq!(view.len(), expected.len());
    for key in KEYS {
        // `a` is read from `derived:a` if it is absent.
        let shown = expected.get(key).or_else(|| expected.get(format!("derived:{key}").as_str()));
        let parsed = |value: SharedValue| Json::parse(&value.to_string());
        prop_assert_eq!(&view.get_raw(key).map(parsed), &shown.cloned());
        prop_assert_eq!(view.contains(key), shown.is_some());
        prop_assert_eq!(view.pick(&[key]).get_raw(key).map(parsed), shown.cloned());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn views_over_one_state_are_made_one_after_the_other(actions in prop::collection::vec(action(), 0..40)) {
        let base = State::new();
        let mut states = vec![base.clone()];
        for place in 1..BELOW.len() {
            states.push(states[BELOW[place]].with_delta_tracking());
        }
        let mut model = Model::default();
        for action in &actions {
            match action {
                Action::Change(place, key, step) => {
                    let expected = model.change(*place, key, step);
                    prop_assert_eq!(make(&states[*place], key, step), expected, "{:?}", action);
                }
                Action::Commit(place) => {
                    let pending = states[*place].delta();
                    let expected = model.commit(*place);
                    let committed = states[*place].try_commit();
                    prop_assert_eq!(committed.is_ok(), expected, "{:?}: {:?}", action, committed);
                    if expected {
                        prop_assert!(!states[*place].has_delta());
                    } else {
                        let is_refused = matches!(committed, Err(StateError::Operation { .. }));
                        prop_assert!(is_refused);
                        prop_assert_eq!(states[*place].delta(), pending, "what is refused stays pending");
                    }
                }
                Action::Rollback(place) => {
                    model.pending[*place].clear();
                    states[*place].rollback();
                }
            }
            for (place, state) in states.iter().enumerate() {
                shows(state, place, &model)?;
            }
        }
    }

    #[test]
    fn a_delta_does_what_its_changes_do_one_after_the_other(
        held in prop::option::of(any_json()),
        steps in prop::collection::vec(step().prop_filter("of a delta", |step| !matches!(step, Step::Modify)), 1..6),
        later in prop::collection::vec(step().prop_filter("of a delta", |step| !matches!(step, Step::Modify)), 1..6),
    ) {
        let change = |step: &Step| match step {
            Step::Set(value) => Change::Set(value.shared()),
            Step::Remove => Change::Remove,
            Step::Operate(op) => Change::Operate(op.operation().into()),
            Step::Modify => unreachable!(),
        };
        let composed = |steps: &[Step]| {
            let mut delta = Delta::new();
            for step in steps {
                match change(step) {
                    Change::Set(value) => delta.set("k", value),
                    Change::Remove => delta.remove("k"),
                    Change::Operate(operations) => delta.try_operate("k", operations)?,
                }
            }
            Ok::<_, StateError>(delta)
        };
        let all: Vec<Step> = steps.iter().chain(&later).cloned().collect();
        let expected = folded(&all, held.as_ref());
        // An operation that a set before it refuses is refused at once, whatever is stored.
        let whole = composed(&all);
        if let Ok(whole) = &whole {
            let held = held.as_ref().map(Json::shared);
            let result = whole.get("k").unwrap().apply(held.as_ref());
            let result = result.ok().map(|value| value.map(|value| Json::parse(&value.to_string())));
            prop_assert_eq!(&result, &expected);
            let mut state = State::new();
            if let Some(held) = &held {
                state = State::from_iter([("k", held.clone())]);
            }
            prop_assert_eq!(state.try_apply(whole).is_ok(), expected.is_some());
            let resolved = whole.resolved(|_| held.clone());
            prop_assert_eq!(resolved.is_ok(), expected.is_some());
            prop_assert!(resolved.is_ok_and(|delta| !delta.has_operations()) || expected.is_none());
        } else {
            let all_fail = (0..all.len()).any(|end| composed(&all[..=end]).is_err());
            prop_assert!(all_fail);
        }
        if let (Ok(first), Ok(second)) = (composed(&steps), composed(&later)) {
            let mut merged = first.clone();
            let (one, other) = (first.get("k").unwrap(), second.get("k").unwrap());
            match merged.merge(&second) {
                Ok(()) => {
                    prop_assert_eq!(merged.get("k").cloned(), one.then(other).ok());
                    let held = held.as_ref().map(Json::shared);
                    let result = merged.get("k").unwrap().apply(held.as_ref()).ok();
                    let result = result.map(|value| value.map(|value| Json::parse(&value.to_string())));
                    prop_assert_eq!(&result, &expected);
                }
                Err(error) => {
                    let is_refused = matches!(error, StateError::Operation { .. });
                    prop_assert!(is_refused);
                    prop_assert!(one.then(other).is_err());
                    prop_assert_eq!(merged, first, "a refused merge changes nothing");
                }
            }
        }
    }

    #[test]
    fn deltas_and_operations_come_back_from_json(
        changes in prop::collection::btree_map("[a-d:\"é]{0,4}", prop::collection::vec(step(), 1..4), 0..5),
    ) {
        let mut delta = Delta::new();
        for (key, steps) in &changes {
            for step in steps {
                match step {
                    Step::Set(value) => delta.set(key, value.shared()),
                    Step::Remove | Step::Modify => delta.remove(key),
                    Step::Operate(op) => drop(delta.try_operate(key, op.operation())),
                }
            }
        }
        let json = serde_json::to_string(&delta).unwrap();
        let again: Delta = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&again, &delta, "{}", json);
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
        for (_, operations) in delta.operations() {
            let json = serde_json::to_string(operations).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Operations>(&json).unwrap(), operations);
            for operation in operations.iter() {
                let json = serde_json::to_string(operation).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Operation>(&json).unwrap(), operation, "{}", json);
            }
        }
    }

    #[test]
    fn an_operation_never_changes_what_it_refuses(held in any_json(), op in op()) {
        let shared = held.shared();
        match op.operation().apply(Some(&shared)) {
            Ok(result) => prop_assert_eq!(Some(Json::parse(&result.to_string())), op.apply(Some(&held))),
            Err(error) => {
                prop_assert!(op.apply(Some(&held)).is_none(), "{}", error);
                let is_known = matches!(
                    error,
                    OperationError::WrongType { .. } | OperationError::OutOfRange { .. } | OperationError::Bound { .. }
                );
                prop_assert!(is_known);
            }
        }
        prop_assert_eq!(Json::parse(&shared.to_string()), held);
    }
}
