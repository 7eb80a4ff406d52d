//! The floor: what SQLite itself takes for the same rows, written by hand with nothing around it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

pub(crate) struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub(crate) fn new(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT, update_time REAL);
                 CREATE TABLE user_states (app_name TEXT, user_id TEXT, state TEXT, update_time REAL, PRIMARY KEY (app_name, user_id));
                 CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, update_time REAL, PRIMARY KEY (app_name, user_id, id));
                 CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, timestamp REAL,
                     event_data TEXT, PRIMARY KEY (app_name, user_id, session_id, id));
                 INSERT INTO app_states VALUES ('bench', '{}', 0);
                 INSERT INTO user_states VALUES ('bench', 'user', '{}', 0);",
            )
            .unwrap();
        for id in 0..64 {
            connection
                .execute("INSERT INTO sessions VALUES ('bench', 'user', ?1, '{}', 0)", [format!("s{id}")])
                .unwrap();
        }
        Self { connection }
    }

    /// Events a second, when this many are committed together: an event and three states each.
    pub(crate) fn per_second(&self, together: usize, during: Duration) -> f64 {
        let data = format!(r#"{{"author":"agent","content":"{}"}}"#, "x".repeat(560));
        let state = r#"{"step":1,"note":"a short text"}"#;
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < during {
            self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            for n in 0..together {
                let (id, session) = (uuid::Uuid::new_v4().to_string(), format!("s{}", n % 64));
                let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
                    self.connection.prepare_cached(sql).unwrap().execute(values).unwrap();
                };
                run(
                    "INSERT INTO events VALUES (?1, 'bench', 'user', ?2, 'e-1', 1.5, ?3)",
                    params![id, session, data],
                );
                run(
                    "UPDATE sessions SET state = ?2, update_time = 1.5 WHERE app_name = 'bench' AND user_id = 'user' AND id = ?1",
                    params![session, state],
                );
                run(
                    "UPDATE user_states SET state = ?1 WHERE app_name = 'bench' AND user_id = 'user'",
                    params![state],
                );
                run("UPDATE app_states SET state = ?1 WHERE app_name = 'bench'", params![state]);
            }
            self.connection.execute_batch("COMMIT").unwrap();
            count += together;
        }
        count as f64 / start.elapsed().as_secs_f64()
    }
}
