//! Rewinding a session together with its artifacts.

use std::collections::BTreeMap;

use sessile_session::{Rewind, Session, SessionError, SessionKey, SessionService, Version};

use crate::content::tombstone;
use crate::error::ArtifactError;
use crate::service::{ArtifactKey, ArtifactService, NewArtifact};

/// Why a rewind failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// The session could not be rewound.
    #[error(transparent)]
    Session(#[from] SessionError),

    /// An artifact could not be restored.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// Rewinds a session to the time before an invocation, as [`SessionService::rewind`] does, and
/// restores the session's artifacts of that time: as new versions, so that nothing is deleted. An
/// artifact that did not exist then reads as absent. Artifacts of the user (`user:`) are not
/// changed.
///
/// If the session is changed meanwhile, the artifacts get their newest content back.
///
/// # Errors
///
/// The errors of [`SessionService::rewind`], or that an artifact could not be read or saved.
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

/// Saves the content of a version, or a tombstone, as a new version; returns the new number.
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
