//! The folders below the root, without following symbolic links.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{ArtifactError, doing};
use crate::path::{ArtifactPath, Owner, VERSIONS};

/// The number of the next hidden folder of this process.
static HIDDEN: AtomicU64 = AtomicU64::new(0);

/// The folder of all artifacts.
#[derive(Debug, Clone)]
pub(super) struct Root(Arc<Path>);

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, ArtifactError> {
        fs::create_dir_all(path).map_err(doing("make the folder of artifacts"))?;
        let path = fs::canonicalize(path).map_err(doing("find the folder of artifacts"))?;
        Ok(Self(path.into()))
    }

    /// The folder of an owner's artifacts, which may not exist.
    pub(super) fn of_owner(&self, owner: &Owner) -> PathBuf {
        self.0.join(owner.path())
    }

    /// The folder of an artifact, which may not exist.
    pub(super) fn of(&self, path: &ArtifactPath) -> PathBuf {
        let mut folder = self.of_owner(&path.owner);
        folder.extend(&path.segments);
        folder
    }

    /// Whether a folder below the root exists.
    ///
    /// A symbolic link in its path is refused: it may lead outside, or to another user.
    pub(super) fn is_there(&self, folder: &Path) -> Result<bool, ArtifactError> {
        let mut way = self.0.to_path_buf();
        for step in folder.strip_prefix(&self.0).map_err(doing("stay below the folder of artifacts"))? {
            way.push(step);
            match fs::symlink_metadata(&way) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => return Err(is_link(&way)),
                Ok(_) => return Ok(false),
                Err(error) if is_absent(&error) => return Ok(false),
                Err(error) => return Err(doing("look at the folder of an artifact")(error)),
            }
        }
        Ok(true)
    }

    /// Creates a folder below the root.
    pub(super) fn make(&self, folder: &Path) -> Result<(), ArtifactError> {
        let mut way = self.0.to_path_buf();
        for step in folder.strip_prefix(&self.0).map_err(doing("stay below the folder of artifacts"))? {
            way.push(step);
            match fs::create_dir(&way) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let found = fs::symlink_metadata(&way).map_err(doing("look at a folder"))?;
                    if found.is_symlink() {
                        return Err(is_link(&way));
                    }
                }
                Err(error) => return Err(doing("make the folder of an artifact")(error)),
            }
        }
        Ok(())
    }

    /// A new folder that no artifact name leads to, for versions that are being written or deleted.
    pub(super) fn new_hidden(&self) -> io::Result<PathBuf> {
        let hidden = self.0.join(".sessile");
        fs::create_dir_all(&hidden)?;
        loop {
            // Unique among running processes; a folder that a crash left behind keeps its name.
            let number = HIDDEN.fetch_add(1, Ordering::Relaxed);
            let hidden = hidden.join(format!("{}-{number}", std::process::id()));
            match fs::create_dir(&hidden) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| hidden),
            }
        }
    }

    /// Syncs all folders from the root to this one to the disk.
    pub(super) fn sync_way_to(&self, folder: &Path) -> io::Result<()> {
        let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.0));
        above.into_iter().try_for_each(sync)
    }
}

/// Syncs the entries of a folder to the disk.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The numbers of the complete versions, in order.
pub(super) fn versions(artifact: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(artifact.join(VERSIONS)) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut versions = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // An entry that is not a number is not a version; it may be a version that is being
        // written.
        let number = name.to_str().and_then(|name| Some((name.parse::<u64>().ok()?, name)));
        if let Some((number, name)) = number
            && number.to_string() == name
            && entry.file_type()?.is_dir()
        {
            versions.push(number);
        }
    }
    versions.sort_unstable();
    Ok(versions)
}

/// Identifies a folder, to recognise that it was replaced by another one of the same name.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> impl PartialEq + use<> {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

/// Identifies a folder, to recognise that it was replaced by another one of the same name.
#[cfg(not(unix))]
pub(super) fn identity(metadata: &Metadata) -> impl PartialEq + use<> {
    (metadata.created().ok(), metadata.modified().ok())
}

/// Whether something does not exist, or a file is where a folder should be.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn is_link(path: &Path) -> ArtifactError {
    ArtifactError::Backend {
        action: "use the folder of an artifact",
        source: format!(
            "{} is a symbolic link, and may lead out of the folder of artifacts; put a real folder in its place",
            path.display()
        )
        .into(),
    }
}

/// `file://` and the path, percent-encoded except for ASCII letters, digits and `/._-~`.
pub(super) fn uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
