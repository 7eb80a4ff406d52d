//! A PostgreSQL of a test's own, to be configured and killed.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
}

impl Cluster {
    /// Makes and starts a server with its ordinary durability.
    pub(crate) fn start() -> Self {
        let cluster = Self::make();
        cluster.restart();
        cluster
    }

    /// Makes a server that has not started yet.
    pub(crate) fn make() -> Self {
        let folder = as_database_user("mktemp", &["-d"]);
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port is free")
            .port();
        let cluster = Self { folder: PathBuf::from(folder.trim()), port };
        as_database_user(
            &tool("initdb"),
            &["-D", &cluster.data(), "-A", "trust", "-U", "postgres", "--no-sync"],
        );
        cluster
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("postgres", "127.0.0.1")
    }

    /// The URL for a user, with this name of the host.
    pub(crate) fn url_of(&self, user: &str, host: &str) -> String {
        format!("postgresql://{user}@{host}:{}/postgres", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where its local socket is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file among its data, which only its own user can read.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = format!("{}/{name}", self.data());
        let mut writing = command("sh", &["-c", "umask 077; cat >\"$0\"", &path])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut input = writing.stdin.take().expect("its input is piped");
        input.write_all(text.as_bytes()).expect("the shell reads");
        drop(input);
        assert!(writing.wait().expect("the shell ends").success(), "{path} is written");
    }

    /// Stops the server as an administrator would.
    pub(crate) fn stop(&self) {
        as_database_user(&tool("pg_ctl"), &["-D", &self.data(), "-m", "fast", "-w", "stop"]);
    }

    /// Kills the server and all processes that work for it, without a warning, as a power cut
    /// would.
    pub(crate) fn kill(&self) {
        let pid = as_database_user("head", &["-n", "1", &format!("{}/postmaster.pid", self.data())]);
        // It is stopped first, so that it does not see its children die and start others.
        let script = "kill -STOP $0; pkill -KILL -P $0; kill -KILL $0";
        as_database_user("sh", &["-c", script, pid.trim()]);
    }

    /// Starts the server, as soon as the processes of a killed one are gone; it recovers by itself.
    pub(crate) fn restart(&self) {
        let folder = self.folder.display();
        let options = format!("-p {} -k {folder} -c listen_addresses=127.0.0.1", self.port);
        let log = format!("{folder}/log");
        for _ in 0..60 {
            let started =
                command(&tool("pg_ctl"), &["-D", &self.data(), "-l", &log, "-w", "-o", &options, "start"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
            if started.expect("pg_ctl runs").success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        panic!("the server does not start: see {log}");
    }

    fn data(&self) -> String {
        format!("{}/data", self.folder.display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stopped = command(&tool("pg_ctl"), &["-D", &self.data(), "-m", "immediate", "stop"]).output();
        let removed = command("rm", &["-r", &self.folder.display().to_string()]).output();
        drop((stopped, removed)); // a folder that is left over must not fail the test
    }
}

/// The path of one of PostgreSQL's programs, which Debian keeps out of the way.
fn tool(name: &str) -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed; ./test does it");
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin").join(name)))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().expect("PostgreSQL is installed; ./test does it").display().to_string()
}

/// PostgreSQL refuses to run as root, so root runs it as the user that Debian's package makes.
fn command(program: &str, arguments: &[&str]) -> Command {
    let root = is_root();
    let mut command = if root { Command::new("runuser") } else { Command::new(program) };
    if root {
        command.args(["-u", "postgres", "--", program]);
    }
    command.args(arguments).current_dir(Path::new("/"));
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn as_database_user(program: &str, arguments: &[&str]) -> String {
    let output = command(program, arguments).output().expect("the program runs");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}
