//! A folder with a store, and the command run in it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sessile_session::{CreateSession, Event, EventActions, SessionService};
use sessile_sqlite::SqliteStore;
use tempfile::TempDir;

/// A folder of its own for a test; the command runs there.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder is made"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sessile"));
        command.args(args).current_dir(self.path()).env_remove("SESSILE_STORE").stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().expect("the command starts");
        Ran::from(output)
    }

    /// Runs the command with this text on its standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        match std::io::Write::write_all(&mut stdin, input.as_bytes()) {
            // A command that refuses its arguments ends without reading its input.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.expect("the input is taken"),
        }
        drop(stdin);
        Ran::from(child.wait_with_output().expect("the command ends"))
    }

    /// Sessions in the file that the command uses unless told otherwise.
    pub(crate) fn with_sessions(work: impl AsyncFnOnce(&SessionService)) -> Self {
        let folder = Self::new();
        block_on(async {
            let path = folder.path().join("sessile.db");
            let url = format!("sqlite:///{}", path.display());
            let service = SessionService::new(SqliteStore::open_url(&url).await.expect("the file opens"));
            work(&service).await;
        });
        folder
    }

    /// Runs SQL on the file, as another program would.
    pub(crate) fn sql(&self, statements: &str) {
        let connection = rusqlite::Connection::open(self.path().join("sessile.db")).expect("the file opens");
        connection.execute_batch(statements).expect("the statements run");
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// It ended well; its standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// It ended well, and wrote one JSON value on each line.
    #[track_caller]
    pub(crate) fn json_lines(self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        self.ok().lines().map(parse).collect()
    }

    /// It ended with this code, and said this on standard error.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, saying: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(saying), "{self:?}");
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}

/// A session `shop/ada/<id>` with two invocations.
pub(crate) async fn conversation(service: &SessionService, id: &str) {
    let state = [("first", serde_json::json!(1)), ("user:name", "Ada".into()), ("app:tax", 0.25.into())];
    let new = CreateSession::new("shop", "ada").with_id(id).with_state(state);
    let mut session = service.create(new).await.expect("the session is created");
    for (invocation, delta) in
        [("i1", serde_json::json!({"step": 1})), ("i2", serde_json::json!({"step": 2}))]
    {
        let Value::Object(delta) = delta else { unreachable!("it is an object") };
        let mut event =
            Event::new("agent").with_content(sessile_session::Content::text("model", "hello there"));
        event.invocation_id = invocation.to_owned();
        event.actions = EventActions::from_delta(delta);
        service.append(&mut session, event).await.expect("the event is appended");
    }
}

/// Sends a signal to a process that this test started.
pub(crate) fn kill(signal: &str, id: u32) {
    let status = Command::new("kill").args([&format!("-{signal}"), &id.to_string()]).status();
    assert!(status.expect("`kill` runs").success());
}

/// The URL of a new, empty schema of the PostgreSQL that `./test` starts.
pub(crate) fn new_schema() -> String {
    let server = std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database");
    let name = format!("test_{}", sessile_session::Ids::new_id(&sessile_session::RandomIds).replace('-', ""));
    block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.expect("the server is reached");
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("the schema is made");
        drop(client);
        connection.await.expect("the connection's task ends").expect("the connection closes");
    });
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}options=-csearch_path%3D{name}")
}
