//! `sessile serve`, as several processes on one store.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Servers on one store; they are killed when the test ends.
pub(crate) struct Servers {
    folder: TempDir,
    store: String,
    all: Vec<Server>,
}

struct Server {
    child: Mutex<Child>,
    /// `127.0.0.1:port`; none while the server is down.
    address: Mutex<Option<String>>,
}

impl Servers {
    pub(crate) fn start(store: &str, count: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let mut servers = Self { folder, store: store.to_owned(), all: Vec::new() };
        for index in 0..count {
            let (child, address) = servers.serve(index);
            servers.all.push(Server { child: Mutex::new(child), address: Mutex::new(Some(address)) });
        }
        servers
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Where a server listens, unless it is down.
    pub(crate) fn address(&self, index: usize) -> Option<String> {
        self.all[index].address.lock().expect("no thread panicked").clone()
    }

    /// Kills a server and starts another in its place, on another port.
    pub(crate) fn replace(&self, index: usize, pause: Duration) {
        let server = &self.all[index];
        // Another process may get the port, so callers forget it before it is free.
        *server.address.lock().expect("no thread panicked") = None;
        let mut child = server.child.lock().expect("no thread panicked");
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        std::thread::sleep(pause);
        let (successor, address) = self.serve(index);
        *child = successor;
        *server.address.lock().expect("no thread panicked") = Some(address);
    }

    /// Stops a server with a signal, and lets it go on after a while.
    pub(crate) fn freeze(&self, index: usize, pause: Duration) {
        let id = self.all[index].child.lock().expect("no thread panicked").id();
        for (signal, pause) in [("-STOP", pause), ("-CONT", Duration::ZERO)] {
            let status = Command::new("kill").args([signal, &id.to_string()]).status();
            assert!(status.expect("`kill` runs").success(), "kill {signal} {id}");
            std::thread::sleep(pause);
        }
    }

    /// The last lines of what each server said.
    pub(crate) fn logs(&self) -> String {
        let tail = |index| {
            let said = fs::read_to_string(self.log(index)).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            format!("server {index}:\n{}\n", lines[lines.len().saturating_sub(10)..].join("\n"))
        };
        (0..self.all.len()).map(tail).collect()
    }

    fn log(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("server-{index}.log"))
    }

    fn serve(&self, index: usize) -> (Child, String) {
        // A file, because a server would wait for a reader when a pipe is full.
        let log = File::create(self.log(index)).expect("the log is made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_sessile"))
            .args(["serve", "--port", "0", "--store", &self.store])
            .args(["--artifacts", "memory://", "--memory", "memory://"])
            .current_dir(self.folder.path())
            .env("SESSILE_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the command starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let said = fs::read_to_string(self.log(index)).expect("the log is read");
            let address =
                said.split("http://").nth(1).and_then(|rest| rest.split([',', ' ', '/', '"']).next());
            if let Some(address) = address.filter(|_| said.contains("Ctrl-C stops the server")) {
                return (child, address.to_owned());
            }
            if Instant::now() > deadline || child.try_wait().expect("it can be asked").is_some() {
                drop(child.kill());
                drop(child.wait());
                panic!("the server did not start: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.all {
            let child = server.child.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The URL of a new, empty schema of the PostgreSQL that `./test` starts.
pub(crate) fn new_schema() -> String {
    let server = std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database");
    let name = format!("test_{}", sessile_session::Ids::new_id(&sessile_session::RandomIds).replace('-', ""));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
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
