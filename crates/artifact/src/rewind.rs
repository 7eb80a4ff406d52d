//! Going back in a session, artifacts included.

use std::collections::BTreeMap;

use sessile_session::{Rewind, Session, SessionError, SessionKey, SessionService, Version};

use crate::content::tombstone;
use crate::error::ArtifactError;
use crate::service::{ArtifactKey, ArtifactService, NewArtifact};

/// Why a rewind was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// The session could not be taken back.
    #[error(transparent)]
    Session(#[from] SessionError),

    /// An artifact could not be brought back.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// Takes back everything since an invocation began, as [`SessionService::rewind`] does, and brings
/// the session's artifacts back to what they were then: as new versions, so that nothing is
/// deleted. An artifact that was not there yet reads as absent. Those of the user (`user:`) stay as
/// they are.
///
/// If the session is changed meanwhile, the artifacts get their newest content back.
///
/// # Errors
///
/// What [`SessionService::rewind`] says, or that an artifact could not be read or saved.
pub async fn rewind(
    sessions: &SessionService,
    artifacts: &dyn ArtifactService,
    key: &SessionKey,
    before_invocation: &str,
) -> Result<Session, RewindError> {
    let mut rewind = sessions.prepare_rewind(key, before_invocation).await?;
    let changed = changed(&rewind);
    let mut result = Ok(());
    for (name, change) in &changed {
        match copy(artifacts, &ArtifactKey::new(key, name), change.before).await {
            Ok(version) => drop(rewind.artifact_delta.insert(name.clone(), version)),
            Err(error) => {
                result = Err(RewindError::from(error));
                break;
            }
        }
    }
    let saved: Vec<String> = rewind.artifact_delta.keys().cloned().collect();
    let session = match result {
        Ok(()) => sessions.commit_rewind(rewind).await.map_err(RewindError::from),
        Err(error) => Err(error),
    };
    if session.is_err() {
        for name in saved {
            copy(artifacts, &ArtifactKey::new(key, &name), Some(changed[&name].now)).await?;
        }
    }
    session
}

/// The version that an artifact had, and the one that it has.
struct Change {
    before: Option<i64>,
    now: i64,
}

/// The artifacts of the session that were saved since.
fn changed(rewind: &Rewind) -> BTreeMap<String, Change> {
    let saved_until = |version: Version| {
        let events = rewind.events().iter().take_while(move |event| event.version <= version);
        let saved = events.flat_map(|event| event.actions.artifact_delta.clone());
        saved.filter(|(name, _)| !name.starts_with("user:")).collect::<BTreeMap<String, i64>>()
    };
    let before = saved_until(rewind.version());
    let now = saved_until(Version::MAX).into_iter();
    now.map(|(name, now)| (before.get(&name).copied(), name, now))
        .filter(|(before, _, now)| *before != Some(*now))
        .map(|(before, name, now)| (name, Change { before, now }))
        .collect()
}

/// Saves the content of a version as a new one, or that there is none; gives the new number.
async fn copy(
    artifacts: &dyn ArtifactService,
    key: &ArtifactKey,
    version: Option<i64>,
) -> Result<i64, ArtifactError> {
    let part = match version.map(u64::try_from) {
        Some(Ok(version)) => artifacts.load(key, Some(version)).await?,
        Some(Err(_)) => {
            let reason = format!("an event says that its version is {version:?}; versions begin with 0");
            return Err(ArtifactError::InvalidContent { name: key.name.clone(), reason });
        }
        None => None,
    };
    let saved = artifacts.save(key, NewArtifact::new(part.unwrap_or_else(tombstone))).await?;
    i64::try_from(saved.version).map_err(crate::error::doing("number a version"))
}
