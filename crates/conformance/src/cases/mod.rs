//! The cases by subject.

mod append;
mod change;
mod close;
mod concurrency;
mod create;
mod delete;
mod get;
mod guards;
mod history;
mod idempotence;
mod incarnation;
mod list;
mod numbers;
mod operations;
mod order;
mod refusals;
mod schema;
mod scope;
mod scope_history;
mod shared;
mod transact;
mod values;
mod walk;
mod watch;

use serde_json::{Value, json};
use sessile_session::{
    ChangeWindow, CreateSession, Event, EventActions, EventWindow, ScopeKey, Session, SessionKey,
    SessionService, StateMap,
};
use sessile_state::{Delta, SharedValue, same_value};

use crate::Case;

/// Every case with its name.
pub(crate) fn all() -> impl Iterator<Item = (String, Case)> {
    let subjects = [
        ("append", append::CASES),
        ("change", change::CASES),
        ("close", close::CASES),
        ("concurrency", concurrency::CASES),
        ("create", create::CASES),
        ("delete", delete::CASES),
        ("get", get::CASES),
        ("guards", guards::CASES),
        ("history", history::CASES),
        ("idempotence", idempotence::CASES),
        ("incarnation", incarnation::CASES),
        ("list", list::CASES),
        ("numbers", numbers::CASES),
        ("operations", operations::CASES),
        ("order", order::CASES),
        ("refusals", refusals::CASES),
        ("schema", schema::CASES),
        ("scope", scope::CASES),
        ("scope_history", scope_history::CASES),
        ("shared", shared::CASES),
        ("transact", transact::CASES),
        ("values", values::CASES),
        ("walk", walk::CASES),
        ("watch", watch::CASES),
    ];
    subjects.into_iter().flat_map(|(subject, cases)| {
        cases.iter().map(move |(name, case)| (format!("{subject}::{name}"), *case))
    })
}

/// The list of a subject's cases.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        pub(super) const CASES: &[(&str, crate::Case)] = &[$((stringify!($case), |service| Box::pin($case(service)))),*];
    };
}

pub(crate) use cases;

/// A session `shop/ada/<id>` with this state.
async fn session(service: &SessionService, id: &str, state: Value) -> Session {
    create(service, "shop", "ada", id, state).await
}

async fn create(service: &SessionService, app: &str, user: &str, id: &str, state: Value) -> Session {
    let Value::Object(state) = state else { panic!("initial state is an object") };
    let new = CreateSession::new(app, user).with_id(id).with_state(state);
    service.create(new).await.expect("the session is created")
}

/// The session as it is stored now, with all events.
async fn stored(service: &SessionService, key: &SessionKey) -> Session {
    service.get(key, EventWindow::ALL).await.expect("the session is read").expect("the session exists")
}

/// An event that sets these keys.
fn setting(delta: Value) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta(delta))
}

/// The changes that `build` makes.
fn delta(build: impl FnOnce(&mut Delta)) -> Delta {
    let mut delta = Delta::new();
    build(&mut delta);
    delta
}

/// An event with the changes that `build` makes.
fn changing(build: impl FnOnce(&mut Delta)) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta(delta(build)))
}

/// The event under this id.
fn named(id: &str, event: Event) -> Event {
    Event { id: id.to_owned(), ..event }
}

/// An event with this id that says this text.
fn saying(id: &str, text: &str) -> Event {
    let mut event = Event::new("agent").with_content(sessile_session::Content::text("model", text));
    event.id = id.to_owned();
    event
}

/// The state as JSON.
fn state_of(session: &Session) -> Value {
    session.state().to_map().into()
}

fn ids_of(session: &Session) -> Vec<&str> {
    session.events().iter().map(|event| event.id.as_str()).collect()
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

/// The object of a literal.
fn empty() -> Value {
    json!({})
}

/// The state that all sessions of the tests share.
fn app_scope() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}

/// The state that all sessions of the user ada share.
fn user_scope() -> ScopeKey {
    ScopeKey::User("shop".to_owned(), "ada".to_owned())
}

/// A JSON text as a value with all its digits.
fn value(text: &str) -> SharedValue {
    SharedValue::from_json(text).expect("JSON")
}

/// Keys and values as JSON.
fn json_of(state: &StateMap) -> Value {
    serde_json::to_value(state).expect("state is JSON")
}

/// Whether two states hold the same keys with the same values.
fn same_state(one: &StateMap, other: &StateMap) -> bool {
    let same = |((one_key, one), (other_key, other)): ((&String, _), (&String, _))| {
        one_key == other_key && same_value(one, other)
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// All that is stored for a session: itself with its events and, for the state that it shares,
/// versions, values and history. A call that is refused leaves all of it as it was.
async fn everything(service: &SessionService, key: &SessionKey) -> Value {
    let session = service.get(key, EventWindow::ALL).await.expect("the session is read");
    let mut found = json!({ "session": session, "version": session.as_ref().map(Session::version) });
    for scope in [ScopeKey::app_of(key), ScopeKey::user_of(key)] {
        let state = service.store().scope_state(&scope).await.expect("shared state is read");
        let changes = service
            .store()
            .scope_changes(&scope, ChangeWindow::newest(1000))
            .await
            .expect("its history is read");
        found[scope.to_string()] =
            json!({ "version": state.version, "state": json_of(&state.state), "changes": changes });
    }
    found
}
