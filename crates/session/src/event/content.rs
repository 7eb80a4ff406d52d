use std::collections::BTreeMap;

use sessile_state::SharedValue;

use super::bytes::Bytes;
use super::opaque::Opaque;
use crate::record::record;

record! {
    /// A message: its parts in order, and its role.
    pub struct Content {
        /// The pieces of the message.
        pub parts: Option<Vec<Part>>,
        /// `user` or `model`.
        pub role: Option<String>,
    }
}

impl Content {
    /// A message of one text.
    pub fn text(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: Some(role.into()), parts: Some(vec![Part::text(text)]), ..Self::default() }
    }

    /// The parts, none if there are none.
    pub fn parts(&self) -> &[Part] {
        self.parts.as_deref().unwrap_or(&[])
    }
}

record! {
    /// One piece of a message; one of its fields says of which kind it is.
    pub struct Part {
        /// Text.
        pub text: Option<String>,
        /// Whether the text is the model's reasoning and not its answer.
        pub thought: Option<bool>,
        /// The model calls a tool.
        pub function_call: Option<Box<FunctionCall>> = "functionCall",
        /// A tool answers.
        pub function_response: Option<Box<FunctionResponse>> = "functionResponse",
        /// Bytes in the message itself.
        pub inline_data: Option<Box<Blob>> = "inlineData",
        /// A reference to bytes that are stored elsewhere.
        pub file_data: Option<Box<FileData>> = "fileData",
    }

    /// The fields of a [`Part`] that few parts have, used as if they were the part's own:
    /// `part.thought_signature`.
    rare PartExtras {
        /// An opaque signature that the model needs to continue its reasoning.
        pub thought_signature: Option<Bytes> = "thoughtSignature",
        /// Code that the model wants to run.
        pub executable_code: Option<Opaque> = "executableCode",
        /// The result of running it.
        pub code_execution_result: Option<Opaque> = "codeExecutionResult",
        /// Start, end and frame rate of a video.
        pub video_metadata: Option<Opaque> = "videoMetadata",
        /// The resolution at which media are processed.
        pub media_resolution: Option<Opaque> = "mediaResolution",
        /// A call of a tool that runs at the model's side.
        pub tool_call: Option<ServerToolCall> = "toolCall",
        /// The answer to it.
        pub tool_response: Option<ServerToolResponse> = "toolResponse",
        /// The application's own notes.
        pub part_metadata: Option<BTreeMap<String, SharedValue>> = "partMetadata",
        /// The transcription of audio.
        pub audio_transcription: Option<Opaque> = "audioTranscription",
        /// How media were treated.
        pub media_processing: Option<Opaque> = "mediaProcessing",
        /// Facts about speech.
        pub speech_metadata: Option<Opaque> = "speechMetadata",
    }
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

impl From<FunctionCall> for Part {
    fn from(call: FunctionCall) -> Self {
        Self { function_call: Some(Box::new(call)), ..Self::default() }
    }
}

impl From<FunctionResponse> for Part {
    fn from(response: FunctionResponse) -> Self {
        Self { function_response: Some(Box::new(response)), ..Self::default() }
    }
}

impl From<Blob> for Part {
    fn from(blob: Blob) -> Self {
        Self { inline_data: Some(Box::new(blob)), ..Self::default() }
    }
}

impl From<FileData> for Part {
    fn from(file: FileData) -> Self {
        Self { file_data: Some(Box::new(file)), ..Self::default() }
    }
}

record! {
    /// Bytes in a message.
    pub struct Blob {
        /// The bytes.
        pub data: Option<Bytes>,
        /// Their type.
        pub mime_type: Option<String> = "mimeType",
        /// A name for people.
        pub display_name: Option<String> = "displayName",
    }
}

record! {
    /// A reference to bytes that are stored elsewhere.
    pub struct FileData {
        /// The URI.
        pub file_uri: Option<String> = "fileUri",
        /// Their type.
        pub mime_type: Option<String> = "mimeType",
        /// A name for people.
        pub display_name: Option<String> = "displayName",
    }
}

record! {
    /// The model calls a tool.
    pub struct FunctionCall {
        /// Ties the answer to the call.
        pub id: Option<String>,
        /// The tool.
        pub name: Option<String>,
        /// Its arguments.
        pub args: Option<BTreeMap<String, SharedValue>>,
        /// Arguments that are still coming.
        pub partial_args: Option<Vec<Opaque>> = "partialArgs",
        /// Whether more of this call is coming.
        pub will_continue: Option<bool> = "willContinue",
    }
}

record! {
    /// A tool answers.
    pub struct FunctionResponse {
        /// The id of the call.
        pub id: Option<String>,
        /// The tool.
        pub name: Option<String>,
        /// Its result.
        pub response: Option<BTreeMap<String, SharedValue>>,
        /// Media in the result.
        pub parts: Option<Vec<Opaque>>,
        /// When the model should react to it, in live sessions.
        pub scheduling: Option<String>,
        /// Whether more answers to this call are coming.
        pub will_continue: Option<bool> = "willContinue",
    }
}

record! {
    /// A call of a tool that runs at the model's side.
    pub struct ServerToolCall {
        /// Ties the answer to the call.
        pub id: Option<String>,
        /// Which tool.
        pub tool_type: Option<String> = "toolType",
        /// Its arguments.
        pub args: Option<BTreeMap<String, SharedValue>>,
    }
}

record! {
    /// The answer of a tool that runs at the model's side.
    pub struct ServerToolResponse {
        /// The id of the call.
        pub id: Option<String>,
        /// Which tool.
        pub tool_type: Option<String> = "toolType",
        /// Its result.
        pub response: Option<BTreeMap<String, SharedValue>>,
    }
}
