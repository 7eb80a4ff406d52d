//! Finding the folders of applications.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ConfigError;

/// The file that makes a folder an application.
pub(crate) const ROOT: &str = "root_agent.yaml";

/// The folders of the applications in a folder, sorted by name.
pub(crate) fn app_folders(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let read = |source| ConfigError::Read { file: folder.display().to_string(), source };
    let mut folders = Vec::new();
    if folder.join(ROOT).is_file() {
        folders.push(folder.canonicalize().map_err(read)?);
    } else {
        for entry in fs::read_dir(folder).map_err(read)? {
            let path = entry.map_err(read)?.path();
            let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
            if !hidden && path.join(ROOT).is_file() {
                folders.push(path);
            }
        }
    }
    folders.sort();
    Ok(folders)
}

/// The name of the application in a folder.
pub(crate) fn named(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}
