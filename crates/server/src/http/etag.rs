//! Versions as clients see them: in the `ETag` of an answer, and in the ids of a stream.

use std::fmt;

use axum::http::HeaderValue;
use sessile_session::{Appended, Expect, Incarnation, Session, Version};

/// A version of a session, spelled `5-1f3c`: the version, and which of the sessions that had this
/// address it is. Sessions without an incarnation have only the version; so has the state of users
/// and applications, which is never replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) version: Version,
    pub(crate) incarnation: Incarnation,
}

/// A version that is never reached. It is expected in the place of tags that can never be current:
/// the store then refuses the request, but only after it has checked whether the session exists and
/// whether the request is a retry.
pub(crate) const NEVER: Version = i64::MAX as Version;

impl Tag {
    /// A version of shared state.
    pub(crate) fn shared(version: Version) -> Self {
        Self { version, incarnation: Incarnation(0) }
    }

    /// Reads what [`Display`](fmt::Display) writes; every other spelling is another tag, and never
    /// current.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (version, incarnation) = match text.split_once('-') {
            Some((version, incarnation)) => (version, u64::from_str_radix(incarnation, 16).ok()?),
            None => (text, 0),
        };
        let tag = Self { version: version.parse().ok()?, incarnation: Incarnation(incarnation) };
        let is_stored = tag.version < NEVER && i64::try_from(incarnation).is_ok();
        (is_stored && tag.to_string() == text).then_some(tag)
    }

    /// What must be stored for this tag to be current.
    pub(crate) fn expect(self) -> Expect {
        Expect::session(self.incarnation, self.version)
    }

    /// The value of an `ETag` header.
    pub(crate) fn header(self) -> HeaderValue {
        // Digits, a hyphen and quotes are always a header's value.
        HeaderValue::from_str(&format!("\"{self}\"")).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.incarnation {
            Incarnation(0) => write!(f, "{}", self.version),
            incarnation => write!(f, "{}-{incarnation}", self.version),
        }
    }
}

impl From<&Session> for Tag {
    fn from(session: &Session) -> Self {
        Self { version: session.version(), incarnation: session.incarnation() }
    }
}

impl From<&Appended> for Tag {
    fn from(appended: &Appended) -> Self {
        Self { version: appended.version, incarnation: appended.incarnation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_back_in_its_one_spelling() {
        for text in ["0", "5", "5-1", "12-1f3c0000ffff", "9223372036854775806-7fffffffffffffff"] {
            assert_eq!(Tag::parse(text).expect(text).to_string(), text);
        }
        for other in [
            "",
            "-",
            "x",
            "05",
            "+5",
            "5-",
            "5-0",
            "5-01",
            "5-1F",
            "5-g",
            "5--1",
            "5-+1",
            " 5",
            "5-1-1",
            "-1",
            "9223372036854775807",
            "18446744073709551616",
            "1-8000000000000000",
            "1-10000000000000000",
        ] {
            assert_eq!(Tag::parse(other), None, "{other:?}");
        }
    }
}
