//! The contract of artifact services, on all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use sessile_artifact::{
    ArtifactError, ArtifactKey, ArtifactService, FileArtifacts, MemoryArtifacts, NewArtifact,
};
use sessile_session::{Blob, FileData, Part, SessionKey};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Makes of each function one test for each service.
macro_rules! on_every_service {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> super::Outcome {
                super::$name(std::sync::Arc::new(super::MemoryArtifacts::new())).await
            })*
        }

        mod file {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> super::Outcome {
                let folder = super::TempDir::new()?;
                super::$name(std::sync::Arc::new(super::FileArtifacts::open(folder.path()).await?)).await
            })*
        }
    };
}

on_every_service!(
    versions_count_from_zero,
    the_newest_or_a_numbered_version_is_loaded,
    what_is_absent_is_none,
    bytes_keep_their_type_and_display_name,
    everything_that_a_part_says_comes_back,
    notes_are_kept_with_their_version,
    names_with_folders_may_be_inside_each_other,
    one_artifact_may_have_two_spellings,
    a_user_s_artifact_is_seen_from_all_their_sessions,
    nobody_sees_artifacts_of_another,
    deleting_removes_all_versions_and_nothing_else,
    hostile_names_are_refused_by_every_operation,
    hostile_ids_are_refused_by_every_operation,
    what_is_no_content_is_refused,
    the_mark_of_a_rewind_reads_as_absent,
    references_are_followed,
    references_go_no_further_than_five_hops,
    references_stay_with_their_user_and_session,
    parallel_saves_have_distinct_versions,
    saves_and_deletes_at_once_leave_whole_versions,
);

type Service = Arc<dyn ArtifactService>;

fn session(user: &str, id: &str) -> SessionKey {
    SessionKey::new("shop", user, id).expect("a valid key")
}

fn key(name: &str) -> ArtifactKey {
    ArtifactKey::new(&session("ada", "s"), name)
}

fn text(text: &str) -> NewArtifact {
    NewArtifact::new(Part::text(text))
}

fn bytes(data: &[u8], mime_type: Option<&str>) -> Part {
    let blob =
        Blob { data: Some(data.to_vec().into()), mime_type: mime_type.map(str::to_owned), ..Blob::default() };
    Part { inline_data: Some(blob.into()), ..Part::default() }
}

fn reference(uri: &str) -> NewArtifact {
    let file = FileData { file_uri: Some(uri.to_owned()), ..FileData::default() };
    NewArtifact::new(Part { file_data: Some(file.into()), ..Part::default() })
}

async fn versions_count_from_zero(service: Service) -> Outcome {
    for expected in 0..3 {
        assert_eq!(service.save(&key("a.txt"), text("x")).await?.version, expected);
    }
    let versions = service.versions(&key("a.txt")).await?;
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(service.version(&key("a.txt"), None).await?, versions.last().cloned());
    assert_eq!(service.version(&key("a.txt"), Some(1)).await?, versions.get(1).cloned());
    assert_eq!(service.version(&key("a.txt"), Some(3)).await?, None);
    Ok(())
}

async fn the_newest_or_a_numbered_version_is_loaded(service: Service) -> Outcome {
    for content in ["first", "", "third\nline 🦀"] {
        service.save(&key("a.txt"), text(content)).await?;
    }
    assert_eq!(service.load(&key("a.txt"), None).await?, Some(Part::text("third\nline 🦀")));
    assert_eq!(service.load(&key("a.txt"), Some(0)).await?, Some(Part::text("first")));
    assert_eq!(service.load(&key("a.txt"), Some(1)).await?, Some(Part::text("")));
    Ok(())
}

async fn what_is_absent_is_none(service: Service) -> Outcome {
    assert_eq!(service.load(&key("a"), None).await?, None);
    assert_eq!(service.versions(&key("a")).await?, []);
    assert_eq!(service.names(&session("ada", "s")).await?, Vec::<String>::new());
    service.delete(&key("a")).await?;
    service.save(&key("a/b"), text("x")).await?;
    assert_eq!(service.load(&key("a"), None).await?, None, "a folder is no artifact");
    assert_eq!(service.load(&key("a/b"), Some(1)).await?, None);
    Ok(())
}

async fn bytes_keep_their_type_and_display_name(service: Service) -> Outcome {
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut part = bytes(&every_byte, Some("image/png"));
    part.inline_data.as_mut().expect("it has data").display_name = Some("Ada's cat".to_owned());
    let saved = service.save(&key("cat.png"), NewArtifact::new(part.clone())).await?;
    assert_eq!(saved.mime_type.as_deref(), Some("image/png"));
    assert_eq!(service.load(&key("cat.png"), None).await?, Some(part));

    service.save(&key("raw"), NewArtifact::new(bytes(b"?", None))).await?;
    let raw = service.load(&key("raw"), None).await?;
    assert_eq!(raw, Some(bytes(b"?", Some("application/octet-stream"))));
    Ok(())
}

async fn everything_that_a_part_says_comes_back(service: Service) -> Outcome {
    let mut signed = bytes(b"!", Some("image/png"));
    signed.thought_signature = Some(vec![1, 2].into());
    let mut noted = Part::text("x");
    noted.part_metadata = Some(BTreeMap::from([("n".to_owned(), json!({"aB": [1.0, null]}).into())]));
    let elsewhere = reference("gs://bucket/file.pdf").part;
    for (name, part) in [("signed", signed), ("noted", noted), ("elsewhere", elsewhere)] {
        service.save(&key(name), NewArtifact::new(part.clone())).await?;
        assert_eq!(service.load(&key(name), None).await?, Some(part), "{name}");
    }
    Ok(())
}

async fn notes_are_kept_with_their_version(service: Service) -> Outcome {
    let notes = BTreeMap::from([("by".to_owned(), json!({"agent": "painter", "n": [1, null]}).into())]);
    let saved = service.save(&key("a"), NewArtifact { custom_metadata: notes.clone(), ..text("x") }).await?;
    service.save(&key("a"), text("y")).await?;
    let versions = service.versions(&key("a")).await?;
    assert_eq!(versions[0], saved);
    assert_eq!(versions[0].custom_metadata, notes);
    assert_eq!(versions[1].custom_metadata, BTreeMap::new());
    assert_ne!(versions[0].canonical_uri, versions[1].canonical_uri);
    Ok(())
}

async fn names_with_folders_may_be_inside_each_other(service: Service) -> Outcome {
    for name in ["doc", "doc/nested", "doc/nested/deep.txt", "user:doc", "user:doc/nested"] {
        service.save(&key(name), text(name)).await?;
    }
    for name in ["doc", "doc/nested", "doc/nested/deep.txt", "user:doc", "user:doc/nested"] {
        assert_eq!(service.load(&key(name), None).await?, Some(Part::text(name)));
    }
    let names = service.names(&session("ada", "s")).await?;
    assert_eq!(names, ["doc", "doc/nested", "doc/nested/deep.txt", "user:doc", "user:doc/nested"]);
    Ok(())
}

async fn one_artifact_may_have_two_spellings(service: Service) -> Outcome {
    service.save(&key("plans\\house.txt"), text("x")).await?;
    assert_eq!(service.save(&key(" plans//./house.txt "), text("y")).await?.version, 1);
    assert_eq!(service.load(&key("plans/house.txt"), None).await?, Some(Part::text("y")));
    assert_eq!(service.names(&session("ada", "s")).await?.len(), 1);
    Ok(())
}

async fn a_user_s_artifact_is_seen_from_all_their_sessions(service: Service) -> Outcome {
    service.save(&key("user:face.txt"), text("x")).await?;
    service.save(&key("own.txt"), text("y")).await?;
    let other = session("ada", "other");
    assert_eq!(service.names(&other).await?, ["user:face.txt"]);
    assert_eq!(service.load(&ArtifactKey::new(&other, "user:face.txt"), None).await?, Some(Part::text("x")));
    assert_eq!(service.load(&ArtifactKey::new(&other, "own.txt"), None).await?, None);
    assert_eq!(service.load(&key("face.txt"), None).await?, None, "the prefix is part of the name");
    Ok(())
}

async fn nobody_sees_artifacts_of_another(service: Service) -> Outcome {
    service.save(&key("user:a"), text("x")).await?;
    service.save(&key("a"), text("x")).await?;
    let other_app = SessionKey::new("bank", "ada", "s")?;
    for stranger in [session("bob", "s"), other_app] {
        assert_eq!(service.names(&stranger).await?, Vec::<String>::new());
        for name in ["a", "user:a"] {
            assert_eq!(service.load(&ArtifactKey::new(&stranger, name), None).await?, None);
        }
    }
    Ok(())
}

async fn deleting_removes_all_versions_and_nothing_else(service: Service) -> Outcome {
    for name in ["doc", "doc", "doc/nested", "user:doc"] {
        service.save(&key(name), text(name)).await?;
    }
    service.delete(&key("doc")).await?;
    service.delete(&key("doc")).await?;
    assert_eq!(service.load(&key("doc"), None).await?, None);
    assert_eq!(service.names(&session("ada", "s")).await?, ["doc/nested", "user:doc"]);
    assert_eq!(service.save(&key("doc"), text("again")).await?.version, 0);
    service.delete(&key("doc/nested")).await?;
    assert_eq!(service.load(&key("doc"), None).await?, Some(Part::text("again")));
    Ok(())
}

async fn hostile_names_are_refused_by_every_operation(service: Service) -> Outcome {
    let long = "x".repeat(256);
    let longer = "long/".repeat(205);
    let names = [
        "",
        "  ",
        ".",
        "/",
        "user:",
        "user:./",
        "/etc/passwd",
        "user:/etc/passwd",
        "\\\\host\\share",
        "C:\\x",
        "c:x",
        "..",
        "../x",
        "a/../../x",
        "a\\..\\..\\x",
        "a/..",
        "user:../x",
        "a\0b",
        "versions",
        "a/Versions/0",
        "versions. /x",
        "metadata.json",
        "a/METADATA.json",
        "metadata.json. .",
        &long,
        &longer,
    ];
    for name in names {
        let key = key(name);
        assert!(is_name(service.save(&key, text("x")).await.err()), "save {name:?}");
        assert!(is_name(service.load(&key, None).await.err()), "load {name:?}");
        assert!(is_name(service.versions(&key).await.err()), "versions {name:?}");
        assert!(is_name(service.delete(&key).await.err()), "delete {name:?}");
    }
    assert_eq!(service.names(&session("ada", "s")).await?, Vec::<String>::new());
    let long = "x".repeat(255);
    for name in ["metadata.json/x", "a..b", "...", "ab:c", "日本/名前.txt", "-rf ~", "%2e%2e", &long] {
        service.save(&key(name), text(name)).await?;
        assert_eq!(service.load(&key(name), None).await?, Some(Part::text(name)));
    }
    Ok(())
}

fn is_name(error: Option<ArtifactError>) -> bool {
    matches!(error, Some(ArtifactError::InvalidName { .. }))
}

async fn hostile_ids_are_refused_by_every_operation(service: Service) -> Outcome {
    let long = "日".repeat(100);
    let ids = [
        "..",
        "../x",
        "a/../b",
        "a\\..\\b",
        "/a",
        "\\a",
        "C:x",
        "a//b",
        "a/./b",
        "a/",
        "a/sessions/b",
        &long,
    ];
    for id in ids {
        for session in [("app", "u", id), ("app", id, "s"), (id, "u", "s")] {
            let session = SessionKey::from_stored(session.0, session.1, session.2);
            let key = ArtifactKey::new(&session, "a.txt");
            assert!(is_session(service.save(&key, text("x")).await.err()), "save {session}");
            assert!(is_session(service.load(&key, None).await.err()), "load {session}");
            assert!(is_session(service.names(&session).await.err()), "names {session}");
            assert!(is_session(service.delete(&key).await.err()), "delete {session}");
        }
    }
    let slashed = ArtifactKey::new(&SessionKey::new("app", "org/ada", "s")?, "a.txt");
    service.save(&slashed, text("x")).await?;
    assert_eq!(service.load(&slashed, None).await?, Some(Part::text("x")));
    Ok(())
}

fn is_session(error: Option<ArtifactError>) -> bool {
    matches!(error, Some(ArtifactError::InvalidSession { .. }))
}

async fn what_is_no_content_is_refused(service: Service) -> Outcome {
    let both = Part { text: Some("x".to_owned()), ..bytes(b"x", None) };
    let no_data = Part { inline_data: Some(Blob::default().into()), ..Part::default() };
    let no_uri = Part { file_data: Some(FileData::default().into()), ..Part::default() };
    for part in [Part::default(), both, no_data, no_uri] {
        let refused = service.save(&key("a"), NewArtifact::new(part.clone())).await;
        assert!(matches!(refused, Err(ArtifactError::InvalidContent { .. })), "{part:?}");
    }
    assert_eq!(service.names(&session("ada", "s")).await?, Vec::<String>::new(), "nothing is left behind");
    Ok(())
}

async fn the_mark_of_a_rewind_reads_as_absent(service: Service) -> Outcome {
    service.save(&key("a"), text("x")).await?;
    service.save(&key("a"), NewArtifact::new(bytes(b"", None))).await?;
    assert_eq!(service.load(&key("a"), None).await?, None);
    assert_eq!(service.load(&key("a"), Some(0)).await?, Some(Part::text("x")));
    Ok(())
}

async fn references_are_followed(service: Service) -> Outcome {
    service.save(&key("user:shared/a"), text("shared")).await?;
    service.save(&key("own"), text("own")).await?;
    for (uri, expected) in [
        ("artifact://apps/shop/users/ada/artifacts/shared/a/versions/0", Some("shared")),
        ("artifact://apps/shop/users/ada/artifacts/user:shared/a/versions/0", Some("shared")),
        ("artifact://apps/shop/users/ada/sessions/s/artifacts/own/versions/0", Some("own")),
        ("artifact://apps/shop/users/ada/sessions/s/artifacts/own/versions/1", None),
    ] {
        service.save(&key("link"), reference(uri)).await?;
        assert_eq!(service.load(&key("link"), None).await?, expected.map(Part::text), "{uri}");
    }
    Ok(())
}

async fn references_go_no_further_than_five_hops(service: Service) -> Outcome {
    service.save(&key("0"), text("end")).await?;
    for n in 0..6 {
        let uri = format!("artifact://apps/shop/users/ada/sessions/s/artifacts/{n}/versions/0");
        service.save(&key(&format!("{}", n + 1)), reference(&uri)).await?;
    }
    assert_eq!(service.load(&key("5"), None).await?, Some(Part::text("end")));
    let too_far = service.load(&key("6"), None).await;
    assert!(matches!(too_far, Err(ArtifactError::InvalidReference { .. })), "{too_far:?}");

    let own = "artifact://apps/shop/users/ada/sessions/s/artifacts/circle/versions/0";
    service.save(&key("circle"), reference(own)).await?;
    let circle = service.load(&key("circle"), None).await;
    assert!(matches!(circle, Err(ArtifactError::InvalidReference { .. })), "{circle:?}");
    Ok(())
}

async fn references_stay_with_their_user_and_session(service: Service) -> Outcome {
    for uri in [
        "artifact://apps/shop/users/bob/artifacts/a/versions/0",
        "artifact://apps/bank/users/ada/artifacts/a/versions/0",
        "artifact://apps/shop/users/ada/sessions/other/artifacts/a/versions/0",
        "artifact://apps/shop/users/ada/sessions/s/artifacts/a",
        "artifact://apps/shop/users/ada/sessions/s/artifacts/a/versions/-1",
        "artifact://x",
    ] {
        let refused = service.save(&key("link"), reference(uri)).await;
        assert!(matches!(refused, Err(ArtifactError::InvalidReference { .. })), "{uri}");
    }
    let climbing = "artifact://apps/shop/users/ada/artifacts/../../bob/artifacts/a/versions/0";
    service.save(&key("link"), reference(climbing)).await?;
    assert!(is_name(service.load(&key("link"), None).await.err()));
    Ok(())
}

async fn parallel_saves_have_distinct_versions(service: Service) -> Outcome {
    let saving = (0..40).map(|n| {
        let service = service.clone();
        tokio::spawn(async move { service.save(&key("doc/a.txt"), text(&n.to_string())).await })
    });
    let mut saved = BTreeSet::new();
    for (n, task) in saving.collect::<Vec<_>>().into_iter().enumerate() {
        let version = task.await??.version;
        assert_eq!(service.load(&key("doc/a.txt"), Some(version)).await?, Some(Part::text(n.to_string())));
        saved.insert(version);
    }
    assert_eq!(saved, BTreeSet::from_iter(0..40));
    Ok(())
}

async fn saves_and_deletes_at_once_leave_whole_versions(service: Service) -> Outcome {
    let saving = (0..8).map(|_| {
        let service = service.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                service.save(&key("doc"), text("whole")).await?;
            }
            Ok::<_, ArtifactError>(())
        })
    });
    let saving: Vec<_> = saving.collect();
    let deleting = tokio::spawn({
        let service = service.clone();
        async move {
            for _ in 0..50 {
                service.delete(&key("doc")).await?;
                if let Some(part) = service.load(&key("doc"), None).await? {
                    assert_eq!(part, Part::text("whole"));
                }
            }
            Ok::<_, ArtifactError>(())
        }
    });
    for task in saving {
        task.await??;
    }
    deleting.await??;
    let last = service.save(&key("doc"), text("last")).await?;
    assert_eq!(service.load(&key("doc"), Some(last.version)).await?, Some(Part::text("last")));
    assert_eq!(service.versions(&key("doc")).await?.last(), Some(&last));
    Ok(())
}
