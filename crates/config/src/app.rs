use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sessile_agent::Agent;
use sessile_state::StateSchema;

use crate::agents::Loader;
use crate::error::ConfigError;
use crate::folders::{ROOT, app_folders, named};

/// An application, ready for a runner.
pub struct LoadedApp {
    /// Its name.
    pub name: String,
    /// The root of its agents.
    pub root: Arc<dyn Agent>,
    /// What its state may hold, if it declares that. Give it to the service that commits its state:
    /// `sessions.with_schema(app.name, schema)`.
    pub schema: Option<StateSchema>,
    /// The language that it is written in: `yaml` or `rust`.
    pub language: &'static str,
    /// The files that it was read from, the root's first.
    pub files: Vec<PathBuf>,
}

/// The name of an application, and the application or the error of loading it.
pub type NamedApp = (String, Result<LoadedApp, ConfigError>);

/// Loads the application in a folder.
///
/// # Errors
///
/// [`ConfigError`] says what is wrong, and where.
pub fn load_app(folder: &Path) -> Result<LoadedApp, ConfigError> {
    let read = |source| ConfigError::Read { file: folder.display().to_string(), source };
    let folder = folder.canonicalize().map_err(read)?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    check_name(&name)?;
    if !folder.join(ROOT).is_file() {
        return Err(ConfigError::NoAgent { folder: name });
    }
    let mut loader = Loader::new(&folder);
    let root = loader.load_root(&folder.join(ROOT))?;
    let schema = loader.take_schema();
    Ok(LoadedApp { name, root, schema, language: "yaml", files: loader.into_files() })
}

/// Loads all applications in a folder, by name: each of its folders with a `root_agent.yaml`, or
/// the folder itself if it has one. Other folders and hidden ones are ignored.
///
/// # Errors
///
/// [`ConfigError::Read`] if the folder cannot be read. An error of one application does
/// not keep the others from being loaded.
pub fn load_apps(folder: &Path) -> Result<Vec<NamedApp>, ConfigError> {
    Ok(app_folders(folder)?.iter().map(|path| (named(path), load_app(path))).collect())
}

/// Checks a name by google-adk's rule: a letter, then letters, digits, `_` and `-`; not `user`.
fn check_name(name: &str) -> Result<(), ConfigError> {
    let refused = |reason| Err(ConfigError::Name { name: name.to_owned(), reason });
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if name == "user" {
        return refused("that is the author of messages");
    }
    if name.len() > 128 {
        return refused("it is longer than 128 characters");
    }
    if !begins || !name.chars().all(plain) {
        return refused("it begins with a letter and has letters, digits, \"_\" and \"-\" only");
    }
    Ok(())
}

impl fmt::Debug for LoadedApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedApp")
            .field("name", &self.name)
            .field("root", &self.root.name())
            .field("language", &self.language)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
