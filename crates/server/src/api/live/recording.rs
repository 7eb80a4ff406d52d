//! The audio of a conversation, saved as artifacts if the client asks for it, as google-adk does:
//! one file for each side and turn, and an event of the session that refers to it.

use std::sync::Arc;

use sessile_artifact::{ArtifactKey, ArtifactService, NewArtifact};
use sessile_session::{Blob, Bytes, Content, Event, FileData, Part};

use super::Talk;
use super::speech::says;
use crate::http::error::ApiError;

/// The audio of both sides that is not saved yet.
pub(super) struct Recording {
    artifacts: Arc<dyn ArtifactService>,
    user: Option<Sound>,
    model: Option<Sound>,
}

/// Whose audio it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    User,
    Model,
}

struct Sound {
    mime_type: String,
    data: Vec<u8>,
    /// When it began, in Unix seconds.
    since: f64,
}

/// A file is at most about this long; a longer turn has several.
const FULL: usize = 16 * 1024 * 1024;

impl Recording {
    pub(super) fn new(artifacts: Arc<dyn ArtifactService>) -> Self {
        Self { artifacts, user: None, model: None }
    }

    fn side(&mut self, side: Side) -> &mut Option<Sound> {
        match side {
            Side::User => &mut self.user,
            Side::Model => &mut self.model,
        }
    }
}

impl Talk {
    /// Adds a piece of audio; returns the event of the file if that is full now.
    pub(super) async fn record(
        &self,
        recording: &mut Recording,
        side: Side,
        mime_type: &str,
        data: &[u8],
    ) -> Result<Option<Event>, ApiError> {
        let begun = || Sound {
            mime_type: mime_type.to_owned(),
            data: Vec::new(),
            since: self.shared.http.clock.now(),
        };
        let sound = recording.side(side).get_or_insert_with(begun);
        sound.data.extend_from_slice(data);
        if sound.data.len() < FULL {
            return Ok(None);
        }
        self.save(recording, side).await
    }

    /// Saves the audio of a side, if there is any, and stores an event that refers to it.
    pub(super) async fn save(
        &self,
        recording: &mut Recording,
        side: Side,
    ) -> Result<Option<Event>, ApiError> {
        let Some(Sound { mime_type, data, since }) = recording.side(side).take() else { return Ok(None) };
        let (kind, author, role) = match side {
            Side::User => ("input_audio", "user", "user"),
            Side::Model => ("output_audio", self.app.runner().root().name(), "model"),
        };
        let plain = mime_type.split(';').next().unwrap_or_default();
        let extension = plain.trim().rsplit('/').next().unwrap_or("pcm");
        let milliseconds = (since * 1000.0) as u64;
        let name = format!("adk_live_audio_storage_{kind}_{milliseconds}.{extension}");
        let blob = Blob { data: Some(Bytes(data)), mime_type: Some(mime_type.clone()), ..Blob::default() };
        let part = Part { inline_data: Some(blob.into()), ..Part::default() };
        let key = ArtifactKey::new(&self.key, name.as_str());
        let saved = recording.artifacts.save(&key, NewArtifact::new(part)).await?;
        let (app, user, id) = (self.key.app(), self.key.user(), self.key.id());
        let uri = format!("artifact://{app}/{user}/{id}/_adk_live/{name}#{}", saved.version);
        let file = FileData { file_uri: Some(uri), mime_type: Some(mime_type), ..FileData::default() };
        let content: Content = says(role, Part { file_data: Some(file.into()), ..Part::default() });
        let mut event = Event::new(author).with_content(content);
        event.id = self.shared.http.ids.new_id();
        event.invocation_id = format!("live-{}", self.shared.http.ids.new_id());
        event.timestamp = Some(since);
        self.shared.sessions.append_to(&self.key, event.clone()).await?;
        Ok(Some(event))
    }
}
