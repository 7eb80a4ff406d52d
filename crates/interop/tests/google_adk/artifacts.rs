//! One folder of artifacts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sessile_artifact::{ArtifactKey, ArtifactService, FileArtifacts, NewArtifact};
use sessile_session::{Blob, Part};
use sessile_state::SharedValue;
use tempfile::TempDir;

use crate::python::{Python, place};
use crate::{Outcome, key};

/// A folder used by both.
struct Both {
    python: Python,
    rust: FileArtifacts,
    folder: TempDir,
}

impl Both {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let path = folder.path().to_str().expect("a temporary path is text");
        let python = Python::start_service("artifacts", path);
        let rust = FileArtifacts::open(path).await.expect("the folder opens");
        Self { python, rust, folder }
    }

    /// Python's answer about an artifact of the session `s`.
    fn ask(&mut self, command: &str, name: &str, more: Value) -> Value {
        let mut arguments = place("s");
        arguments["name"] = name.into();
        for (name, value) in more.as_object().expect("arguments are an object") {
            arguments[name] = value.clone();
        }
        self.python.ask(command, arguments).into_value()
    }

    fn names(&mut self) -> Value {
        self.python.ask("names", place("s"))["names"].clone()
    }
}

fn artifact(name: &str) -> ArtifactKey {
    ArtifactKey::new(&key("s"), name)
}

/// Names of both scopes, with folders, blanks and other alphabets.
const NAMES: [&str; 6] =
    ["a.txt", "plans/my house.txt", "plans", "user:face.txt", "user:shared/日本.txt", "back\\slash"];

fn bytes(data: &[u8]) -> Part {
    Part::from(Blob {
        data: Some(data.to_vec().into()),
        mime_type: Some("image/png".to_owned()),
        display_name: Some("Ada's cat".to_owned()),
        ..Blob::default()
    })
}

#[tokio::test]
async fn what_rust_saves_python_loads() -> Outcome {
    let mut both = Both::new().await;
    let notes: BTreeMap<String, SharedValue> =
        BTreeMap::from([("by".to_owned(), json!({"aB": [1, null]}).into())]);
    for name in NAMES {
        both.rust.save(&artifact(name), NewArtifact::new(Part::text(format!("{name}\n🦀")))).await?;
        let picture = NewArtifact { part: bytes(&[0, 255, 128]), custom_metadata: notes.clone() };
        both.rust.save(&artifact(name), picture).await?;

        let text = both.ask("load", name, json!({"version": 0}));
        assert_eq!(text["part"], json!({"text": format!("{name}\n🦀")}));
        let picture = both.ask("load", name, json!({}));
        let expected = json!({"mimeType": "image/png", "displayName": "Ada's cat", "data": "AP-A"});
        assert_eq!(picture["part"]["inlineData"], expected);

        let theirs = both.ask("versions", name, json!({}));
        assert_eq!(theirs["versions"], serde_json::to_value(both.rust.versions(&artifact(name)).await?)?);
        assert_eq!(theirs["versions"][1]["customMetadata"], json!({"by": {"aB": [1, null]}}));
    }
    assert_eq!(both.names(), serde_json::to_value(both.rust.names(&key("s")).await?)?);
    assert_eq!(both.names().as_array().map(Vec::len), Some(NAMES.len()));
    Ok(())
}

#[tokio::test]
async fn what_python_saves_rust_loads() -> Outcome {
    let mut both = Both::new().await;
    for name in NAMES {
        both.ask("save", name, json!({"part": {"text": format!("{name}\n🦀")}}));
        let blob = json!({"mimeType": "image/png", "displayName": "Ada's cat", "data": "AP-A"});
        both.ask("save", name, json!({"part": {"inlineData": blob}, "metadata": {"by": {"aB": [1, null]}}}));

        let text = both.rust.load(&artifact(name), Some(0)).await?;
        assert_eq!(text, Some(Part::text(format!("{name}\n🦀"))));
        assert_eq!(both.rust.load(&artifact(name), None).await?, Some(bytes(&[0, 255, 128])));
        let theirs = both.ask("versions", name, json!({}));
        assert_eq!(theirs["versions"], serde_json::to_value(both.rust.versions(&artifact(name)).await?)?);
    }
    assert_eq!(both.names(), serde_json::to_value(both.rust.names(&key("s")).await?)?);
    Ok(())
}

#[tokio::test]
async fn versions_go_on_where_the_other_stopped() -> Outcome {
    let mut both = Both::new().await;
    for expected in 0..6 {
        let version = if expected % 2 == 0 {
            both.rust.save(&artifact("a"), NewArtifact::new(Part::text("rust"))).await?.version
        } else {
            both.ask("save", "a", json!({"part": {"text": "python"}}))["version"].as_u64().expect("a number")
        };
        assert_eq!(version, expected);
    }
    Ok(())
}

#[tokio::test]
async fn what_one_deletes_is_gone_for_the_other() -> Outcome {
    let mut both = Both::new().await;
    for name in ["doc", "doc/nested", "user:doc"] {
        both.rust.save(&artifact(name), NewArtifact::new(Part::text("x"))).await?;
        both.ask("save", name, json!({"part": {"text": "y"}}));
    }
    both.rust.delete(&artifact("doc")).await?;
    assert!(both.ask("load", "doc", json!({}))["part"].is_null());
    assert_eq!(both.names(), json!(["doc/nested", "user:doc"]));
    both.ask("delete", "doc/nested", json!({}));
    assert_eq!(both.rust.load(&artifact("doc/nested"), None).await?, None);
    assert_eq!(both.rust.names(&key("s")).await?, ["user:doc"]);
    assert_eq!(both.ask("save", "doc", json!({"part": {"text": "again"}}))["version"], 0);
    Ok(())
}

#[tokio::test]
async fn both_refuse_the_same_names() -> Outcome {
    let mut both = Both::new().await;
    for name in [
        "/etc/passwd",
        "../x",
        "a/../b",
        "a\\..\\b",
        "C:x",
        "\\x",
        "versions/x",
        "a/METADATA.json",
        "user:../x",
    ] {
        let mut arguments = place("s");
        arguments["name"] = name.into();
        arguments["part"] = json!({"text": "x"});
        assert_eq!(both.python.refused("save", arguments), "InputValidationError", "{name}");
        let refused = both.rust.save(&artifact(name), NewArtifact::new(Part::text("x"))).await;
        assert!(matches!(refused, Err(sessile_artifact::ArtifactError::InvalidName { .. })), "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_save_at_once_and_every_version_is_there() -> Outcome {
    const EACH: u64 = 40;
    let mut both = Both::new().await;
    let path = both.folder.path().to_str().ok_or("a path is text")?.to_owned();
    let looping = std::thread::spawn(move || {
        let mut arguments = place("s");
        arguments["name"] = "doc".into();
        arguments["count"] = EACH.into();
        Python::start_service("artifacts", &path).ask("loop", arguments)
    });
    let mut versions = BTreeSet::new();
    for n in 0..EACH {
        let saved =
            both.rust.save(&artifact("doc"), NewArtifact::new(Part::text(format!("rust {n}")))).await?;
        assert!(versions.insert(saved.version), "version {} was given twice", saved.version);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let theirs: Vec<u64> =
        serde_json::from_value(looping.join().expect("the loop ends")["versions"].clone())?;
    versions.extend(theirs);
    assert_eq!(versions, BTreeSet::from_iter(0..2 * EACH));
    let mut texts = BTreeSet::new();
    for version in versions {
        let part = both.rust.load(&artifact("doc"), Some(version)).await?.ok_or("a version is lost")?;
        assert_eq!(
            both.ask("load", "doc", json!({"version": version}))["part"],
            serde_json::to_value(&part)?
        );
        texts.insert(part.text);
    }
    assert_eq!(texts.len() as u64, 2 * EACH);
    Ok(())
}
