use serde_json::json;

use crate::support::{Folder, conversation};

#[test]
fn every_scope_is_read_set_and_removed() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let session = ["--user", "ada", "--session", "s1"];
    for (owner, key) in [(&session[..0], "app:k"), (&session[..2], "user:k"), (&session[..], "k")] {
        let with = |command: &[&'static str], rest: &[&'static str]| {
            let mut args = vec!["state"];
            args.extend(command.iter().copied().chain(["shop"]).chain(owner.iter().copied()));
            args.extend([key].iter().copied().chain(rest.iter().copied()));
            args
        };
        folder.run(&with(&["get"], &[])).fails(3, "has no key");
        folder.run(&with(&["rm"], &[])).fails(3, "has no key");
        folder.run(&with(&["set"], &[r#"{"a": [1.0, null]}"#])).ok();
        assert_eq!(folder.run(&with(&["get"], &[])).ok(), "{\"a\":[1.0,null]}\n");
        folder.run(&with(&["set"], &["plain words", "--text"])).ok();
        assert_eq!(folder.run(&with(&["get"], &["--raw"])).ok(), "plain words\n");
        folder.run(&with(&["rm"], &[])).ok();
        folder.run(&with(&["get"], &[])).fails(3, "has no key");
    }
    let shown = folder.run(&["sessions", "show", "shop", "ada", "s1", "--json"]).json_lines();
    assert_eq!(shown[0]["version"], 5); // each change of the session's own keys is an event
}

#[test]
fn everything_is_shown_without_a_key() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let get = |args: &[&str]| folder.run(&[&["state", "get", "shop", "--json"], args].concat()).json_lines();
    assert_eq!(get(&[]), [json!({"app:tax": 0.25})]);
    assert_eq!(get(&["--user", "ada"]), [json!({"app:tax": 0.25, "user:name": "Ada"})]);
    let all = json!({"app:tax": 0.25, "user:name": "Ada", "first": 1, "step": 2});
    assert_eq!(get(&["--user", "ada", "--session", "s1"]), [all]);
    assert!(folder.run(&["state", "get", "shop"]).ok().contains("app:tax  0.25"));
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    folder.run(&["state", "set", "shop", "temp:x", "1"]).fails(2, "never stored");
    folder.run(&["state", "set", "shop", "user:x", "1"]).fails(2, "add --user");
    folder.run(&["state", "set", "shop", "x", "1"]).fails(2, "add --session");
    folder.run(&["state", "set", "shop", "--user", "ada", "x", "1"]).fails(2, "add --session");
    folder.run(&["state", "set", "shop", "app:x", "word"]).fails(2, "--text");
    folder.run(&["state", "set", "shop", "app:app:x", "1"]).fails(2, "twice");
    let no = ["state", "set", "shop", "--user", "ada", "--session", "no", "x", "1"];
    folder.run(&no).fails(3, "session shop/ada/no not found");
    let stale = ["state", "set", "shop", "--user", "ada", "--session", "s1", "x", "1", "--if-version", "1"];
    folder.run(&stale).fails(4, "has changed");
    folder.run(&["state", "set", "shop", "app:x", "1", "--if-version", "0"]).fails(4, "has changed");
    folder.run_with(&["state", "set", "shop", "app:big", "-"], "12345678901234567890123\n").ok();
    assert_eq!(folder.run(&["state", "get", "shop", "app:big"]).ok(), "12345678901234567890123\n");
    let all =
        folder.run(&["state", "get", "shop", "--user", "ada", "--session", "s1", "--json"]).json_lines();
    assert!(all[0].get("x").is_none() && all[0].get("app:x").is_none());
}

/// The arguments of a command on a key of each scope: the options that say whose it is, and the
/// key.
const SCOPES: [(&[&str], &str); 3] =
    [(&[], "app:k"), (&["--user", "ada"], "user:k"), (&["--user", "ada", "--session", "s1"], "k")];

#[test]
fn operations_change_what_is_stored_in_every_scope_and_print_it() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    for (owner, key) in SCOPES {
        let run = |command: &str, rest: &[&str]| {
            folder.run(&[&["state", command, "shop"], owner, &[key], rest].concat())
        };
        assert_eq!(run("add", &["2"]).ok(), "2\n");
        assert_eq!(run("add", &["-0.5"]).ok(), "1.5\n");
        assert_eq!(run("get", &[]).ok(), "1.5\n");
        run("add", &["-2", "--min", "0"]).fails(4, "below the minimum 0");
        run("add", &["2", "--max", "3"]).fails(4, "above the maximum 3");
        assert_eq!(run("add", &["2", "--min", "-1", "--max", "3.5"]).ok(), "3.5\n");
        run("append", &["1"]).fails(4, "`append` needs a list");
        run("rm", &[]).ok();
        assert_eq!(run("append", &["[1, \"two\"]"]).ok(), "[1,\"two\"]\n");
        assert_eq!(run("append", &["{\"three\": 3}"]).ok(), "[1,\"two\",{\"three\":3}]\n");
        assert_eq!(run("append", &["[[4]]"]).ok(), "[1,\"two\",{\"three\":3},[4]]\n");
        run("rm", &[]).ok();
        assert_eq!(run("union", &["a", "--text"]).ok(), "[\"a\"]\n");
        assert_eq!(run("union", &["[\"a\", \"b\", 1, 1.0]"]).ok(), "[\"a\",\"b\",1]\n");
        run("rm", &[]).ok();
        assert_eq!(run("union", &["{\"city\": \"Paris\"}"]).ok(), "{\"city\":\"Paris\"}\n");
        assert_eq!(run("union", &["{\"zip\": 75001}"]).ok(), "{\"city\":\"Paris\",\"zip\":75001}\n");
        run("add", &["1"]).fails(4, "it holds an object, and `add` needs a number");
        for wrong in ["one", "\"1\"", "null", "123456789012345678901234567890"] {
            assert_eq!(run("add", &[wrong]).code, Some(2), "{wrong}");
        }
        run("add", &["1", "--min", "x"]).fails(2, "write a number");
        run("append", &["word"]).fails(2, "--text");
        assert_eq!(run("get", &[]).ok(), "{\"city\":\"Paris\",\"zip\":75001}\n");
    }
    let session = ["state", "append", "shop", "--user", "ada", "--session"];
    folder.run(&[&session[..], &["s1", "log", "-"]].concat()).fails(2, "not JSON");
    let piped =
        folder.run_with(&[&session[..], &["s1", "log", "-"]].concat(), "[1, 123456789012345678901]\n");
    assert_eq!(piped.ok(), "[1,123456789012345678901]\n");
    folder.run(&[&session[..], &["none", "log", "1"]].concat()).fails(3, "session shop/ada/none not found");
    folder.run(&["state", "add", "shop", "temp:x", "1"]).fails(2, "never stored");
    folder.run(&["state", "add", "shop", "x", "1"]).fails(2, "add --session");
    folder.run(&["db", "check"]).ok();
}

#[test]
fn a_change_is_made_only_at_the_version_that_is_expected_in_every_scope() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let versions = || {
        let args = ["state", "versions", "shop", "--user", "ada", "--session", "s1", "--json"];
        folder.run(&args).json_lines().remove(0)
    };
    assert_eq!(versions(), json!({"app": 1, "user": 1, "session": 2}));
    for (owner, key) in SCOPES {
        let scope = key.split_once(':').map_or("session", |(scope, _)| scope);
        let run = |command: &str, rest: &[&str]| {
            folder.run(&[&["state", command, "shop"], owner, &[key], rest].concat())
        };
        for (command, value) in [
            ("set", Some("1")),
            ("add", Some("1")),
            ("rm", None),
            ("append", Some("1")),
            ("union", Some("2")),
        ] {
            let version = versions()[scope].as_u64().expect("a version");
            let at = |version: u64| {
                let version = version.to_string();
                let rest: Vec<&str> = value.into_iter().chain(["--if-version", &version]).collect();
                run(command, &rest)
            };
            at(version + 1).fails(4, "was expected");
            at(version - 1).fails(4, "was expected");
            assert_eq!(versions()[scope], version, "{command} {key}");
            at(version).ok();
            assert_eq!(versions()[scope], version + 1, "{command} {key}");
        }
        assert_eq!(run("get", &[]).ok(), "[1,2]\n");
    }
    assert!(folder.run(&["state", "versions", "shop"]).ok().contains("app    6"));
    folder.run(&["state", "versions", "shop", "--user", "ada", "--session", "no"]).fails(3, "not found");
}

#[test]
fn many_commands_at_once_lose_nothing() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for (owner, key) in SCOPES {
                    folder.run(&[&["state", "add", "shop"], owner, &[key, "1"]].concat()).ok();
                }
            });
        }
    });
    for (owner, key) in SCOPES {
        assert_eq!(folder.run(&[&["state", "get", "shop"], owner, &[key]].concat()).ok(), "8\n");
    }
}

#[test]
fn a_command_leaves_one_file_behind() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let commands: [&[&str]; 9] = [
        &["state", "get", "shop"],
        &["state", "set", "shop", "app:x", "1"],
        &["state", "add", "shop", "app:x", "1"],
        &["state", "add", "shop", "app:tax", "-9", "--min", "0"],
        &["sessions", "list"],
        &["sessions", "show", "shop", "ada", "none"],
        &["sessions", "fork", "shop", "ada", "s1"],
        &["db", "check"],
        &["db", "migrate"],
    ];
    for command in commands {
        folder.run(command);
        let files = std::fs::read_dir(folder.path()).expect("the folder is read");
        let names: Vec<_> = files.map(|file| file.expect("it is read").file_name()).collect();
        assert_eq!(names, ["sessile.db"], "{command:?}");
    }
}

#[test]
fn a_folder_of_agents_says_what_may_be_set() {
    let folder = Folder::with_sessions(async |service| conversation(service, "s1").await);
    let app = folder.path().join("agents/shop");
    std::fs::create_dir_all(&app).expect("there is room");
    let yaml = "name: seller\nmodel: gemini-2.5-flash\nstate_schema:\n  user:points: { type: integer, min: 0 }\n  step: integer\n";
    std::fs::write(app.join("root_agent.yaml"), yaml).expect("there is room");
    let with = |args: &[&str]| {
        let all = [
            &["state", args[0], "shop", "--user", "ada", "--session", "s1", "--agents", "agents"],
            &args[1..],
        ];
        folder.run(&all.concat())
    };
    let told = "\"user:points\": it is declared as `integer` and cannot hold a string";
    with(&["set", "user:points", "many", "--text"]).fails(2, told);
    with(&["set", "step", "1.5"]).fails(2, "it has a fraction");
    with(&["set", "other", "1"]).fails(2, "it is not declared in the schema");
    with(&["add", "user:points", "0.5"]).fails(2, "0.5 has a fraction");
    with(&["add", "user:points", "-1"]).fails(4, "below the minimum 0");
    with(&["append", "step", "1"]).fails(2, "only lists have them");
    assert_eq!(with(&["add", "user:points", "3"]).ok(), "3\n");
    with(&["rm", "step"]).ok();
    // Without the folder nothing is known of a schema.
    folder.run(&["state", "set", "shop", "--user", "ada", "user:points", "-1"]).ok();
    folder
        .run(&["state", "set", "shop", "app:x", "1", "--agents", "nowhere"])
        .fails(1, "cannot load applications from nowhere");
}
