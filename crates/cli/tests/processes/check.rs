//! What must be there when the eight are done.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use sessile_session::{ChangeWindow, EventWindow, ScopeKey, Session, SessionService};

use crate::child::{COMMON, turn};
use crate::test_store::{TestStore, block_on, service, shared};
use crate::{ALL, EACH, PREFIXES, PROCESSES};

/// Each change added one, so in each scope every number up to the last was the answer to exactly
/// one of them.
pub(crate) fn each_result_was_seen_once(seen: &[[u32; 3]]) {
    for (scope, prefix) in PREFIXES.iter().enumerate() {
        let mut numbers: Vec<u32> = seen.iter().map(|of_scopes| of_scopes[scope]).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=ALL), "{prefix}sum was answered as {numbers:?}");
    }
}

/// The counters, and the history of what counted them.
pub(crate) fn counters_are_complete(store: &TestStore) {
    block_on(async {
        let service = service(&store.url).await;
        let session = stored(&service).await;
        check_session(&service, &session).await;
        check_history(&service, ALL.into()).await;
    });
}

/// What operations of all processes left.
pub(crate) fn everything_is_there(store: &TestStore) {
    block_on(async {
        let service = service(&store.url).await;
        let session = stored(&service).await;
        let turns = || (0..PROCESSES).flat_map(|process| (0..EACH).map(move |n| turn(process, n)));
        for prefix in PREFIXES {
            let of = |index: usize| {
                turns().filter(move |(_, prefixes)| prefixes[index] == prefix).map(|(item, _)| item)
            };
            check_list(&session, &format!("{prefix}log"), of(0).collect());
            check_list(&session, &format!("{prefix}set"), of(1).chain([COMMON]).collect());
            let fields: BTreeMap<String, i64> =
                session.state().get(&format!("{prefix}fields")).expect("an object");
            let expected = of(2).map(|item| (item.to_string(), item)).collect();
            assert_eq!(fields, expected, "{prefix}fields");
        }
        for key in ["user:more", "app:more"] {
            assert_eq!(session.state().get(key), Some(ALL / 2), "{key}");
        }
        check_session(&service, &session).await;
        check_history(&service, u64::from(ALL + ALL / 2)).await;
    });
}

/// A list has these items, each once.
fn check_list(session: &Session, key: &str, expected: BTreeSet<i64>) {
    let found: Vec<i64> = session.state().get(key).unwrap_or_else(|| panic!("{key} is no list"));
    assert_eq!(found.len(), expected.len(), "{key}: each item once");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{key}");
}

async fn stored(service: &SessionService) -> Session {
    let session = service.get(&shared(), EventWindow::ALL).await.expect("the session is read");
    session.expect("the session exists")
}

/// Counters are complete, and the session's events lead to its state.
async fn check_session(service: &SessionService, session: &Session) {
    for prefix in PREFIXES {
        assert_eq!(session.state().get(&format!("{prefix}sum")), Some(ALL), "{prefix}sum");
    }
    let versions = session.events().iter().map(|event| event.version);
    assert!(versions.eq(1..=u64::from(ALL)), "the session has gaps");
    let mut own = session.state().to_map();
    own.retain(|key, _| !key.starts_with("user:") && !key.starts_with("app:"));
    let folded = service.state_at(session.key(), session.version()).await.expect("the events are read");
    assert_eq!(json!(own), json!(folded), "the state is the fold of the events");
}

/// Each change of shared state is in its history, and undoing all of them leads back to nothing.
async fn check_history(service: &SessionService, changes: u64) {
    let app = ScopeKey::App("shop".to_owned());
    for scope in [app, ScopeKey::User("shop".to_owned(), "ada".to_owned())] {
        let found = service.scope_state(&scope).await.expect("the state is read");
        assert_eq!(found.version, changes, "{scope}: one version for each change");
        let history = service.store().scope_changes(&scope, ChangeWindow::ALL).await.expect("it is read");
        assert!(history.iter().map(|change| change.version).eq((1..=changes).rev()), "{scope} has gaps");
        let mut state = (*found.state).clone();
        for change in &history {
            change.undo(&mut state).expect("the change was made");
        }
        assert!(state.is_empty(), "{scope}: {state:?} was never set");
    }
}
