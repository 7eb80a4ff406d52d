//! What a child process does. It says what happened on its standard output, a line for each, and
//! only after it happened: see `Said` for the lines.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use sessile_session::{EventWindow, SessionError, SessionService};
use sessile_sqlite::{SqliteOptions, SqliteStore};

use crate::file::{create, event, key};

pub(crate) async fn run(role: &OsStr) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u32>().expect("a number");
    match (role.to_str(), &*arguments) {
        (Some("append"), [path, name, tasks, events, sessions @ ..]) => {
            append(path, name, number(tasks), number(events), sessions).await;
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
            Err(error @ SessionError::Backend { .. }) => {
                return say(&format!("failed {session} {id} {error}"));
            }
            Err(error) => panic!("{id} fails in another way: {error}"),
        }
    }
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
        Err(error @ SessionError::Backend { .. }) => {
            say(&format!("not-opened {error}"));
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
