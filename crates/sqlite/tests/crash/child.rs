//! What a child process does. It says what happened on its standard output, a line for each, and
//! only after it happened: see `ChildOutput` for the lines.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use sessile_session::{EventWindow, SessionError, SessionService};
use sessile_sqlite::{SqliteOptions, SqliteStore};

use crate::file::{File, create, event, key};

pub(crate) async fn run(role: &OsStr) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u32>().expect("a number");
    match (role.to_str(), &*arguments) {
        (Some("append"), [path, name, tasks, events, sessions @ ..]) => {
            append(path, name, number(tasks), number(events), sessions).await;
        }
        (Some("fill"), [path, folder]) => fill(Path::new(path), Path::new(folder)).await,
        (Some("open"), [path]) => {
            if service(path).await.is_some() {
                say("checked 0");
            }
        }
        (Some("count"), [path, session, times]) => count(path, session, number(times)).await,
        _ => panic!("no such role: {role:?} {arguments:?}"),
    }
}

/// Appends events in several tasks at once, each until it has done its number or is refused.
async fn append(path: &str, name: &str, tasks: u32, events: u32, sessions: &[&str]) {
    let Some(service) = service(path).await else { return };
    for session in sessions {
        create(&service, session).await;
    }
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let session = sessions[task as usize % sessions.len()].to_owned();
            tokio::spawn(append_one_by_one(service.clone(), session, format!("{name}-{task}"), events))
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    for session in sessions {
        let read = service.get(&key(session), EventWindow::ALL).await;
        read.expect("what is there can be read, whatever failed").expect("the session exists");
    }
}

async fn append_one_by_one(service: SessionService, session: String, name: String, events: u32) {
    for n in 0..events {
        let id = format!("{name}-{n}");
        match service.append_to(&key(&session), event(&id)).await {
            Ok(_) => say(&format!("acknowledged {session} {id}")),
            Err(error @ (SessionError::Backend { .. } | SessionError::Unavailable { .. })) => {
                return say(&format!("failed {session} {id} {error}"));
            }
            Err(error) => panic!("{id} fails in another way: {error}"),
        }
    }
}

/// Appends until the disk is full, makes room, and goes on; all that was acknowledged must be
/// there.
async fn fill(path: &Path, disk: &Path) {
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; 500_000]).expect("there is room");
    let copy = disk.join("sessile.db");
    if path.exists() {
        std::fs::copy(path, &copy).expect("there is room");
    }
    let mut file = File::new(copy);
    let service = file.service().await;
    create(&service, "s0").await;
    let mut n = 0;
    let (id, error) = loop {
        let id = format!("n{n}");
        match service.append_to(&key("s0"), event(&id)).await {
            Ok(_) => file.acknowledged(vec![("s0".to_owned(), id)]),
            Err(error) => break (id, error),
        }
        n += 1;
    };
    assert!(matches!(error, SessionError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("the disk is full; free some space"), "{error}");
    let read = service.get(&key("s0"), EventWindow::ALL).await.expect("what is there can be read");
    assert_eq!(read.expect("the session exists").version(), n, "what was refused is not there");
    let again = service.append_to(&key("s0"), event(&id)).await;
    assert!(
        matches!(again, Err(SessionError::Unavailable { .. })),
        "the disk is as full as before: {again:?}"
    );
    file.refused(vec![("s0".to_owned(), id)]);
    std::fs::remove_file(ballast).expect("there is room again");
    service.append_to(&key("s0"), event("after")).await.expect("there is room again");
    file.acknowledged(vec![("s0".to_owned(), "after".to_owned())]);
    drop(service);
    say(&format!("checked {}", file.check().await));
}

async fn count(path: &str, session: &str, times: u32) {
    let service = service(path).await.expect("there is room");
    create(&service, session).await;
    for _ in 0..times {
        let counted = service
            .transact(&key(session), |state| Ok(state.try_modify("user:count", 0_u64, |count| count + 1)?))
            .await;
        say(&format!("counted {}", counted.expect("it is counted").0));
    }
}

async fn service(path: &str) -> Option<SessionService> {
    match SqliteStore::open(SqliteOptions::new(Path::new(path))).await {
        Ok(store) => Some(SessionService::new(store)),
        Err(error @ (SessionError::Backend { .. } | SessionError::Unavailable { .. })) => {
            say(&format!("not-opened {error}"));
            None
        }
        Err(SessionError::Unusable { reason }) => {
            say(&format!("refused {reason}"));
            None
        }
        Err(error) => panic!("the file does not open: {error}"),
    }
}

/// Writes a line in one piece, so that a killed process leaves no half of one.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}
