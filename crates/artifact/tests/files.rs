//! What is on the disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use sessile_artifact::{ArtifactError, ArtifactKey, ArtifactService, FileArtifacts, NewArtifact};
use sessile_session::{Part, SessionKey};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const ARTIFACTS: &str = "apps/shop/users/ada/sessions/s/artifacts";

fn session() -> SessionKey {
    SessionKey::new("shop", "ada", "s").expect("a valid key")
}

fn key(name: &str) -> ArtifactKey {
    ArtifactKey::new(&session(), name)
}

fn text(text: &str) -> NewArtifact {
    NewArtifact::new(Part::text(text))
}

/// Everything below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).expect("below").display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

#[tokio::test]
async fn the_layout_is_google_adk_s() -> Outcome {
    let folder = TempDir::new()?;
    let service = FileArtifacts::open(folder.path()).await?;
    let saved = service.save(&key("plans/my house.txt"), text("brick")).await?;
    service.save(&key("user:face.txt"), text("smile")).await?;
    assert_eq!(
        files(folder.path()),
        [
            "apps/shop/users/ada/artifacts/face.txt/versions/0/face.txt",
            "apps/shop/users/ada/artifacts/face.txt/versions/0/metadata.json",
            "apps/shop/users/ada/sessions/s/artifacts/plans/my house.txt/versions/0/metadata.json",
            "apps/shop/users/ada/sessions/s/artifacts/plans/my house.txt/versions/0/my house.txt",
        ]
    );
    let root = folder.path().canonicalize()?;
    let uri = format!("file://{}/{ARTIFACTS}/plans/my%20house.txt/versions/0/my%20house.txt", root.display());
    assert_eq!(saved.canonical_uri, uri);
    Ok(())
}

#[tokio::test]
async fn another_service_reads_what_was_saved() -> Outcome {
    let folder = TempDir::new()?;
    let saved = FileArtifacts::open(folder.path()).await?.save(&key("a"), text("x")).await?;
    let reopened = FileArtifacts::open(folder.path()).await?;
    assert_eq!(reopened.load(&key("a"), None).await?, Some(Part::text("x")));
    assert_eq!(reopened.versions(&key("a")).await?, [saved]);
    Ok(())
}

#[tokio::test]
async fn what_a_killed_save_left_is_never_read() -> Outcome {
    let folder = TempDir::new()?;
    let service = FileArtifacts::open(folder.path()).await?;
    let pending = folder.path().join(ARTIFACTS).join("a/versions/.0.pending");
    fs::create_dir_all(&pending)?;
    fs::write(pending.join("a"), "half")?;
    assert_eq!(service.load(&key("a"), None).await?, None);
    assert_eq!(service.names(&session()).await?, Vec::<String>::new());
    assert_eq!(service.save(&key("a"), text("whole")).await?.version, 1, "the number stays reserved");
    assert_eq!(service.load(&key("a"), None).await?, Some(Part::text("whole")));
    Ok(())
}

#[tokio::test]
async fn deleting_leaves_no_file_behind() -> Outcome {
    let folder = TempDir::new()?;
    let service = FileArtifacts::open(folder.path()).await?;
    service.save(&key("a/b/c"), text("x")).await?;
    service.delete(&key("a/b/c")).await?;
    assert_eq!(files(folder.path()), Vec::<String>::new());
    assert!(!folder.path().join(ARTIFACTS).join("a").exists());
    Ok(())
}

#[tokio::test]
async fn symbolic_links_are_not_followed() -> Outcome {
    let (folder, outside) = (TempDir::new()?, TempDir::new()?);
    let service = FileArtifacts::open(folder.path()).await?;
    service.save(&key("kept"), text("x")).await?;
    let theirs = FileArtifacts::open(outside.path()).await?;
    theirs.save(&key("secret"), text("secret")).await?;
    let artifacts = folder.path().join(ARTIFACTS);

    symlink(outside.path().join(ARTIFACTS), artifacts.join("out"))?;
    let out = key("out/secret");
    for refused in [
        service.load(&out, None).await.err(),
        service.save(&out, text("x")).await.err(),
        service.save(&key("out/new"), text("x")).await.err(),
        service.delete(&out).await.err(),
        service.versions(&out).await.err(),
    ] {
        let refused = refused.ok_or("a link was followed")?.to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
    }
    assert_eq!(service.names(&session()).await?, ["kept"]);
    assert_eq!(theirs.load(&key("secret"), None).await?, Some(Part::text("secret")));

    let payload = artifacts.join("kept/versions/0/kept");
    fs::remove_file(&payload)?;
    symlink(outside.path().join(ARTIFACTS).join("secret/versions/0/secret"), &payload)?;
    let refused = service.load(&key("kept"), None).await;
    assert!(matches!(refused, Err(ArtifactError::Corrupt { .. })), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn corruption_names_the_place_and_spares_the_rest() -> Outcome {
    let folder = TempDir::new()?;
    let service = FileArtifacts::open(folder.path()).await?;
    for name in ["a", "b"] {
        service.save(&key(name), text(name)).await?;
    }
    let version = folder.path().join(ARTIFACTS).join("a/versions/0");
    fs::write(version.join("metadata.json"), "{")?;
    let error = service.load(&key("a"), None).await.err().ok_or("it is corrupt")?.to_string();
    assert!(error.contains("a/versions/0/metadata.json"), "{error}");
    assert_eq!(service.names(&session()).await?, ["a", "b"]);

    fs::remove_file(version.join("metadata.json"))?;
    assert_eq!(service.load(&key("a"), None).await?, Some(Part::text("a")), "an old version may have none");
    fs::write(version.join("a"), b"\xff")?;
    assert!(matches!(service.load(&key("a"), None).await, Err(ArtifactError::Corrupt { .. })));
    fs::remove_file(version.join("a"))?;
    assert!(matches!(service.load(&key("a"), None).await, Err(ArtifactError::Corrupt { .. })));
    Ok(())
}

#[tokio::test]
async fn a_description_cannot_lead_elsewhere() -> Outcome {
    let folder = TempDir::new()?;
    let service = FileArtifacts::open(folder.path()).await?;
    service.save(&key("a"), text("x")).await?;
    let metadata = folder.path().join(ARTIFACTS).join("a/versions/0/metadata.json");
    let lie = r#"{"fileName": "user:../b", "canonicalUri": "file:///etc/passwd", "version": 7}"#;
    fs::write(metadata, lie)?;
    assert_eq!(service.names(&session()).await?, ["a"]);
    let versions = service.versions(&key("a")).await?;
    assert_eq!(versions[0].version, 0);
    assert!(versions[0].canonical_uri.ends_with("/a/versions/0/a"));
    assert_eq!(service.load(&key("a"), None).await?, Some(Part::text("x")));
    Ok(())
}

#[tokio::test]
async fn a_root_that_is_a_file_is_an_error() -> Outcome {
    let folder = TempDir::new()?;
    let file = folder.path().join("file");
    fs::write(&file, "")?;
    assert!(matches!(FileArtifacts::open(&file).await, Err(ArtifactError::Backend { .. })));
    Ok(())
}
