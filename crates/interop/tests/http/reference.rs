//! google-adk's server in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// `adk api_server` with the agent `echo`, and a new SQLite file.
pub(crate) struct Reference {
    process: Child,
    address: String,
    /// Holds the file and the agents, and is removed with the server.
    _folder: TempDir,
}

impl Reference {
    pub(crate) async fn start(client: &reqwest::Client) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let agents = folder.path().join("agents");
        copy_agent(&Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/echo"), &agents.join("echo"));
        let port = free_port();
        let process = Command::new(adk())
            .args(["api_server", "--port", &port.to_string(), "--artifact_service_uri", "memory://"])
            .arg("--session_service_uri")
            .arg(format!("sqlite:///{}", folder.path().join("sessions.db").display()))
            .arg(&agents)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("adk starts");
        let mut server = Self { process, address: format!("http://127.0.0.1:{port}"), _folder: folder };
        server.wait(client).await;
        server
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Waits until it answers. Python needs seconds to start, and more on a busy machine.
    async fn wait(&mut self, client: &reqwest::Client) {
        loop {
            if client.get(format!("{}/health", self.address)).send().await.is_ok() {
                return;
            }
            if let Some(status) = self.process.try_wait().expect("the process can be asked") {
                panic!("adk ended before it answered: {status}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.process.kill().expect("adk runs until it is killed");
        self.process.wait().expect("a killed process ends");
    }
}

fn copy_agent(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder for the agent is made");
    for file in ["agent.py", "__init__.py"] {
        std::fs::copy(from.join(file), to.join(file)).expect("the agent is copied");
    }
}

/// The command beside the interpreter.
fn adk() -> PathBuf {
    interpreter().with_file_name("adk")
}

/// The Python that `./test` sets up.
pub(crate) fn interpreter() -> PathBuf {
    let python = std::env::var_os("SESSILE_TEST_PYTHON");
    python.expect("SESSILE_TEST_PYTHON names a Python with google-adk 2.13; ./test sets it up").into()
}

pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("a bound listener has an address").port()
}
