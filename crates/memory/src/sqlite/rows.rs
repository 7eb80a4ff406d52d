//! The SQL statements and their rows.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, TransactionBehavior, params};
use serde_json::Value;
use sessile_session::{Event, SessionKey, Stored};

use crate::error::{MemoryError, doing};
use crate::service::MemoryEntry;
use crate::time::iso;
use crate::words::{composed, runs, spaced, text_of};

/// How many memories a search returns at the most.
const MOST: usize = 50;

/// How many different words of a query are looked for; a longer query is cut.
const LONGEST_QUERY: usize = 256;

/// How much text of an event is indexed, in bytes. All of it is stored.
const LONGEST_TEXT: usize = 262_144;

/// An event to remember.
pub(super) struct NewRow {
    id: String,
    author: String,
    time: f64,
    content: String,
    /// The text for the index of words.
    text: String,
}

impl NewRow {
    /// The row of an event; `None` if it has no text.
    pub(super) fn of(event: &Event) -> Result<Option<Self>, MemoryError> {
        let Some(content) = &event.content else { return Ok(None) };
        let text = text_of(content);
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            id: event.id.clone(),
            author: event.author.clone(),
            time: event.time(),
            content: serde_json::to_string(&Stored(content)).map_err(doing("write a memory as JSON"))?,
            text: cut(spaced(&composed(&text)).to_lowercase()),
        }))
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

/// Inserts an event, or replaces its earlier row.
const UPSERT: &str = "
    INSERT INTO memory_events
           (app_name, user_id, session_id, event_id, author, timestamp, content_json, search_text)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (app_name, user_id, session_id, event_id) DO UPDATE
       SET author = excluded.author, timestamp = excluded.timestamp,
           content_json = excluded.content_json, search_text = excluded.search_text
";

/// Adds all rows or none.
pub(super) fn add(connection: &mut Connection, key: &SessionKey, rows: &[NewRow]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut upsert = transaction.prepare_cached(UPSERT)?;
    for NewRow { id, author, time, content, text } in rows {
        upsert.execute(params![key.app(), key.user(), key.id(), id, author, time, content, text])?;
    }
    drop(upsert);
    transaction.commit()
}

/// The memories of a user that match, the best first and the newer among equals.
const SEARCH: &str = "
    SELECT m.id, m.session_id, m.event_id, m.author, m.timestamp, m.content_json
      FROM memory_events_fts JOIN memory_events m ON m.id = memory_events_fts.rowid
     WHERE m.app_name = ?1 AND m.user_id = ?2 AND memory_events_fts MATCH ?3
     ORDER BY bm25(memory_events_fts), m.timestamp DESC
     LIMIT ?4
";

pub(super) fn search(
    connection: &Connection,
    app: &str,
    user: &str,
    query: &str,
) -> rusqlite::Result<Vec<Found>> {
    let mut statement = connection.prepare_cached(SEARCH)?;
    let rows = statement.query_map(params![app, user, query, MOST], Found::read)?;
    rows.collect()
}

/// An expression of FTS5 that any word of the query matches; `None` if the query has no words.
///
/// Every word is made of letters, digits and underscores only, and is quoted, so nothing in the
/// query is parsed as an operator.
pub(super) fn match_any(query: &str) -> Option<String> {
    let text = spaced(&composed(query));
    let mut seen = BTreeSet::new();
    // Lower case comes last: the lower case of İ ends in a combining mark, which is not part of
    // words.
    let words = runs(&text).map(str::to_lowercase);
    let new = words.filter(|word| seen.insert(word.clone())).take(LONGEST_QUERY);
    let quoted: Vec<String> = new.map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// A row that matches.
pub(super) struct Found {
    id: i64,
    session: String,
    event: String,
    author: String,
    time: f64,
    content: String,
}

impl Found {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            event: row.get(2)?,
            author: row.get(3)?,
            time: row.get(4)?,
            content: row.get(5)?,
        })
    }

    pub(super) fn entry(self) -> Result<MemoryEntry, MemoryError> {
        let content = serde_json::from_str(&self.content).map_err(|error| MemoryError::Corrupt {
            table: "memory_events",
            column: "content_json",
            row: self.id.to_string(),
            source: error.into(),
        })?;
        let notes = [("session_id", self.session), ("event_id", self.event)];
        Ok(MemoryEntry {
            content,
            author: Some(self.author).filter(|author| !author.is_empty()),
            timestamp: iso(self.time),
            id: Some(self.id.to_string()),
            custom_metadata: notes
                .into_iter()
                .map(|(name, id)| (name.to_owned(), Value::from(id).into()))
                .collect(),
        })
    }
}
