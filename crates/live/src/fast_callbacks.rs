use bytes::Bytes;

use crate::event::OnEvent;
use crate::wire::TokenUsage;

/// The synchronous callbacks of an application. They are called where frames are read, so they must
/// not block.
#[derive(Default)]
pub(crate) struct FastCallbacks {
    pub(crate) audio: Option<OnAudio>,
    pub(crate) text: Option<OnText>,
    pub(crate) text_complete: Option<OnText>,
    pub(crate) thought: Option<OnText>,
    pub(crate) input_transcript: Option<OnTranscript>,
    pub(crate) output_transcript: Option<OnTranscript>,
    pub(crate) voice_start: Option<OnSign>,
    pub(crate) voice_end: Option<OnSign>,
    pub(crate) usage: Option<OnUsage>,
    pub(crate) event: Vec<OnEvent>,
}

pub(crate) type OnAudio = Box<dyn Fn(&Bytes) + Send + Sync>;
pub(crate) type OnUsage = Box<dyn Fn(&TokenUsage) + Send + Sync>;
pub(crate) type OnText = Box<dyn Fn(&str) + Send + Sync>;
pub(crate) type OnTranscript = Box<dyn Fn(&str, bool) + Send + Sync>;
pub(crate) type OnSign = Box<dyn Fn() + Send + Sync>;
