//! Reading versions.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sessile_session::{Blob, BoxError, Part, SessionKey};

use super::folder::{self, Root, is_absent};
use super::metadata::Metadata;
use crate::content::is_tombstone;
use crate::error::{ArtifactError, doing};
use crate::path::{ArtifactPath, METADATA, Owner, VERSIONS};
use crate::service::{ArtifactKey, ArtifactVersion};

/// How often a read is retried because the version was deleted and saved again concurrently.
const TRIES: usize = 100;

/// The content of a version, or of the newest. References are not followed here.
pub(super) fn load(
    root: &Root,
    path: &ArtifactPath,
    version: Option<u64>,
) -> Result<Option<Part>, ArtifactError> {
    let artifact = root.of(path);
    for _ in 0..TRIES {
        let known = versions_of(root, &artifact)?;
        let number = match version {
            None => known.last().copied(),
            Some(number) => known.contains(&number).then_some(number),
        };
        let Some(number) = number else { return Ok(None) };
        let version = Version::new(path, &artifact, number);
        if let Some(part) = version.steadily(Version::part)? {
            return Ok(Some(part).filter(|part| !is_tombstone(part)));
        }
    }
    Err(never_steady(path))
}

/// The metadata of each version, oldest first.
pub(super) fn versions(root: &Root, path: &ArtifactPath) -> Result<Vec<ArtifactVersion>, ArtifactError> {
    let artifact = root.of(path);
    for _ in 0..TRIES {
        let numbers = versions_of(root, &artifact)?;
        let known = numbers.into_iter().map(|number| {
            let version = Version::new(path, &artifact, number);
            version.steadily(|version| version.facts(number))
        });
        if let Some(versions) = known.collect::<Result<_, _>>()? {
            return Ok(versions);
        }
    }
    Err(never_steady(path))
}

fn never_steady(path: &ArtifactPath) -> ArtifactError {
    let name = path.owner.name_of(&path.segments);
    doing("read an artifact")(format!("{name:?} was deleted {TRIES} times meanwhile; ask again"))
}

/// The names of an owner's artifacts, as the session sees them.
pub(super) fn names(root: &Root, owner: &Owner, session: &SessionKey) -> Result<Vec<String>, ArtifactError> {
    let top = root.of_owner(owner);
    if !root.is_there(&top)? {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let folder: PathBuf = top.iter().chain(path.iter().map(AsRef::as_ref)).collect();
        let entries = match fs::read_dir(&folder) {
            Err(error) if is_absent(&error) => continue, // it was deleted concurrently
            entries => entries.map_err(doing("list artifacts"))?,
        };
        for entry in entries {
            let entry = entry.map_err(doing("list artifacts"))?;
            // A symbolic link does not count as a folder. A name that is not UTF-8 cannot be
            // requested.
            let is_folder = entry.file_type().map_err(doing("list artifacts"))?.is_dir();
            if let Ok(name) = entry.file_name().into_string()
                && is_folder
                && name != VERSIONS
            {
                waiting.push([path.as_slice(), &[name]].concat());
            }
        }
        if let Some(&newest) =
            folder::versions(&folder).map_err(doing("list the versions of an artifact"))?.last()
            && !path.is_empty()
        {
            let path = ArtifactPath { owner: owner.clone(), segments: path };
            names.push(name_of(&path, &Version::new(&path, &folder, newest), session));
        }
    }
    Ok(names)
}

/// The name under which an artifact was saved, if it has this path; otherwise the name of its
/// folder.
fn name_of(path: &ArtifactPath, newest: &Version<'_>, session: &SessionKey) -> String {
    let saved = newest.metadata().map(|metadata| ArtifactKey::new(session, metadata.file_name));
    match saved {
        Ok(saved) if ArtifactPath::of(&saved).is_ok_and(|leads_to| leads_to == *path) => saved.name,
        _ => path.owner.name_of(&path.segments),
    }
}

fn versions_of(root: &Root, artifact: &Path) -> Result<Vec<u64>, ArtifactError> {
    match root.is_there(&artifact.join(VERSIONS))? {
        true => folder::versions(artifact).map_err(doing("list the versions of an artifact")),
        false => Ok(Vec::new()),
    }
}

/// A version that existed when it was listed.
struct Version<'a> {
    path: &'a ArtifactPath,
    folder: PathBuf,
}

impl<'a> Version<'a> {
    fn new(path: &'a ArtifactPath, artifact: &Path, number: u64) -> Self {
        Self { path, folder: artifact.join(VERSIONS).join(number.to_string()) }
    }

    /// The result of `read`, if the version is the same before and after; `None` if it was deleted
    /// meanwhile, and perhaps another one saved under its number.
    fn steadily<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, ArtifactError>,
    ) -> Result<Option<T>, ArtifactError> {
        let before = self.identity()?;
        if before.is_none() {
            return Ok(None);
        }
        let found = read(self);
        if self.identity()? == before { found.map(Some) } else { Ok(None) }
    }

    /// Identifies its folder; `None` if it does not exist.
    fn identity(&self) -> Result<Option<impl PartialEq>, ArtifactError> {
        match fs::symlink_metadata(&self.folder) {
            Ok(found) => Ok(Some(folder::identity(&found))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(doing("look at an artifact")(error)),
        }
    }

    /// Its content.
    fn part(&self) -> Result<Part, ArtifactError> {
        let file = self.path.file_name();
        let metadata = self.metadata()?;
        let payload = self.read(file)?.ok_or_else(|| self.corrupt(file, "the file is missing"))?;
        let Some(mime_type) = metadata.mime_type else {
            let text = String::from_utf8(payload).map_err(|error| self.corrupt(file, error))?;
            return Ok(match metadata.rest {
                // The text is the URI, for google-adk.
                Some(rest) if rest.file_data.is_some() => rest,
                rest => Part { text: Some(text), ..rest.unwrap_or_default() },
            });
        };
        let blob = Blob {
            data: Some(payload.into()),
            mime_type: Some(mime_type),
            display_name: metadata.display_name,
            ..Blob::default()
        };
        Ok(Part { inline_data: Some(blob.into()), ..metadata.rest.unwrap_or_default() })
    }

    /// Its metadata for callers.
    fn facts(&self, number: u64) -> Result<ArtifactVersion, ArtifactError> {
        let metadata = self.metadata()?;
        Ok(ArtifactVersion {
            version: number,
            canonical_uri: folder::uri(&self.folder.join(self.path.file_name())),
            custom_metadata: metadata.custom_metadata,
            create_time: match metadata.create_time {
                Some(time) => time,
                None => self.modified()?,
            },
            mime_type: metadata.mime_type,
        })
    }

    /// Its description. A version of an old google-adk may have none; it is a text then.
    fn metadata(&self) -> Result<Metadata, ArtifactError> {
        match self.read(METADATA)? {
            None => Ok(Metadata::default()),
            Some(text) => serde_json::from_slice(&text).map_err(|error| self.corrupt(METADATA, error)),
        }
    }

    /// One of its files; `None` if it does not exist.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ArtifactError> {
        let path = self.folder.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(self.corrupt(name, "it is not a plain file")),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(doing("look at an artifact")(error)),
        }
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(doing("read an artifact")),
        }
    }

    /// When its folder was last changed, in Unix seconds.
    fn modified(&self) -> Result<f64, ArtifactError> {
        let modified = fs::metadata(&self.folder)
            .and_then(|metadata| metadata.modified())
            .map_err(doing("look at an artifact"))?;
        Ok(match modified.duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        })
    }

    fn corrupt(&self, file: &str, source: impl Into<BoxError>) -> ArtifactError {
        ArtifactError::Corrupt {
            name: self.path.owner.name_of(&self.path.segments),
            place: self.folder.join(file).display().to_string(),
            source: source.into(),
        }
    }
}
