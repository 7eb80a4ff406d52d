//! Deleting a session.

use rusqlite::OptionalExtension;
use sessile_session::{Expect, Incarnation, SessionError, SessionKey, Version};

use crate::batch::Batch;
use crate::event_row;
use crate::failure::failed_to;
use crate::rows::{Owner, incarnation};

const SELECT_VERSION: &str = "
    SELECT sessile_version, sessile_incarnation FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3";

impl Batch<'_> {
    pub(crate) fn delete(&mut self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let Some((incarnation, version)) = self.version_of(key)? else { return Ok(false) };
        expect.check_session(key, incarnation, version)?;
        event_row::delete_all(self.connection, key)?;
        self.connection
            .prepare_cached(DELETE_SESSION)
            .and_then(|mut statement| statement.execute([key.app(), key.user(), key.id()]))
            .map_err(failed_to("delete a session"))?;
        self.cache.forget_session(key);
        Ok(true)
    }

    /// Whether there is a session.
    pub(crate) fn exists(&self, key: &SessionKey) -> Result<bool, SessionError> {
        Ok(self.version_of(key)?.is_some())
    }

    /// The version of a session, whose other columns may be unreadable.
    fn version_of(&self, key: &SessionKey) -> Result<Option<(Incarnation, Version)>, SessionError> {
        if let Some(slot) = self.cache.known_session(key) {
            let row = &self.cache[slot];
            return Ok(Some((row.incarnation, row.version)));
        }
        let found: Option<(i64, Option<i64>)> = self
            .connection
            .prepare_cached(SELECT_VERSION)
            .and_then(|mut statement| {
                let id = [key.app(), key.user(), key.id()];
                statement.query_row(id, |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(Owner::Session(key.clone()).unreadable("sessile_version"))?;
        Ok(found.map(|(version, number)| (incarnation(number), version.unsigned_abs())))
    }
}
