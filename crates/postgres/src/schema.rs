use sessile_session::{SessionError, doing};

use crate::connection::PostgresOptions;
use crate::migrate::{LATEST, Tables, check_layout, version_of};
use crate::retry::{client, lost_is_unavailable};

/// How a database is laid out, read without changing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSchema {
    /// The service of google-adk that has this layout; `None` if the tables are missing.
    pub layout: Option<&'static str>,
    /// The number of the last migration that was applied.
    pub migration: i64,
    /// The last migration that this version knows.
    pub latest: i64,
}

impl PostgresSchema {
    /// Reads the layout of a database.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if it cannot be used as it is; [`SessionError::Unavailable`] if
    /// the server cannot be reached.
    pub async fn of(options: &PostgresOptions) -> Result<Self, SessionError> {
        Self::read(options).await.map_err(lost_is_unavailable)
    }

    async fn read(options: &PostgresOptions) -> Result<Self, SessionError> {
        let mut client = client(&options.pool()?).await?;
        let transaction = client.transaction().await.map_err(doing("look at the tables"))?;
        let tables = Tables::read(&transaction).await?;
        let is_new = check_layout(&transaction, &tables).await?;
        let migration = version_of(&transaction, &tables).await?.into();
        let layout = (!is_new).then_some("DatabaseSessionService, version 1");
        Ok(Self { layout, migration, latest: LATEST.into() })
    }
}
