use sessile_session::SessionError;

use crate::connection::{SqliteOptions, unusable};
use crate::failure::failed_to;
use crate::layout::Layout;
use crate::migrate::{LATEST, layout_of, version_of};

/// How a file is laid out, read without changing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSchema {
    /// The service of google-adk that has this layout; `None` if the tables are missing.
    pub layout: Option<&'static str>,
    /// The number of the last migration that was applied.
    pub migration: i64,
    /// The last migration that this version knows.
    pub latest: i64,
}

impl SqliteSchema {
    /// Reads the layout of a file.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if the file is missing, or cannot be used as it is.
    pub async fn of(options: SqliteOptions) -> Result<Self, SessionError> {
        tokio::task::spawn_blocking(move || {
            if !options.path.exists() {
                return Err(unusable(format!("there is no file {}", options.path.display())));
            }
            let connection = options.open_reader()?;
            let layout = layout_of(&connection)?.map(|layout| match layout {
                Layout::Adk => "SqliteSessionService",
                Layout::V1 => "DatabaseSessionService, version 1",
            });
            Ok(Self { layout, migration: version_of(&connection)?, latest: LATEST })
        })
        .await
        .map_err(failed_to("look at the SQLite file"))?
    }
}
