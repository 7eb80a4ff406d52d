//! Where an artifact is. The names and ids that it is made from are untrusted input, and are
//! checked here so that no path leads out of its owner's folder.

use sessile_session::SessionKey;

use crate::error::ArtifactError;
use crate::service::ArtifactKey;

/// The prefix of names that belong to the user.
pub(crate) const USER: &str = "user:";

/// The folder in which google-adk keeps the versions of an artifact.
pub(crate) const VERSIONS: &str = "versions";

/// The file that describes a version.
pub(crate) const METADATA: &str = "metadata.json";

/// The longest name, in bytes.
const LONGEST_NAME: usize = 1024;

/// The longest name of a file or folder, in bytes; file systems have this limit.
const LONGEST_SEGMENT: usize = 255;

/// Words with a meaning in the layout on disk. An id without slashes may be one of them.
const LAYOUT: [&str; 5] = ["apps", "users", "sessions", "artifacts", VERSIONS];

/// The owner of artifacts: a session or a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) app: String,
    pub(crate) user: String,
    /// `None` for the artifacts that all sessions of the user see.
    pub(crate) session: Option<String>,
}

/// Where an artifact is: its owner and its path there. All names of an artifact give the same path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArtifactPath {
    pub(crate) owner: Owner,
    /// At least one segment. No segment is empty, `.` or `..`, or contains a separator.
    pub(crate) segments: Vec<String>,
}

impl Owner {
    pub(crate) fn session(session: &SessionKey) -> Result<Self, ArtifactError> {
        check_ids(session)?;
        Ok(Self {
            app: session.app().to_owned(),
            user: session.user().to_owned(),
            session: Some(session.id().to_owned()),
        })
    }

    /// The user of the session.
    pub(crate) fn user(self) -> Self {
        Self { session: None, ..self }
    }

    /// Its path in URIs: `apps/{app}/users/{user}[/sessions/{session}]/artifacts`.
    pub(crate) fn path(&self) -> String {
        let Self { app, user, session } = self;
        match session {
            Some(session) => format!("apps/{app}/users/{user}/sessions/{session}/artifacts"),
            None => format!("apps/{app}/users/{user}/artifacts"),
        }
    }

    /// The name of what is at this path.
    pub(crate) fn name_of(&self, path: &[String]) -> String {
        let path = path.join("/");
        if self.session.is_none() { format!("{USER}{path}") } else { path }
    }
}

impl ArtifactPath {
    pub(crate) fn of(key: &ArtifactKey) -> Result<Self, ArtifactError> {
        let owner = Owner::session(&key.session)?;
        match key.name.strip_prefix(USER) {
            Some(name) => Ok(Self { owner: owner.user(), segments: segments(&key.name, name)? }),
            None => Ok(Self { owner, segments: segments(&key.name, &key.name)? }),
        }
    }

    /// The last segment: the name of the file itself.
    pub(crate) fn file_name(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }
}

/// The segments of `name`, which is `full` without its prefix.
fn segments(full: &str, name: &str) -> Result<Vec<String>, ArtifactError> {
    let refused = |reason: &str| {
        Err(ArtifactError::InvalidName { name: full.chars().take(100).collect(), reason: reason.to_owned() })
    };
    let name = name.trim();
    if name.len() > LONGEST_NAME {
        return refused("it is longer than 1,024 bytes");
    }
    if name.contains('\0') {
        return refused("it contains U+0000");
    }
    if name.starts_with(['/', '\\']) || is_on_drive(name) {
        return refused("it is rooted; write it relative to the session or user, as `plans/house.txt`");
    }
    let segments = name.split(['/', '\\']).filter(|segment| !segment.is_empty() && *segment != ".");
    let segments: Vec<String> = segments.map(str::to_owned).collect();
    let Some(last) = segments.last() else {
        return refused("it is empty");
    };
    if segments.iter().any(|segment| segment == "..") {
        return refused("it contains `..`");
    }
    if segments.iter().any(|segment| segment.len() > LONGEST_SEGMENT) {
        return refused("a part of it is longer than 255 bytes");
    }
    if segments.iter().any(|segment| is_reserved(segment, VERSIONS)) {
        return refused("a part of it is `versions`, which is where the versions of an artifact are kept");
    }
    if is_reserved(last, METADATA) {
        return refused("it ends in `metadata.json`, which is where a version is described");
    }
    Ok(segments)
}

/// Whether a file system could treat the segment as this name, ignoring case or trailing dots.
fn is_reserved(segment: &str, name: &str) -> bool {
    segment.trim_end_matches([' ', '.']).to_lowercase() == name
}

/// Whether it begins with a drive, such as `C:`.
fn is_on_drive(name: &str) -> bool {
    matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Checks that the parts of the key can be folders. They may contain slashes, as in google-adk, but
/// no two users may share a folder.
fn check_ids(key: &SessionKey) -> Result<(), ArtifactError> {
    for (what, id) in [("app name", key.app()), ("user id", key.user()), ("session id", key.id())] {
        let refused = |reason: &str| {
            let reason = format!("its {what} {id:?} {reason}; use another one");
            Err(ArtifactError::InvalidSession { session: key.clone(), reason })
        };
        if id.contains('\0') {
            return refused("contains U+0000");
        }
        if id.starts_with(['/', '\\']) || is_on_drive(id) {
            return refused("is a rooted path");
        }
        if id.split(['/', '\\']).any(|segment| segment == "..") {
            return refused("contains `..`");
        }
        let segments: Vec<&str> = id.split('/').collect();
        if segments.iter().any(|segment| segment.trim().is_empty() || *segment == ".") {
            return refused("has an empty part between its slashes");
        }
        if segments.iter().any(|segment| segment.len() > LONGEST_SEGMENT) {
            return refused("is longer than 255 bytes, which no folder's name may be");
        }
        let in_layout = |segment: &str| LAYOUT.contains(&segment.to_lowercase().as_str());
        if id.contains(['/', '\\']) && id.split(['/', '\\']).any(in_layout) {
            return refused("has a slash and a part with a meaning on disk (`apps`, `users`, `sessions`, …)");
        }
    }
    Ok(())
}
