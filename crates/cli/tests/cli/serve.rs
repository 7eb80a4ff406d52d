use std::net::TcpListener;
use std::process::Command;

use serde_json::json;

use crate::served::Served;
use crate::support::{Folder, conversation};

const RUN: &str = "/run";

fn message(app: &str, text: &str) -> serde_json::Value {
    json!({
        "appName": app, "userId": "user", "sessionId": "s1",
        "newMessage": {"role": "user", "parts": [{"text": text}]},
    })
}

#[test]
fn the_samples_are_served_and_what_is_printed_works() {
    let folder = Folder::new();
    let served = Served::new(&folder, &[]);
    assert_eq!(served.get("/list-apps"), json!(["greeter", "shop"]));
    let lines: Vec<&str> = served.said.lines().filter(|line| line.trim_start().starts_with("curl")).collect();
    assert_eq!(lines.len(), 3, "{}", served.said);
    let (_, page) = served.said.split_once("described on http://").expect("it says where the page is");
    let path = page.lines().next().and_then(|url| url.strip_prefix(&served.address));
    let page = served.request("GET", path.expect("it is on this server"), None);
    assert!(page.status == 200 && page.body.contains("openapi.json"), "{page:?}");
    for line in lines {
        let output = Command::new("sh").arg("-c").arg(format!("{line} --fail")).output().expect("curl runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let session = served.get("/apps/greeter/users/user/sessions/s1");
    assert_eq!(session["state"]["user:name"], "Ada");
    assert!(folder.path().join("sessile.db").exists());
    assert!(folder.run(&["state", "get", "greeter", "--user", "user", "user:name"]).ok().contains("Ada"));
}

#[test]
fn it_stops_with_grace_when_asked() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let served = Served::new(&folder, &[]);
        served.post("/apps/shop/users/user/sessions", &json!({"sessionId": "s1"}));
        served.kill(signal);
        let (code, said) = served.wait();
        assert_eq!(code, Some(0), "{said}");
        assert!(!folder.path().join("sessile.db-wal").exists(), "the store was closed");
        assert_eq!(folder.run(&["sessions", "list", "--json"]).json_lines().len(), 1);
    }
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    Folder::new().run(&["serve", "--port", &port]).fails(4, "choose another with --port");
}

#[test]
fn others_are_not_let_in_without_authentication() {
    let folder = Folder::new();
    folder.run(&["serve", "--host", "0.0.0.0", "--port", "0"]).fails(2, "--insecure");
    folder.run(&["serve", "--host", "nowhere.invalid"]).fails(2, "is not an address");
    assert!(!folder.path().join("sessile.db").exists());
    let open = Served::new(&folder, &["--host", "0.0.0.0", "--insecure"]);
    assert_eq!(open.get("/health"), json!({"status": "ok"}));
}

#[test]
fn tokens_say_who_asks() {
    let folder = Folder::new();
    let token = "0123456789abcdef0123456789abcdef";
    let hash = |args: &[&str], token: &str| folder.run_with(&[&["tokens", "hash"], args].concat(), token);
    let entry = hash(&["--user", "ada", "--right", "write_app"], &format!("{token}\n")).ok();
    assert!(!entry.contains(token));
    hash(&["--user", "ada"], "short").fails(2, "shorter than 16 bytes");
    hash(&["--user", "ada"], "with some white space in it").fails(2, "white space");
    hash(&["--user", "ada", "--right", "root"], token).fails(2, "invalid value");
    std::fs::write(folder.path().join("tokens.json"), format!("[{entry}]")).expect("the file is written");

    let served = Served::new(&folder, &["--tokens-file", "tokens.json"]);
    assert!(served.said.contains("$TOKEN"), "{}", served.said);
    let ask = |path: &str, token: &str| {
        let header = format!("authorization: Bearer {token}\r\n");
        served.request_with("GET", path, None, &header).expect("it answers").status
    };
    assert_eq!(served.request("GET", "/apps/shop/users/ada/sessions", None).status, 401);
    assert_eq!(ask("/apps/shop/users/ada/sessions", token), 200);
    assert_eq!(ask("/apps/shop/users/bob/sessions", token), 403);
    assert_eq!(ask("/apps/shop/users/ada/sessions", "wrong"), 401);

    for (args, said) in [
        (["--tokens-file", "none.json"], "cannot read none.json"),
        (["--jwt-issuer", "me"], "have no effect without"),
        (["--jwks-file", "tokens.json"], "tokens.json: "),
    ] {
        let ran = folder.run(&[&["serve", "--port", "0"], &args[..]].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{ran:?}");
    }
}

#[test]
fn agents_of_a_folder_are_served_and_broken_ones_named() {
    let folder = Folder::new();
    let write = |app: &str, file: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join("agents").join(app)).expect("the folder is made");
        std::fs::write(folder.path().join("agents").join(app).join(file), text).expect("the file is written");
    };
    write("parrot", "script.yaml", "rules: [{ then: { reply: '{user}!' } }]");
    write("parrot", "root_agent.yaml", "name: parrot\nmodel: scripted:script.yaml\noutput_key: last\n");
    write("broken", "root_agent.yaml", "name: broken\nmodle: x\n");
    let served = Served::new(&folder, &["agents", "--auto_create_session"]);
    assert!(
        served.said.contains("broken cannot be used") && served.said.contains("modle"),
        "{}",
        served.said
    );
    let events = served.post(RUN, &message("parrot", "hello"));
    assert_eq!(events[0]["content"]["parts"][0]["text"], "hello!");
    let said = folder.run_with(&["chat", "parrot", "--agents", "agents"], "hi\n").ok();
    assert_eq!(said, "hi!\n");

    folder.run(&["serve", "none"]).fails(1, "cannot load applications from none");
    std::fs::create_dir(folder.path().join("empty")).expect("the folder is made");
    folder.run(&["serve", "empty"]).fails(3, "holds a root_agent.yaml");
    folder.run(&["serve", "agents/broken"]).fails(2, "no application can be used");
}

#[test]
fn options_of_adk_are_taken_or_refused_with_a_reason() {
    let folder = Folder::new();
    let args = [
        "--session_service_uri",
        "sqlite:///other.db",
        "--artifact_service_uri",
        "memory://",
        "--memory_service_uri",
        "memory://",
        "--allow_origins",
        "https://example.com",
        "--max_llm_calls",
        "-1",
        "--no-reload",
    ];
    let served = Served::new(&folder, &args);
    assert_eq!(served.get("/health"), json!({"status": "ok"}));
    assert!(folder.path().join("other.db").exists());
    drop(served);
    for (args, said) in [
        (&["--reload_agents"][..], "restart the server"),
        (&["--a2a"], "not served"),
        (&["--with_ui"], "--adk-web"),
        (&["--trace_to_cloud"], "--otlp-endpoint"),
        (&["--url_prefix", "/x"], "proxy"),
        (&["--artifact_service_uri", "gs://bucket"], "file://FOLDER"),
        (&["--memory_service_uri", "rag://corpus"], "sqlite:///FILE"),
        (&["--session_service_uri", "agentengine://1"], "agentengine://"),
        (&["--allow_origins", "regex:("], "pattern"),
        (&["--otlp-endpoint", "localhost"], "is not a URL"),
        (&["--log-level", "a=b=c"], "--log-level"),
        (&["--max-connections", "0"], "--max-connections"),
        (&["--max-json-depth", "201"], "--max-json-depth"),
        (&["--adk-web", "nowhere"], "cannot read the folder nowhere"),
    ] {
        let ran = folder.run(&[&["serve", "--port", "0"], args].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{args:?}: {ran:?}");
    }
}

#[test]
fn limits_are_those_that_were_given() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--max-body", "200", "--store", "memory://"]);
    let big = json!({"state": {"k": "x".repeat(300)}});
    assert_eq!(served.request("POST", "/apps/shop/users/user/sessions", Some(&big)).status, 413);
    assert_eq!(served.request("POST", "/apps/shop/users/user/sessions", Some(&json!({}))).status, 200);
}

#[test]
fn logs_are_json_on_request() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--log-format", "json", "--log-level", "debug"]);
    served.get("/health");
    served.kill("TERM");
    let before = served.said.clone();
    let said = before + &served.wait().1;
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["level"].is_string()), "{said}");
}

/// A token signed with a secret.
fn jwt(secret: &[u8], claims: &serde_json::Value) -> String {
    use base64::Engine;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let signed =
        format!("{}.{}", encode(br#"{"alg":"HS256","typ":"JWT"}"#), encode(claims.to_string().as_bytes()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{signed}.{}", encode(ring::hmac::sign(&key, signed.as_bytes()).as_ref()))
}

#[test]
fn web_tokens_say_who_asks() {
    let folder = Folder::new();
    let secret = b"a secret of more than thirty-two bytes";
    std::fs::write(folder.path().join("key"), secret).expect("the file is written");
    let served =
        Served::new(&folder, &["--jwt-key-file", "key", "--jwt-issuer", "me", "--jwt-audience", "sessile"]);
    let ask = |user: &str, secret: &[u8], claims: serde_json::Value| {
        let header = format!("authorization: Bearer {}\r\n", jwt(secret, &claims));
        let path = format!("/apps/shop/users/{user}/sessions");
        served.request_with("GET", &path, None, &header).expect("it answers").status
    };
    let claims = json!({"sub": "ada", "iss": "me", "aud": "sessile", "exp": 4_000_000_000_u64});
    let with = |name: &str, value: serde_json::Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        changed
    };
    assert_eq!(ask("ada", secret, claims.clone()), 200);
    assert_eq!(ask("bob", secret, claims.clone()), 403);
    assert_eq!(ask("ada", b"another secret of more than 32 bytes", claims.clone()), 401);
    assert_eq!(ask("ada", secret, with("iss", json!("you"))), 401);
    assert_eq!(ask("ada", secret, with("aud", json!("others"))), 401);
    assert_eq!(ask("ada", secret, with("exp", json!(1))), 401);
}

#[test]
fn the_files_of_the_web_ui_are_served() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("ui")).expect("the folder is made");
    std::fs::write(folder.path().join("ui/index.html"), "<title>chat</title>").expect("the file is written");
    let served = Served::new(&folder, &["--adk-web", "ui"]);
    assert_eq!(served.request("GET", "/dev-ui/", None).body, "<title>chat</title>");
    assert_eq!(served.request("GET", "/dev-ui/../sessile.db", None).status, 404);
}

#[test]
fn a_corrupt_session_hides_no_other_from_a_list() {
    let folder = Folder::with_sessions(async |service| {
        conversation(service, "s1").await;
        conversation(service, "broken").await;
    });
    folder.sql("UPDATE sessions SET state = '{' WHERE id = 'broken'");
    let served = Served::new(&folder, &[]);
    let answer = served.request("GET", "/apps/shop/users/ada/sessions", None);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.headers.contains("sessile-unreadable: 1"), "{answer:?}");
    let listed = answer.json();
    let ids: Vec<_> = listed.as_array().expect("a list").iter().map(|session| &session["id"]).collect();
    assert_eq!(ids, ["s1"]);
    served.kill("TERM");
    let (_, said) = served.wait();
    assert!(said.contains("column state of table sessions, row shop/ada/broken"), "{said}");
}

#[test]
fn an_id_begins_no_line_of_the_log() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--log-level", "info"]);
    let path = "/apps/greeter/users/ada/sessions/s%0AINFO%20forged%1B%5B31m";
    assert_eq!(served.request("POST", path, None).status, 200);
    assert_eq!(served.request("DELETE", path, None).status, 200);
    assert_eq!(served.request("DELETE", &format!("{path}/runs/x%0Ay"), None).status, 404);
    served.kill("TERM");
    let (_, said) = served.wait();
    assert!(said.contains("greeter/ada/s\\nINFO forged\\u{1b}[31m"), "{said}");
    assert!(!said.contains("\nINFO forged") && !said.contains("\u{1b}[31m"), "{said}");
}

#[test]
fn the_schema_of_an_application_is_obeyed_by_its_server_and_kept_from_imports() {
    let folder = Folder::new();
    let app = folder.path().join("agents/hotel");
    std::fs::create_dir_all(&app).expect("there is room");
    std::fs::write(app.join("script.yaml"), "turns: [{ reply: hello }]\nrepeat: true\n")
        .expect("there is room");
    let yaml = "name: desk\nmodel: scripted:script.yaml\noutput_key: said\nstate_schema:\n  said: string\n  user:nights: { type: integer, min: 0 }\n";
    std::fs::write(app.join("root_agent.yaml"), yaml).expect("there is room");
    // A session from before there was a schema: an import keeps what was exported.
    let old = Folder::with_sessions(async |service| {
        let new = sessile_session::CreateSession::new("hotel", "user").with_id("old");
        service.create(new.with_state(json!({"said": 5, "user:nights": 3}))).await.expect("it is new");
    });
    let exported = old.run(&["sessions", "export"]).ok();
    folder.run(&["db", "migrate"]).ok();
    folder.run_with(&["sessions", "import", "-"], &exported).ok();
    let served = Served::new(&folder, &["agents"]);
    assert_eq!(
        served.get("/apps/hotel/users/user/sessions/old")["state"],
        json!({"said": 5, "user:nights": 3})
    );
    served.post("/apps/hotel/users/user/sessions", &json!({"sessionId": "s1"}));
    let path = "/apps/hotel/users/user/sessions/s1";
    let refused = served.request("PATCH", path, Some(&json!({"stateDelta": {"user:nights": "two"}})));
    assert_eq!(refused.status, 422);
    assert!(
        refused.body.contains("it is declared as `integer` and cannot hold a string"),
        "{}",
        refused.body
    );
    let below = served.request("PATCH", path, Some(&json!({"stateOps": {"user:nights": {"add": -4}}})));
    assert_eq!((below.status, below.body.contains("below the minimum 0")), (409, true), "{}", below.body);
    let mut run = message("hotel", "hi");
    run["stateDelta"] = json!({"nights": 1});
    let refused = served.request("POST", RUN, Some(&run));
    assert_eq!((refused.status, refused.body.contains("not declared")), (422, true), "{}", refused.body);
    served.post(RUN, &message("hotel", "hi"));
    assert_eq!(served.get(path)["state"], json!({"said": "hello", "user:nights": 3}));
}
