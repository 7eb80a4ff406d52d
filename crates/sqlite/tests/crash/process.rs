//! Child processes, from the parent's side.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// The variable that makes this program a child, and says of what kind.
pub(crate) const CHILD: &str = "SESSILE_TEST_CHILD";

/// A running child.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    /// What was read of the output.
    text: String,
}

/// The output of a child, in the order of its lines.
#[derive(Debug, Default)]
pub(crate) struct ChildOutput {
    /// Session and id of each event whose append returned: `acknowledged <session> <event>`.
    pub(crate) acknowledged: Vec<(String, String)>,
    /// Session and id of each event whose append was an error: `failed <session> <event> <error>`.
    pub(crate) failed: Vec<(String, String)>,
    /// What each transaction counted to: `counted <number>`.
    pub(crate) counted: Vec<u64>,
    /// Why the file could not be opened: `not-opened <error>`.
    pub(crate) not_opened: Option<String>,
    /// Why the file is refused as it is: `refused <reason>`.
    pub(crate) refused: Option<String>,
    /// How many events were found where all were looked for: `checked <number>`.
    pub(crate) checked: Option<usize>,
}

impl Process {
    /// One that appends events, named after it, in several tasks at once.
    pub(crate) fn appending(path: &Path, name: &str, tasks: u32, events: u32, sessions: &[&str]) -> Self {
        let command = Command::new(this_program());
        Self::start(command, "append", path, &append_arguments(name, tasks, events, sessions))
    }

    /// One that appends, and can write files up to a size only.
    pub(crate) fn appending_with_room(
        path: &Path,
        name: &str,
        tasks: u32,
        events: u32,
        sessions: &[&str],
        kilobytes: u32,
    ) -> Self {
        // A shell, because the limit has to be set in the child before it starts. The signal is
        // ignored so that a write beyond the limit is an error, as on a full disk.
        let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        let blocks = kilobytes * 2; // of 512 bytes, as POSIX has it
        let mut command = Command::new("sh");
        command.args(["-c", script, &blocks.to_string()]).arg(this_program());
        Self::start(command, "append", path, &append_arguments(name, tasks, events, sessions))
    }

    /// One that counts in a session.
    pub(crate) fn counting(path: &Path, session: &str, times: u32) -> Self {
        let command = Command::new(this_program());
        Self::start(command, "count", path, &[session.to_owned(), times.to_string()])
    }

    /// One that fills a small disk of its own, on which it works with a copy of the file.
    pub(crate) fn filling_a_disk(path: &Path, folder: &Path) -> Self {
        // Mounting a disk needs a mount namespace; a user other than root becomes the root of a
        // user namespace first. Where even that is forbidden, the test fails.
        let script = "mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "sh", "-c", script]).arg(folder).arg(this_program());
        Self::start(command, "fill", path, &[folder.display().to_string()])
    }

    /// One that opens the file without the right of root to write everywhere.
    pub(crate) fn opening(path: &Path) -> Self {
        let command = match is_root() {
            false => Command::new(this_program()),
            true => {
                let mut command = Command::new("setpriv");
                let rights = "-dac_override,-dac_read_search";
                command.args(["--bounding-set", rights, "--inh-caps", rights]).arg(this_program());
                command
            }
        };
        Self::start(command, "open", path, &[])
    }

    fn start(mut command: Command, role: &str, path: &Path, arguments: &[String]) -> Self {
        command.arg(path).args(arguments).env(CHILD, role).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child starts");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, output, text: String::new() }
    }

    /// Waits for the first output of the child.
    pub(crate) fn wait_for_a_line(&mut self) {
        let read = self.output.read_line(&mut self.text).expect("the output is read");
        assert_ne!(read, 0, "the child ends by itself");
    }

    /// Kills the child at once, without giving it a chance to tidy up.
    pub(crate) fn kill(mut self) -> ChildOutput {
        self.child.kill().expect("the child is killed");
        let (output, status) = self.end();
        assert_eq!(status.code(), None, "the child ended by itself, before it was killed");
        output
    }

    /// Waits for the child to end by itself.
    pub(crate) fn finish(self) -> ChildOutput {
        let (output, status) = self.end();
        assert!(status.success(), "{status}; {output:?}");
        output
    }

    fn end(mut self) -> (ChildOutput, ExitStatus) {
        self.output.read_to_string(&mut self.text).expect("the output is read");
        let status = self.child.wait().expect("the child has ended");
        (ChildOutput::from_text(&self.text), status)
    }
}

impl ChildOutput {
    fn from_text(text: &str) -> Self {
        let mut output = Self::default();
        for line in text.lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["acknowledged", session, id] => {
                    output.acknowledged.push((session.to_owned(), id.to_owned()))
                }
                ["failed", session, id, ..] => output.failed.push((session.to_owned(), id.to_owned())),
                ["counted", number] => output.counted.push(number.parse().expect("a number")),
                ["refused", ref why @ ..] => output.refused = Some(why.join(" ")),
                ["checked", number] => output.checked = Some(number.parse().expect("a number")),
                ["not-opened", ref why @ ..] => output.not_opened = Some(why.join(" ")),
                _ => panic!("a child says {line:?}"),
            }
        }
        output
    }
}

fn append_arguments(name: &str, tasks: u32, events: u32, sessions: &[&str]) -> Vec<String> {
    let mut arguments = vec![name.to_owned(), tasks.to_string(), events.to_string()];
    arguments.extend(sessions.iter().map(|session| (*session).to_owned()));
    arguments
}

fn this_program() -> OsString {
    std::env::current_exe().expect("this program has a path").into_os_string()
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output().expect("id runs");
    user.stdout.trim_ascii() == b"0"
}
