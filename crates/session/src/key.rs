use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sessile_state::Scope;

/// The address of a session. An id is unique only under its application and user, so nothing in
/// Sessile takes a bare id. Cloning it copies no text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(Arc<Parts>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Parts {
    app: String,
    user: String,
    id: String,
}

/// The longest id of any kind, in characters.
pub const MAX_ID: usize = 128;

impl SessionKey {
    /// An address; white space around the session's id is trimmed.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] names the part that is blank, padded, too long, or holds U+0000.
    pub fn new(app: impl Into<String>, user: impl Into<String>, id: &str) -> Result<Self, InvalidId> {
        let (app, user) = (app.into(), user.into());
        check_app(&app)?;
        check_user(&user)?;
        let id = id.trim().to_owned();
        check("session id", &id)?;
        Ok(Self(Arc::new(Parts { app, user, id })))
    }

    /// The address of a session that a store found, without validation. google-adk stores ids as
    /// they are given, including blank or padded ones; such a session can be listed, read and
    /// deleted under its id.
    pub fn from_stored(app: impl Into<String>, user: impl Into<String>, id: impl Into<String>) -> Self {
        Self(Arc::new(Parts { app: app.into(), user: user.into(), id: id.into() }))
    }

    /// The application.
    pub fn app(&self) -> &str {
        &self.0.app
    }

    /// The user.
    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// The session's id, unique under application and user.
    pub fn id(&self) -> &str {
        &self.0.id
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionKey").field(&self.app()).field(&self.user()).field(&self.id()).finish()
    }
}

/// For messages and logs: control characters are escaped, so that an id cannot forge a log line.
impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [app, user, id] = [self.app(), self.user(), self.id()].map(one_line);
        write!(f, "{app}/{user}/{id}")
    }
}

fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// State that sessions share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeKey {
    /// Of an application.
    App(String),
    /// Of a user of an application.
    User(String, String),
}

impl ScopeKey {
    /// The application's state that a session sees.
    pub fn app_of(key: &SessionKey) -> Self {
        Self::App(key.app().to_owned())
    }

    /// The user's state that a session sees.
    pub fn user_of(key: &SessionKey) -> Self {
        Self::User(key.app().to_owned(), key.user().to_owned())
    }

    /// The application.
    pub fn app(&self) -> &str {
        match self {
            Self::App(app) | Self::User(app, _) => app,
        }
    }

    /// The scope of its keys.
    pub fn scope(&self) -> Scope {
        match self {
            Self::App(_) => Scope::App,
            Self::User(..) => Scope::User,
        }
    }
}

/// For messages: `application shop`, `user ada of application shop`.
impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(app) => write!(f, "application {app}"),
            Self::User(app, user) => write!(f, "user {user} of application {app}"),
        }
    }
}

/// Where something is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// State that sessions share.
    Scope(ScopeKey),
    /// A session.
    Session(SessionKey),
}

impl Address {
    /// The application that it belongs to.
    pub fn app(&self) -> &str {
        match self {
            Self::Scope(ScopeKey::App(app) | ScopeKey::User(app, _)) => app,
            Self::Session(key) => key.app(),
        }
    }
}

/// Whether this can be the name of an application.
pub(crate) fn check_app(app: &str) -> Result<(), InvalidId> {
    check("app name", app)
}

/// Whether this can be the id of a user.
pub(crate) fn check_user(user: &str) -> Result<(), InvalidId> {
    check("user id", user)
}

/// Whether this can be the id of an event.
pub(crate) fn check_event(id: &str) -> Result<(), InvalidId> {
    check("event id", id)
}

fn check(what: &'static str, id: &str) -> Result<(), InvalidId> {
    // Fast path: most ids consist of visible ASCII characters. The fold has no early exit, so that
    // it is vectorized.
    let is_plain = id.bytes().fold(true, |is_plain, byte| is_plain & byte.is_ascii_graphic());
    if is_plain && (1..=MAX_ID).contains(&id.len()) {
        return Ok(());
    }
    let problem = if id.trim().is_empty() {
        "is blank"
    } else if id.trim() != id {
        "begins or ends with white space"
    } else if id.len() > MAX_ID && id.chars().count() > MAX_ID {
        "is longer than 128 characters"
    } else if id.contains('\0') {
        "contains U+0000"
    } else {
        return Ok(());
    };
    Err(InvalidId { what, id: id.chars().take(MAX_ID).collect(), problem })
}

/// An id that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {id:?} {problem}; use 1 to 128 characters without white space around them")]
pub struct InvalidId {
    what: &'static str,
    /// At most its first 128 characters.
    id: String,
    problem: &'static str,
}
