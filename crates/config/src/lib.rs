//! Agents described in YAML, in the format of ADK.
//!
//! An application is a folder with a file `root_agent.yaml`; the folder's name is the
//! application's. [`load_apps`] reads all applications of a folder; an error has the file, line,
//! column and field. `docs/agents-in-yaml.md` describes the format.
//!
//! ```
//! use sessile_config::{load_app, samples};
//!
//! let folder = tempfile::tempdir()?;
//! let app = folder.path().join("parrot");
//! std::fs::create_dir(&app)?;
//! std::fs::write(app.join("script.yaml"), "rules: [{ then: { reply: '{user}!' } }]")?;
//! std::fs::write(app.join("root_agent.yaml"), "name: parrot\nmodel: scripted:script.yaml\noutput_key: last")?;
//! assert_eq!(load_app(&app)?.root.name(), "parrot");
//! assert_eq!(samples().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agents;
mod app;
mod error;
mod file;
mod folders;
mod open;
mod samples;
mod schema;
mod settings;
mod tools;

pub use app::{LoadedApp, NamedApp, load_app, load_apps};
pub use error::{ConfigError, SourceLocation};
pub use samples::samples;
pub use schema::{NamedSchema, load_schema, load_schemas};
