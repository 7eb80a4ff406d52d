//! The cases by subject.

mod append;
mod concurrency;
mod create;
mod delete;
mod get;
mod history;
mod list;
mod order;
mod scope;
mod transact;
mod values;
mod walk;
mod watch;

use serde_json::{Value, json};
use sessile_session::{CreateSession, Event, EventActions, EventWindow, Session, SessionKey, SessionService};

use crate::Case;

/// Every case with its name.
pub(crate) fn all() -> impl Iterator<Item = (String, Case)> {
    let subjects = [
        ("append", append::CASES),
        ("concurrency", concurrency::CASES),
        ("create", create::CASES),
        ("delete", delete::CASES),
        ("get", get::CASES),
        ("history", history::CASES),
        ("list", list::CASES),
        ("order", order::CASES),
        ("scope", scope::CASES),
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
    let Value::Object(delta) = delta else { panic!("a delta is an object") };
    let mut event = Event::new("agent");
    event.actions = EventActions::from_delta(delta);
    event
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
