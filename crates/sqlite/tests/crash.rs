//! Processes that are killed, that write at the same time, or that run out of disk space.
//!
//! This program is its own child: with `SESSILE_TEST_CHILD` set it is not a list of tests but a
//! program that writes, see `crash/child.rs`. To add a test, write an `async fn` that takes a path
//! and name it in `TESTS`.

#[path = "crash/chance.rs"]
mod chance;
#[path = "crash/child.rs"]
mod child;
#[path = "crash/file.rs"]
mod file;
#[path = "crash/process.rs"]
mod process;
mod support;
#[path = "support/version_1.rs"]
mod version_1;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use sessile_session::EventWindow;

use chance::Chance;
use file::{File, SESSIONS, key};
use process::{CHILD, Process};

/// A test: it gets the path of a new file, and panics if a promise is broken.
type Test = fn(PathBuf) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        const TESTS: &[(&str, Test)] = &[$((stringify!($test), |path| Box::pin($test(path)))),*];
    };
}

tests![
    killed_at_random_moments_every_acknowledged_event_is_there_once,
    killed_while_it_opens_a_new_file_it_can_be_opened_again,
    processes_may_open_a_new_file_at_the_same_time,
    processes_appending_at_the_same_time_lose_nothing,
    eight_processes_count_to_1600,
    processes_migrate_an_old_file_at_the_same_time,
    a_full_disk_or_an_interrupted_commit_changes_nothing,
    without_any_room_opening_is_an_error,
    a_full_disk_refuses_and_loses_nothing_until_there_is_room,
    a_file_or_folder_that_may_not_be_written_is_refused_untouched,
];

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(CHILD) {
        runtime().block_on(child::run(&role));
        return ExitCode::SUCCESS;
    }
    let new_file = TESTS.iter().map(|(name, test)| trial("new_file", name, support::new_file, *test));
    let v1_file = TESTS.iter().map(|(name, test)| trial("v1_file", name, support::new_v1_file, *test));
    libtest_mimic::run(&Arguments::from_args(), new_file.chain(v1_file).collect()).exit_code()
}

fn trial(layout: &str, name: &str, new_file: fn() -> PathBuf, test: Test) -> Trial {
    Trial::test(format!("{layout}::{name}"), move || {
        runtime().block_on(test(new_file()));
        Ok(())
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

async fn killed_at_random_moments_every_acknowledged_event_is_there_once(path: PathBuf) {
    let mut chance = Chance::new();
    let mut file = File::new(path);
    for round in 0..15 {
        let mut process = Process::appending(file.path(), &format!("r{round}"), 8, u32::MAX, &SESSIONS);
        // Half of them are surely killed at work; the others may die while they open the file.
        if round % 2 == 1 {
            process.wait_for_a_line();
        }
        std::thread::sleep(chance.between(Duration::from_millis(5), Duration::from_millis(150)));
        let output = process.kill();
        assert_eq!(output.failed, [], "round {round}");
        file.acknowledged(output.acknowledged);
        file.check().await;
        file.append_to_all(&format!("after-r{round}")).await;
    }
}

async fn killed_while_it_opens_a_new_file_it_can_be_opened_again(path: PathBuf) {
    let mut chance = Chance::new();
    for round in 0..20 {
        let copy = path.with_extension(round.to_string());
        if path.exists() {
            std::fs::copy(&path, &copy).expect("the file is copied");
        }
        let mut file = File::new(copy);
        let process = Process::appending(file.path(), "first", 1, u32::MAX, &SESSIONS);
        std::thread::sleep(chance.between(Duration::ZERO, Duration::from_millis(30)));
        file.acknowledged(process.kill().acknowledged);
        file.check().await;
        file.append_to_all("after").await;
        file.check().await;
    }
}

async fn processes_may_open_a_new_file_at_the_same_time(path: PathBuf) {
    let mut file = File::new(path);
    let processes: Vec<_> =
        (0..8).map(|n| Process::appending(file.path(), &format!("p{n}"), 1, 1, &SESSIONS)).collect();
    for process in processes {
        let output = process.finish();
        assert_eq!(output.not_opened, None);
        file.acknowledged(output.acknowledged);
    }
    assert_eq!(file.check().await, 8);
}

async fn processes_appending_at_the_same_time_lose_nothing(path: PathBuf) {
    let mut file = File::new(path);
    let processes: Vec<_> =
        (0..4).map(|n| Process::appending(file.path(), &format!("p{n}"), 4, 25, &SESSIONS[..1])).collect();
    for process in processes {
        let output = process.finish();
        assert_eq!((output.acknowledged.len(), output.failed), (100, vec![]));
        file.acknowledged(output.acknowledged);
    }
    assert_eq!(file.check().await, 400);
}

async fn eight_processes_count_to_1600(path: PathBuf) {
    let file = File::new(path);
    let sessions: Vec<_> = (0..8).map(|n| format!("counter{n}")).collect();
    let processes: Vec<_> =
        sessions.iter().map(|session| Process::counting(file.path(), session, 200)).collect();
    let mut counted: Vec<u64> = processes.into_iter().flat_map(|process| process.finish().counted).collect();
    counted.sort_unstable();
    assert!(counted.iter().copied().eq(1..=1600), "each number comes once: {counted:?}");
    let service = file.service().await;
    for session in sessions {
        let found = service.get(&key(&session), EventWindow::NONE).await.expect("the session is read");
        let found = found.expect("the session exists");
        assert_eq!((found.version(), found.state().get("user:count")), (200, Some(1600)));
    }
}

async fn processes_migrate_an_old_file_at_the_same_time(path: PathBuf) {
    version_1::make_version_1(&path, !path.exists());
    let mut file = File::new(path);
    let processes: Vec<_> =
        (0..8).map(|n| Process::appending(file.path(), &format!("p{n}"), 2, 5, &SESSIONS)).collect();
    for process in processes {
        let output = process.finish();
        assert_eq!((output.not_opened, output.acknowledged.len(), output.failed), (None, 10, vec![]));
        file.acknowledged(output.acknowledged);
    }
    assert_eq!(file.check().await, 80);
}

/// The limit is the size of files: a write beyond it fails, often half-way.
async fn a_full_disk_or_an_interrupted_commit_changes_nothing(path: PathBuf) {
    let mut file = File::new(path);
    file.append_to_all("before").await;
    for (round, kilobytes) in [300, 500, 900].into_iter().enumerate() {
        let name = format!("r{round}");
        let process = Process::appending_with_room(file.path(), &name, 8, 1000, &SESSIONS, kilobytes);
        let output = process.finish();
        assert_eq!(output.failed.len(), 8, "no task finds room for all of its events");
        file.acknowledged(output.acknowledged);
        file.refused(output.failed);
        file.check().await;
        file.append_to_all(&format!("after-{name}")).await;
    }
}

async fn without_any_room_opening_is_an_error(path: PathBuf) {
    let mut file = File::new(path);
    let output = Process::appending_with_room(file.path(), "first", 1, 1, &SESSIONS, 0).finish();
    assert!(output.acknowledged.is_empty() && output.not_opened.is_some(), "{output:?}");
    file.append_to_all("after").await;
    assert_eq!(file.check().await, 4);
}

/// The disk is a real one, if small.
async fn a_full_disk_refuses_and_loses_nothing_until_there_is_room(path: PathBuf) {
    let disk = tempfile::tempdir().expect("a temporary folder is made");
    let output = Process::filling_a_disk(&path, disk.path()).finish();
    let found = output.checked.expect("everything is looked for");
    assert!(found > 10, "{found} events found room");
}

async fn a_file_or_folder_that_may_not_be_written_is_refused_untouched(path: PathBuf) {
    let mut file = File::new(path);
    file.append_to_all("before").await;
    let folder = file.path().parent().expect("a file is in a folder").to_owned();
    let refusal = |what: &Path, mode: u32, path: &Path| {
        let before = std::fs::metadata(what).expect("it is there").permissions();
        std::fs::set_permissions(what, Permissions::from_mode(mode)).expect("it is ours");
        let output = Process::opening(path).finish();
        std::fs::set_permissions(what, before).expect("it is ours");
        output.refused.clone().unwrap_or_else(|| panic!("{} may not be opened: {output:?}", path.display()))
    };
    // The thread that writes closes the file a moment after its service is dropped.
    while file.path().with_extension("db-wal").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let contents = std::fs::read(file.path()).expect("it can be read");
    assert!(
        refusal(file.path(), 0o444, file.path())
            .contains("is read-only; make the file and its folder writable")
    );
    assert!(refusal(file.path(), 0o000, file.path()).contains("may file and folder be written?"));
    assert!(refusal(&folder, 0o555, file.path()).contains("make the file and its folder writable"));
    assert!(refusal(&folder, 0o555, &folder.join("new.db")).contains("may file and folder be written?"));
    assert!(!folder.join("new.db").exists());
    assert_eq!(std::fs::read(file.path()).expect("it can be read"), contents);
    let output = Process::opening(file.path()).finish();
    assert_eq!(output.checked, Some(0), "with its rights back it opens: {output:?}");
    assert_eq!(file.check().await, 4);
}
