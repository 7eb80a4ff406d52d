use std::fmt;
use std::str::FromStr;

/// How long a key lives and which sessions share it, given by the key's prefix.
///
/// Stores keep three of them; [`Temp`](Scope::Temp) never reaches a store. Prefixes are
/// case-sensitive, and any other prefix (`turn:`, `derived:`, `bg:`, `anything:`) is part of a
/// session key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `app:`, shared by all users and sessions of an application.
    App,
    /// `user:`, shared by all sessions of one user of one application.
    User,
    /// No prefix of the others: one session.
    Session,
    /// `temp:`, one invocation; never stored.
    Temp,
}

impl Scope {
    /// All scopes, in the order of their documentation.
    pub const ALL: [Self; 4] = [Self::App, Self::User, Self::Session, Self::Temp];

    /// The scope of a key, and the key's name inside that scope.
    ///
    /// This is the one place where prefixes are taken off.
    ///
    /// ```
    /// use sessile_state::Scope;
    ///
    /// assert_eq!(Scope::of("user:theme"), (Scope::User, "theme"));
    /// assert_eq!(Scope::of("theme"), (Scope::Session, "theme"));
    /// assert_eq!(Scope::of("turn:text"), (Scope::Session, "turn:text"));
    /// assert_eq!(Scope::of("App:x"), (Scope::Session, "App:x"));
    /// ```
    pub fn of(key: &str) -> (Self, &str) {
        for scope in [Self::App, Self::User, Self::Temp] {
            if let Some(name) = key.strip_prefix(scope.prefix()) {
                return (scope, name);
            }
        }
        (Self::Session, key)
    }

    /// The prefix of this scope's keys, with its colon; empty for the session.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::App => "app:",
            Self::User => "user:",
            Self::Session => "",
            Self::Temp => "temp:",
        }
    }

    /// The full key of a name inside this scope.
    ///
    /// ```
    /// use sessile_state::Scope;
    ///
    /// assert_eq!(Scope::App.key("version"), "app:version");
    /// ```
    pub fn key(self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::User => "user",
            Self::Session => "session",
            Self::Temp => "temp",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or_else(|| UnknownScope { given: text.to_owned() })
    }
}

/// A name that is not a scope's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a scope; the scopes are app, user, session and temp, in lower case")]
pub struct UnknownScope {
    given: String,
}
