//! A rewind brings artifacts back, on every service.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

use std::sync::Arc;

use sessile_artifact::{
    ArtifactKey, ArtifactService, FileArtifacts, MemoryArtifacts, NewArtifact, RewindError, rewind,
};
use sessile_session::{CreateSession, Event, MemoryStore, Part, SessionError, SessionKey, SessionService};

/// A session with artifacts, and what keeps both.
struct Place {
    sessions: SessionService,
    artifacts: Arc<dyn ArtifactService>,
    key: SessionKey,
}

impl Place {
    async fn new(artifacts: Arc<dyn ArtifactService>) -> Self {
        let sessions = SessionService::new(MemoryStore::new());
        sessions.create(CreateSession::new("app", "ada").with_id("s")).await.unwrap();
        Self { sessions, artifacts, key: SessionKey::new("app", "ada", "s").unwrap() }
    }

    /// Saves an artifact as an agent does: the event tells its version.
    async fn save(&self, invocation: &str, name: &str, text: &str) {
        let new = NewArtifact::new(Part::text(text));
        let saved = self.artifacts.save(&ArtifactKey::new(&self.key, name), new).await.unwrap();
        self.tell(invocation, name, saved.version.try_into().unwrap()).await;
    }

    async fn tell(&self, invocation: &str, name: &str, version: i64) {
        let mut event = Event::new("agent");
        event.invocation_id = invocation.to_owned();
        event.actions.artifact_delta.insert(name.to_owned(), version);
        self.sessions.append_to(&self.key, event).await.unwrap();
    }

    async fn text(&self, name: &str) -> Option<String> {
        let part = self.artifacts.load(&ArtifactKey::new(&self.key, name), None).await.unwrap();
        part.map(|part| part.text.expect("it is a text"))
    }

    async fn rewind(&self, invocation: &str) -> Result<sessile_session::Session, RewindError> {
        rewind(&self.sessions, self.artifacts.as_ref(), &self.key, invocation).await
    }
}

async fn everywhere() -> (Vec<Place>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let files = FileArtifacts::open(folder.path()).await.unwrap();
    let places = vec![Place::new(Arc::new(MemoryArtifacts::new())).await, Place::new(Arc::new(files)).await];
    (places, folder)
}

#[tokio::test]
async fn a_rewind_brings_artifacts_back_as_new_versions() {
    for place in everywhere().await.0 {
        place.save("one", "plan", "first").await;
        place.save("one", "same", "unchanged").await;
        place.save("one", "user:wish", "a kite").await;
        place.save("two", "plan", "second").await;
        place.save("two", "late", "new").await;
        place.save("two", "user:wish", "a boat").await;

        let session = place.rewind("two").await.unwrap();

        let told = &session.events().last().unwrap().actions.artifact_delta;
        assert_eq!(*told, [("late".to_owned(), 1), ("plan".to_owned(), 2)].into());
        assert_eq!(place.text("plan").await.as_deref(), Some("first"));
        assert_eq!(place.text("late").await, None, "it was not there yet");
        assert_eq!(place.text("same").await.as_deref(), Some("unchanged"));
        assert_eq!(place.text("user:wish").await.as_deref(), Some("a boat"), "it is the user's");
        let versions = place.artifacts.versions(&ArtifactKey::new(&place.key, "same")).await.unwrap();
        assert_eq!(versions.len(), 1, "what did not change is not saved again");

        place.rewind("one").await.unwrap();
        assert_eq!(place.text("plan").await, None, "a rewind of a rewind");
    }
}

#[tokio::test]
async fn a_rewind_that_cannot_be_made_leaves_the_artifacts_as_they_are() {
    for place in everywhere().await.0 {
        place.save("one", "a", "first").await;
        place.tell("one", "b", -1).await;
        place.save("two", "a", "second").await;
        let error = place.rewind("none").await.unwrap_err();
        assert!(matches!(error, RewindError::Session(SessionError::NotInHistory { .. })), "{error}");

        place.tell("three", "b", 7).await;
        let error = place.rewind("three").await.unwrap_err();
        assert!(error.to_string().contains("-1"), "{error}");
        let error = place.rewind("two").await.unwrap_err();
        assert!(matches!(error, RewindError::Artifact(_)), "{error}");
        assert_eq!(place.text("a").await.as_deref(), Some("second"), "what was brought back is undone");
    }
}
