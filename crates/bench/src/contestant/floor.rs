//! The floor of SQLite: the same rows written durably by hand, with nothing around it.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, params};
use sessile_contestant::{Changes, Contestant, Failure, Reading, Tool};

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT, update_time REAL);
    CREATE TABLE user_states (app_name TEXT, user_id TEXT, state TEXT, update_time REAL,
        PRIMARY KEY (app_name, user_id));
    CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, update_time REAL,
        PRIMARY KEY (app_name, user_id, id));
    CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, timestamp REAL,
        event_data TEXT, PRIMARY KEY (app_name, user_id, session_id, id));
    INSERT INTO app_states VALUES ('bench', '{}', 0);
    INSERT INTO user_states VALUES ('bench', 'user', '{}', 0);
";
const INSERT_SESSION: &str = "INSERT INTO sessions VALUES ('bench', 'user', ?1, '{}', 0)";
const INSERT_EVENT: &str = "INSERT INTO events VALUES (?1, 'bench', 'user', ?2, ?3, ?4, ?5)";
const UPDATE_SESSION: &str = "
    UPDATE sessions SET state = ?2, update_time = ?3 WHERE app_name = 'bench' AND user_id = 'user' AND id = ?1
";
const UPDATE_USER: &str = "
    UPDATE user_states SET state = ?1, update_time = ?2 WHERE app_name = 'bench' AND user_id = 'user'
";
const UPDATE_APP: &str = "UPDATE app_states SET state = ?1, update_time = ?2 WHERE app_name = 'bench'";

pub(crate) struct Floor {
    connection: Mutex<Connection>,
    /// How many events are committed together.
    together: usize,
}

/// Event number `n`, as texts: nothing is computed while the floor is measured.
pub(crate) struct Row {
    n: usize,
    id: String,
    data: String,
    session: String,
    shared: String,
}

pub(crate) async fn open(path: String, together: usize) -> Floor {
    let connection = Connection::open(path).expect("the file opens");
    connection.execute_batch(TABLES).expect("the tables are new");
    Floor { connection: Mutex::new(connection), together }
}

impl Floor {
    /// Writes a row into each of the four tables. Every value is new: SQLite would write no page
    /// for a row that stays the same.
    fn write(&self, session: &str, row: &Row) -> rusqlite::Result<()> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let time = 1.5 + row.n as f64;
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            connection.prepare_cached(sql)?.execute(values).map(drop)
        };
        if row.n.is_multiple_of(self.together) {
            run("BEGIN IMMEDIATE", &[])?;
        }
        run(INSERT_EVENT, params![row.id, session, row.id, time, row.data])?;
        run(UPDATE_SESSION, params![session, row.session, time])?;
        run(UPDATE_USER, params![row.shared, time])?;
        run(UPDATE_APP, params![row.shared, time])?;
        if (row.n + 1).is_multiple_of(self.together) {
            run("COMMIT", &[])?;
        }
        Ok(())
    }
}

fn nothing<T>() -> Result<T, Failure> {
    Err("the floor only writes".to_owned())
}

impl Contestant for Floor {
    type Event = Row;

    fn event(&self, n: usize, changes: Changes) -> Option<Row> {
        let row = Row {
            n,
            id: uuid::Uuid::new_v4().to_string(),
            data: format!(r#"{{"author":"agent","step":{n},"content":"{}"}}"#, "x".repeat(560)),
            session: format!(r#"{{"step":{n},"note":"a short text"}}"#),
            shared: format!(r#"{{"last":{n}}}"#),
        };
        matches!(changes, Changes::AllScopes).then_some(row)
    }

    async fn create(&self, id: &str) -> Result<(), Failure> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.execute(INSERT_SESSION, [id]).map(drop).map_err(|error| error.to_string())
    }

    async fn append(&self, id: &str, row: Row) -> Result<(), Failure> {
        let written = match self.together {
            1 => self.write(id, &row),
            together => self.write(&format!("s{}", row.n % together), &row),
        };
        written.map_err(|error| error.to_string())
    }

    async fn get(&self, _: &str, _: Option<usize>) -> Result<Reading, Failure> {
        nothing()
    }

    async fn list(&self, _: usize) -> Result<usize, Failure> {
        nothing()
    }

    async fn increment(&self, _: &str) -> Result<(), Failure> {
        nothing()
    }

    fn add(&self, _: &str) -> Option<impl Future<Output = Result<(), Failure>> + Send> {
        None::<std::future::Ready<Result<(), Failure>>>
    }

    fn run_tool(&self, _: &str, _: Tool) -> Option<impl Future<Output = Result<i64, Failure>> + Send> {
        None::<std::future::Ready<Result<i64, Failure>>>
    }

    async fn counter(&self, _: &str) -> Result<i64, Failure> {
        nothing()
    }
}
