//! Processes that are killed, or that save at the same time.
//!
//! This program is its own child: with `SESSILE_TEST_CHILD` set to a folder it is not a list of
//! tests but a program that saves versions and says which.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use sessile_artifact::{ArtifactKey, ArtifactService, FileArtifacts, NewArtifact};
use sessile_session::{Part, SessionKey};

/// The folder in which a child saves.
const CHILD: &str = "SESSILE_TEST_CHILD";

/// How many versions a child saves, if it is not killed.
const SAVES: usize = 30;

fn main() -> ExitCode {
    if let Some(folder) = std::env::var_os(CHILD) {
        runtime().block_on(save_versions(Path::new(&folder)));
        return ExitCode::SUCCESS;
    }
    let tests: [(&str, fn()); 2] = [
        ("killed_while_it_saves_it_leaves_whole_versions", killed_while_it_saves_it_leaves_whole_versions),
        (
            "processes_that_save_at_once_get_distinct_versions",
            processes_that_save_at_once_get_distinct_versions,
        ),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit_code()
}

fn killed_while_it_saves_it_leaves_whole_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder is made");
    let mut acknowledged = BTreeSet::new();
    for round in 0..30 {
        let (mut child, mut said) = start(folder.path());
        acknowledged.extend(versions(said.by_ref().take(1)));
        // It goes on saving meanwhile, so that every moment of a save comes to be its last.
        thread::sleep(Duration::from_micros(400) * round);
        child.kill().expect("the child is killed");
        child.wait().expect("the child is over");
        acknowledged.extend(versions(said));
        let there = check(folder.path());
        assert!(acknowledged.is_subset(&there), "acknowledged {acknowledged:?}, there {there:?}");
    }
    assert!(acknowledged.len() >= 30);
}

fn processes_that_save_at_once_get_distinct_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder is made");
    let children: Vec<_> = (0..4).map(|_| start(folder.path())).collect();
    let mut saved = Vec::new();
    for (mut child, said) in children {
        saved.extend(versions(said));
        assert!(child.wait().expect("the child is over").success());
    }
    assert_eq!(saved.len(), 4 * SAVES);
    assert_eq!(BTreeSet::from_iter(saved), check(folder.path()));
}

type Said = Lines<BufReader<ChildStdout>>;

fn start(folder: &Path) -> (Child, Said) {
    let this = std::env::current_exe().expect("this program has a path");
    let mut child =
        Command::new(this).env(CHILD, folder).stdout(Stdio::piped()).spawn().expect("the child starts");
    let output = child.stdout.take().expect("the output is piped");
    (child, BufReader::new(output).lines())
}

/// The versions that a child says it has saved.
fn versions(said: impl Iterator<Item = std::io::Result<String>>) -> Vec<u64> {
    let lines = said.map(|line| line.expect("the output is text"));
    lines.map(|line| line.parse().expect("a line is a number")).collect()
}

/// All versions that are there, each of which must be whole.
fn check(folder: &Path) -> BTreeSet<u64> {
    runtime().block_on(async {
        let service = FileArtifacts::open(folder).await.expect("the folder opens");
        let mut there = BTreeSet::new();
        for version in service.versions(&key()).await.expect("the versions are listed") {
            let part = service.load(&key(), Some(version.version)).await.expect("the version is read");
            let text = part.and_then(|part| part.text).expect("the version is a text");
            assert!(text == content(), "version {} has {} bytes", version.version, text.len());
            there.insert(version.version);
        }
        there
    })
}

/// The child's work.
async fn save_versions(folder: &Path) {
    let service = FileArtifacts::open(folder).await.expect("the folder opens");
    for _ in 0..SAVES {
        let saved = service.save(&key(), NewArtifact::new(Part::text(content()))).await;
        let version = saved.expect("the version is saved").version;
        writeln!(std::io::stdout(), "{version}").expect("the parent reads");
    }
}

fn key() -> ArtifactKey {
    ArtifactKey::new(&SessionKey::new("shop", "ada", "s").expect("a valid key"), "plans/house.txt")
}

/// Long enough that writing it takes its time.
fn content() -> String {
    "brick ".repeat(100_000)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}
