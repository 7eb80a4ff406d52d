//! google-adk in a process of its own; `adk.py` is the other end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use sessile_state::SharedValue;

use crate::{Database, Kind};

/// A process of Python with one of google-adk's services.
pub(crate) struct Python {
    process: Child,
    /// `None` once the process has been told to end.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Python {
    pub(crate) fn start(database: &Database) -> Self {
        let location = &database.location;
        let (kind, location) = match database.kind {
            Kind::Sqlite => ("sqlite", location.clone()),
            Kind::SqliteV1 => ("database", format!("sqlite+aiosqlite:///{location}")),
            Kind::Postgres => ("database", location.replacen("postgresql://", "postgresql+asyncpg://", 1)),
        };
        Self::start_service(kind, &location)
    }

    /// A process with the service that `adk.py` knows by this name.
    pub(crate) fn start_service(kind: &str, location: &str) -> Self {
        let mut process = Command::new(interpreter())
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("adk.py"))
            .args([kind, location])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let commands = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("the output is piped"));
        Self { process, commands, answers }
    }

    /// Sends a command and returns its answer, which must not be an error.
    pub(crate) fn ask(&mut self, command: &str, arguments: Value) -> SharedValue {
        let answer = self.try_ask(command, arguments, None);
        assert!(answer.get("error").is_none(), "Python refuses to {command}: {answer}");
        answer
    }

    /// Sends a command that must be refused, and returns the name of the error.
    pub(crate) fn refused(&mut self, command: &str, arguments: Value) -> String {
        let answer = self.try_ask(command, arguments, None);
        let error = answer.get("error").and_then(Value::as_str);
        error.unwrap_or_else(|| panic!("Python does not refuse to {command}: {answer}")).to_owned()
    }

    /// The session `id`, which must exist.
    pub(crate) fn get(&mut self, id: &str) -> BTreeMap<String, SharedValue> {
        let answer = self.ask("get", place(id));
        let mut answer: BTreeMap<String, SharedValue> = answer.read().expect("an answer is an object");
        let session = answer.remove("session").expect("the answer has a session");
        session.read().expect("the session exists")
    }

    /// Appends to a session that is fetched for it.
    pub(crate) fn append(&mut self, id: &str, event: SharedValue) {
        let answer = self.try_ask("append", place(id), Some(event));
        assert!(answer.get("error").is_none(), "Python refuses to append: {answer}");
    }

    /// Keeps the session as it is now.
    pub(crate) fn hold(&mut self, id: &str, name: &str) {
        let mut arguments = place(id);
        arguments["name"] = name.into();
        self.ask("hold", arguments);
    }

    /// Appends to a session that was kept; returns the name of the error, if it is refused.
    pub(crate) fn append_held(&mut self, id: &str, name: &str, event: SharedValue) -> Result<(), String> {
        let mut arguments = place(id);
        arguments["held"] = name.into();
        let answer = self.try_ask("append", arguments, Some(event));
        match answer.get("error") {
            None => Ok(()),
            Some(error) => Err(error.as_str().expect("an error has a name").to_owned()),
        }
    }

    /// The event is apart from the other arguments, which as a [`Value`] would round its numbers.
    fn try_ask(&mut self, command: &str, arguments: Value, event: Option<SharedValue>) -> SharedValue {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let mut line: BTreeMap<String, SharedValue> =
            arguments.into_iter().map(|(name, value)| (name, value.into())).collect();
        line.insert("do".to_owned(), json!(command).into());
        line.extend(event.map(|event| ("event".to_owned(), event)));
        let line = serde_json::to_string(&line).expect("a command has a JSON form").replace('\n', " ");
        let commands = self.commands.as_mut().expect("Python was not told to end");
        writeln!(commands, "{line}").expect("Python reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("Python answers");
        SharedValue::from_json(&answer)
            .unwrap_or_else(|error| panic!("{command} is answered {answer:?}: {error}"))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        drop(self.commands.take()); // the end of its input ends it
        drop(self.process.wait());
    }
}

/// The arguments that say which session.
pub(crate) fn place(id: &str) -> Value {
    json!({"app": "shop", "user": "ada", "id": id})
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Python that has google-adk. Without it the tests fail: what was not tried did not pass.
pub(crate) fn interpreter() -> PathBuf {
    let named = std::env::var_os("SESSILE_TEST_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| workspace().join("target/venv/bin/python"));
    assert!(
        python.exists(),
        "there is no {}: run ./test, which installs google-adk, or name a Python that has it in SESSILE_TEST_PYTHON",
        python.display(),
    );
    python
}
