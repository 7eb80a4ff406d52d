//! Artifacts that are references to other artifacts.

use sessile_session::{Part, SessionKey};

use crate::error::ArtifactError;
use crate::path::USER;
use crate::service::ArtifactKey;

/// The longest chain of references that is followed.
pub(crate) const MOST_HOPS: usize = 5;

const SCHEME: &str = "artifact://";

/// The URI of the artifact that this part refers to, if it does.
pub(crate) fn of(part: &Part) -> Option<&str> {
    let uri = part.file_data.as_ref()?.file_uri.as_deref()?;
    uri.starts_with(SCHEME).then_some(uri)
}

/// The artifact that a URI names, seen from a session: within its user's artifacts, or its own.
///
/// A URI is
/// `artifact://apps/{app}/users/{user}[/sessions/{session}]/artifacts/{name}/versions/{n}`.
///
/// The known prefix is stripped as a whole, so that no part of an id can be mistaken for the
/// layout.
pub(crate) fn resolve(session: &SessionKey, uri: &str) -> Result<(ArtifactKey, u64), &'static str> {
    let (app, user, id) = (session.app(), session.user(), session.id());
    let own = format!("{SCHEME}apps/{app}/users/{user}/");
    let rest = uri.strip_prefix(&own).ok_or("it is not of the same app and user")?;
    let (rest, prefix) = match rest.strip_prefix("artifacts/") {
        Some(rest) => (rest, USER),
        None => {
            let rest = rest.strip_prefix(&format!("sessions/{id}/artifacts/"));
            (rest.ok_or("it is not of the same session")?, "")
        }
    };
    let (name, version) = rest.rsplit_once("/versions/").ok_or("it has no `/versions/` and number")?;
    let version = version.parse().map_err(|_| "its version is not a number")?;
    let name = name.strip_prefix(prefix).unwrap_or(name);
    Ok((ArtifactKey::new(session, format!("{prefix}{name}")), version))
}

/// What a part of the artifact `name` refers to; `None` if it is not a reference.
pub(crate) fn target(
    session: &SessionKey,
    name: &str,
    part: &Part,
) -> Result<Option<(ArtifactKey, u64)>, ArtifactError> {
    let Some(uri) = of(part) else { return Ok(None) };
    resolve(session, uri).map(Some).map_err(|reason| ArtifactError::InvalidReference {
        name: name.to_owned(),
        uri: uri.to_owned(),
        reason: reason.to_owned(),
    })
}

/// Loads an artifact and follows references; `load` loads one artifact without following them.
pub(crate) fn follow(
    key: &ArtifactKey,
    version: Option<u64>,
    load: impl Fn(&ArtifactKey, Option<u64>) -> Result<Option<Part>, ArtifactError>,
) -> Result<Option<Part>, ArtifactError> {
    let mut found = load(key, version)?;
    for _ in 0..MOST_HOPS {
        let Some(part) = &found else { return Ok(None) };
        let Some((next, version)) = target(&key.session, &key.name, part)? else { return Ok(found) };
        found = load(&next, Some(version))?;
    }
    match found.as_ref().and_then(of) {
        None => Ok(found),
        Some(uri) => Err(ArtifactError::InvalidReference {
            name: key.name.clone(),
            uri: uri.to_owned(),
            reason: format!("it is more than {MOST_HOPS} references away"),
        }),
    }
}
