//! Every command of `docs/cli.md`, in order, in one folder.

use std::path::Path;
use std::process::Command;

use crate::served::Served;
use crate::support::{Folder, Ran};

/// The commands of the page's `sh` blocks.
fn commands(page: &str) -> Vec<&str> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in page.lines() {
        match line.trim_end() {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside && !line.is_empty() => commands.push(line),
            _ => {}
        }
    }
    commands
}

#[test]
fn every_command_of_the_page_does_what_it_says() {
    let page = include_str!("../../../../docs/cli.md");
    let folder = Folder::new();
    let binaries = Path::new(env!("CARGO_BIN_EXE_sessile")).parent().expect("the binary is in a folder");
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").expect("there is a PATH"));
    let mut served: Option<Served> = None;
    let commands = commands(page);
    assert!(commands.len() > 30, "the page has its commands");
    for line in commands {
        let (command, note) = line.split_once('#').unwrap_or((line, "exit code 0"));
        let code: i32 = note.trim().strip_prefix("exit code ").expect(line).parse().expect(line);
        if let Some(args) = command.trim().strip_prefix("sessile serve") {
            let args: Vec<&str> = args.split_whitespace().collect();
            served = Some(Served::new(&folder, &args));
            continue;
        }
        let address = served.as_ref().map_or("127.0.0.1:8000", |served| &served.address);
        let command = command.replace("127.0.0.1:8000", address).replace("curl ", "curl --fail ");
        let output =
            Command::new("sh").args(["-c", &command]).current_dir(folder.path()).env("PATH", &path).output();
        let ran = Ran::from(output.expect("the shell starts"));
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
    }
}

/// What the page promises of each command is in its help.
#[test]
fn every_command_has_help() {
    let folder = Folder::new();
    for command in [
        "serve",
        "chat",
        "sessions list",
        "sessions show",
        "sessions delete",
        "sessions fork",
        "sessions rewind",
        "sessions export",
        "sessions import",
        "state get",
        "state set",
        "state rm",
        "state add",
        "state append",
        "state union",
        "state versions",
        "db check",
        "db migrate",
        "db sweep",
        "tokens hash",
        "bench",
        "completions",
    ] {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        assert!(folder.run(&args).ok().contains("Usage: sessile"), "{command}");
    }
    assert!(folder.run(&["--help"]).ok().contains("Exit codes: 0 done"));
    folder.run(&["serve", "--nonsense"]).fails(2, "--nonsense");
}
