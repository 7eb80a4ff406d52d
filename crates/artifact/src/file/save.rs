//! Saving and deleting versions.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use sessile_session::{BoxError, Part};

use super::folder::{self, Root};
use super::metadata::Metadata;
use crate::content::{Kind, type_of};
use crate::error::{ArtifactError, doing};
use crate::path::{ArtifactPath, METADATA, VERSIONS};
use crate::service::{ArtifactVersion, NewArtifact};

/// How often a save is retried because the artifact was deleted concurrently.
const TRIES: usize = 100;

/// Saves a new version.
pub(super) fn save(
    root: &Root,
    path: &ArtifactPath,
    name: &str,
    artifact: &NewArtifact,
    now: f64,
) -> Result<ArtifactVersion, ArtifactError> {
    let payload = match Kind::of(name, &artifact.part)? {
        Kind::Text(text) | Kind::File(text) => text.as_bytes(),
        Kind::Bytes(bytes) => bytes,
    };
    let mut metadata = describe(name, artifact, now)?;
    for _ in 0..TRIES {
        match try_save(root, path, payload, &mut metadata) {
            Err(Failure::Vanished) => {}
            Err(Failure::Final(error)) => return Err(error),
            Ok(()) => {
                return Ok(ArtifactVersion {
                    version: metadata.version,
                    canonical_uri: metadata.canonical_uri,
                    custom_metadata: metadata.custom_metadata,
                    create_time: now,
                    mime_type: metadata.mime_type,
                });
            }
        }
    }
    Err(doing("save an artifact")(format!("{name:?} was deleted {TRIES} times meanwhile; save it again")))
}

/// Everything of the description that does not depend on the version's number.
fn describe(name: &str, artifact: &NewArtifact, now: f64) -> Result<Metadata, ArtifactError> {
    let mut rest = Part { text: None, ..artifact.part.clone() };
    let blob = rest.inline_data.take();
    if blob.as_ref().is_some_and(|blob| !blob.unknown.is_empty()) {
        return Err(ArtifactError::InvalidContent {
            name: name.to_owned(),
            reason: "its inline data has fields beside `data`, `mimeType` and `displayName`".to_owned(),
        });
    }
    let metadata = Metadata {
        file_name: name.to_owned(),
        mime_type: blob.as_ref().map(|blob| type_of(blob).to_owned()),
        display_name: blob.and_then(|blob| blob.display_name),
        create_time: Some(now),
        custom_metadata: artifact.custom_metadata.clone(),
        rest: (rest != Part::default()).then_some(rest),
        ..Metadata::default()
    };
    // Refuse metadata now that could not be read back later.
    let readable = serde_json::to_string(&metadata).and_then(|text| serde_json::from_str::<Metadata>(&text));
    match readable {
        Ok(_) => Ok(metadata),
        Err(error) => Err(ArtifactError::InvalidContent {
            name: name.to_owned(),
            reason: format!("its metadata could not be read back: {error}"),
        }),
    }
}

/// Why an attempt to save failed.
enum Failure {
    /// The artifact was deleted concurrently, with the folder that the version was written to.
    Vanished,
    Final(ArtifactError),
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        let vanished = |source: &BoxError| {
            source.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
        };
        match &error {
            ArtifactError::Backend { source, .. } if vanished(source) => Self::Vanished,
            _ => Self::Final(error),
        }
    }
}

fn try_save(
    root: &Root,
    path: &ArtifactPath,
    payload: &[u8],
    metadata: &mut Metadata,
) -> Result<(), Failure> {
    let artifact = root.of(path);
    let versions = artifact.join(VERSIONS);
    root.make(&versions)?;
    let last = folder::versions(&artifact).map_err(doing("list the versions of an artifact"))?.pop();
    if last.is_none() {
        // Before the first version is visible: the path of a visible version is durable.
        root.sync_way_to(&versions).map_err(doing("put the folder of an artifact on the disk"))?;
    }
    let hidden = root.new_hidden().map_err(doing("make a folder for a new version"))?;
    let published = write(&hidden.join(path.file_name()), payload)
        .map_err(doing("write an artifact"))
        .and_then(|()| publish(&hidden, &versions, last, path, metadata));
    if published.is_err() {
        // What is left there is never read, so only the first error is reported.
        drop(fs::remove_dir_all(&hidden));
    }
    published?;
    Ok(folder::sync(&versions).map_err(doing("put a version on the disk"))?)
}

/// Gives the version that is written in `hidden` the next free number and makes it visible.
fn publish(
    hidden: &Path,
    versions: &Path,
    last: Option<u64>,
    path: &ArtifactPath,
    metadata: &mut Metadata,
) -> Result<(), ArtifactError> {
    let mut next = last.map_or(Some(0), |last| last.checked_add(1));
    while let Some(version) = next {
        next = version.checked_add(1);
        // google-adk's processes leave a number alone while this folder is there, and so do we.
        let reserved = versions.join(format!(".{version}.pending"));
        match fs::create_dir(&reserved) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            made => made.map_err(doing("reserve a version's number"))?,
        }
        let whole = versions.join(version.to_string());
        metadata.version = version;
        metadata.canonical_uri = folder::uri(&whole.join(path.file_name()));
        let moved = describe_in(hidden, metadata).and_then(|()| fs::rename(hidden, &whole));
        // The reservation is an empty folder; it may be gone already with a deleted artifact.
        drop(fs::remove_dir(&reserved));
        match moved {
            // The number was taken concurrently; file systems report that in two ways.
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
            }
            moved => return moved.map_err(doing("write an artifact")),
        }
    }
    Err(doing("reserve a version's number")("there is no higher number; delete the artifact"))
}

fn describe_in(folder: &Path, metadata: &Metadata) -> io::Result<()> {
    write(&folder.join(METADATA), &serde_json::to_vec(metadata)?)?;
    folder::sync(folder)
}

/// Writes a file, and waits until it is on the disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes all versions atomically, and then the folders that have become empty.
pub(super) fn delete(root: &Root, path: &ArtifactPath) -> Result<(), ArtifactError> {
    let artifact = root.of(path);
    let versions = artifact.join(VERSIONS);
    if !root.is_there(&versions)? {
        return Ok(());
    }
    match remove(root, &artifact, &versions) {
        // Another delete came first.
        Err(error) if folder::is_absent(&error) => {}
        removed => removed.map_err(doing("delete an artifact"))?,
    }
    let owner = root.of_owner(&path.owner);
    let empty = artifact.ancestors().take_while(|folder| folder.starts_with(&owner) && **folder != *owner);
    for folder in empty {
        // It holds another artifact (`doc/nested` is in the folder of `doc`), or is gone already.
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes a folder. It is first moved out of sight, since its files are removed one by one.
fn remove(root: &Root, artifact: &Path, versions: &Path) -> io::Result<()> {
    let hidden = root.new_hidden()?;
    let moved = fs::rename(versions, hidden.join(VERSIONS)).and_then(|()| folder::sync(artifact));
    loop {
        match fs::remove_dir_all(&hidden) {
            // A save that had found the folder before it moved was still writing into it.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            removed => return moved.and(removed),
        }
    }
}
