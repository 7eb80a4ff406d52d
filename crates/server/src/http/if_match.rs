//! The header `If-Match`: a change is made only if the stored version is one that the client knows.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use sessile_session::{EventWindow, Expect, ScopeKey, SessionKey, SessionService, Version};

use super::error::ApiError;
use super::etag::{NEVER, Tag};

/// What a request expects to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// No condition: the header is missing, or it is `*`.
    Anything,
    /// One of these versions. Weak tags and tags that Sessile never issued are left out, because
    /// they match nothing: `If-Match` compares strongly.
    OneOf(Vec<Tag>),
}

impl IfMatch {
    /// What a commit to a session expects.
    pub(crate) async fn session(
        &self,
        sessions: &SessionService,
        key: &SessionKey,
    ) -> Result<Expect, ApiError> {
        match self {
            Self::Anything => Ok(Expect::default()),
            Self::OneOf(tags) => match &tags[..] {
                [] => Ok(Expect { session: Some(NEVER), ..Expect::default() }),
                [tag] => Ok(tag.expect()),
                // The store compares with one version. A read finds the one that may match; if none
                // does, the store refuses any of them.
                [first, ..] => {
                    let current = sessions.get(key, EventWindow::NONE).await?;
                    let current = current.map(|session| Tag::from(&session));
                    let tag = current.filter(|current| tags.contains(current)).unwrap_or(*first);
                    Ok(tag.expect())
                }
            },
        }
    }

    /// The version that a change of shared state expects.
    pub(crate) async fn scope(
        &self,
        sessions: &SessionService,
        scope: &ScopeKey,
    ) -> Result<Option<Version>, ApiError> {
        let Self::OneOf(tags) = self else { return Ok(None) };
        let shared_state = tags.iter().filter(|tag| **tag == Tag::shared(tag.version));
        let versions: Vec<Version> = shared_state.map(|tag| tag.version).collect();
        match versions[..] {
            [] => Ok(Some(NEVER)),
            [version] => Ok(Some(version)),
            [first, ..] => {
                let current = sessions.scope_state(scope).await?.version;
                Ok(Some(if versions.contains(&current) { current } else { first }))
            }
        }
    }

    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let values: Vec<_> = headers.get_all(header::IF_MATCH).iter().collect();
        if values.is_empty() {
            return Ok(Self::Anything);
        }
        let texts: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let text = texts.join(",");
        if text.trim() == "*" {
            return Ok(Self::Anything);
        }
        let wrong = || ApiError::BadRequest("If-Match must be *, or ETags in their quotes".to_owned());
        tags(&text).map(Self::OneOf).ok_or_else(wrong)
    }
}

/// The tags of a list that may match; `None` if it is not a list of tags.
fn tags(text: &str) -> Option<Vec<Tag>> {
    let (mut tags, mut rest, mut count) = (Vec::new(), text, 0);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return (count > 0).then_some(tags);
        }
        let (is_weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (tag, behind) = quoted.strip_prefix('"')?.split_once('"')?;
        rest = behind.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
        count += 1;
        tags.extend(Tag::parse(tag).filter(|tag| !is_weak && !tags.contains(tag)));
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::of(&parts.headers)
    }
}

#[cfg(test)]
mod tests {
    use super::tags;

    #[test]
    fn lists_are_read_and_what_is_weak_or_foreign_matches_nothing() {
        let read =
            |text| tags(text).map(|tags| tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        assert_eq!(read("\"5-a\"").as_deref(), Some("5-a"));
        assert_eq!(read("\"5-a\" , \"6-a\",\"5-a\"").as_deref(), Some("5-a 6-a"));
        assert_eq!(read("W/\"5-a\", \"nonsense\", \"a,b\"").as_deref(), Some(""));
        assert_eq!(read("W/\"5\", \"6\"").as_deref(), Some("6"));
        for wrong in ["", ",", "5", "soon", "\"5", "\"5\" \"6\"", "\"5\"x", "w/\"5\"", "*, \"5\""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
