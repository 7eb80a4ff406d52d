//! Events and messages as requests bring them.

use super::state::{ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE};
use super::{Field, Kind, Model};

pub(crate) static EVENT: Model = Model::open(
    "Event",
    &[
        Field::defaulted("id", Kind::Text, "Unique in its session; made if left out."),
        Field::defaulted("invocationId", Kind::Text, "The invocation that it is part of."),
        Field::defaulted("author", Kind::Text, "`user`, or the name of an agent."),
        Field::defaulted("timestamp", Kind::Number, "Unix seconds; now if left out."),
        Field::optional("content", Kind::Object(&CONTENT), "What was said."),
        Field::defaulted("actions", Kind::Object(&ACTIONS), "What it does beside being said."),
        Field::optional("output", Kind::Any, "What a workflow's node put out."),
        Field::defaulted("nodeInfo", Kind::Map, "The workflow's node that made it."),
        Field::optional("longRunningToolIds", Kind::List(&Kind::Text), "Calls whose answers take long."),
        Field::optional("branch", Kind::Text, "The branch of agents that sees it."),
        Field::optional("isolationScope", Kind::Text, "The task that sees it."),
        Field::optional("partial", Kind::Flag, "Whether it is a piece of an event that is still coming."),
        Field::optional("turnComplete", Kind::Flag, "Whether the model's turn is over."),
        Field::optional("turnCompleteReason", Kind::Text, "Why it is over."),
        Field::optional("interactionStatus", Kind::Text, "How an interaction stands."),
        Field::optional("finishReason", Kind::Text, "Why the model stopped."),
        Field::optional("errorCode", Kind::Text, "What went wrong, for programs."),
        Field::optional("errorMessage", Kind::Text, "What went wrong, for people."),
        Field::optional("interrupted", Kind::Flag, "Whether the user interrupted the model."),
        Field::optional("customMetadata", Kind::Notes, "The application's own notes."),
        Field::optional("usageMetadata", Kind::Map, "Tokens that were used."),
        Field::optional("groundingMetadata", Kind::Map, "Sources of the answer."),
        Field::optional("citationMetadata", Kind::Map, "Quotations in the answer."),
        Field::optional("logprobsResult", Kind::Map, "How sure the model was, token by token."),
        Field::optional("avgLogprobs", Kind::Number, "How sure the model was."),
        Field::optional("modelVersion", Kind::Text, "The model that answered."),
        Field::optional("inputTranscription", Kind::Map, "What the user was heard to say."),
        Field::optional("outputTranscription", Kind::Map, "What the model said aloud."),
        Field::optional("liveSessionResumptionUpdate", Kind::Map, "How a live session goes on."),
        Field::optional("liveSessionId", Kind::Text, "The live session."),
        Field::optional("goAway", Kind::Map, "The model's notice that it will disconnect."),
        Field::optional("voiceActivity", Kind::Map, "Whether the user speaks."),
        Field::optional("cacheMetadata", Kind::Map, "What was cached."),
        Field::optional("interactionId", Kind::Text, "The interaction."),
        Field::optional("environmentId", Kind::Text, "The environment."),
    ],
);

pub(crate) static ACTIONS: Model = Model::closed(
    "EventActions",
    &[
        Field::defaulted("stateDelta", Kind::Map, "Keys that it sets, with their prefixes."),
        STATE_REMOVE,
        STATE_OPS,
        STATE_READ,
        STATE_ABSENT,
        ON_OVERWRITE,
        Field::defaulted("artifactDelta", Kind::MapOf(&Kind::Integer), "Artifacts and their new versions."),
        Field::defaulted("requestedAuthConfigs", Kind::MapOf(&Kind::Map), "Credentials that calls wait for."),
        Field::defaulted(
            "requestedToolConfirmations",
            Kind::MapOf(&Kind::Map),
            "Confirmations that calls wait for.",
        ),
        Field::optional("skipSummarization", Kind::Flag, "Whether a tool's answer is the final one."),
        Field::optional("transferToAgent", Kind::Text, "The agent that goes on."),
        Field::optional("transferReason", Kind::Text, "Why."),
        Field::optional("escalate", Kind::Flag, "Whether the agent above goes on."),
        Field::optional("compaction", Kind::Map, "A summary in the place of earlier events."),
        Field::optional("endOfAgent", Kind::Flag, "Whether the agent is done."),
        Field::optional("agentState", Kind::Map, "Where a composite agent is."),
        Field::optional("rewindBeforeInvocationId", Kind::Text, "What is taken back."),
        Field::optional("route", Kind::Any, "Where a workflow goes on."),
        Field::optional("renderUiWidgets", Kind::List(&Kind::Map), "What a user interface shows."),
        Field::optional("setModelResponse", Kind::Any, "An answer set by a tool."),
    ],
);

pub(crate) static CONTENT: Model = Model::closed(
    "Content",
    &[
        Field::optional("parts", Kind::List(&Kind::Object(&PART)), "The pieces of the message."),
        Field::optional("role", Kind::Text, "`user` or `model`."),
    ],
);

pub(crate) static PART: Model = Model::closed(
    "Part",
    &[
        Field::optional("text", Kind::Text, "Text."),
        Field::optional("thought", Kind::Flag, "Whether the text is the model's reasoning."),
        Field::optional("thoughtSignature", Kind::Bytes, "What the model wants back."),
        Field::optional("inlineData", Kind::Object(&BLOB), "Bytes in the message itself."),
        Field::optional("fileData", Kind::Object(&FILE), "Bytes that are elsewhere."),
        Field::optional("functionCall", Kind::Object(&CALL), "The model calls a tool."),
        Field::optional("functionResponse", Kind::Object(&RESPONSE), "A tool answers."),
        Field::optional("executableCode", Kind::Map, "Code that the model wants to run."),
        Field::optional("codeExecutionResult", Kind::Map, "What came of running it."),
        Field::optional("videoMetadata", Kind::Map, "Start, end and frame rate of a video."),
        Field::optional("mediaResolution", Kind::Map, "How finely media are looked at."),
        Field::optional("toolCall", Kind::Map, "A call of a tool at the model's side."),
        Field::optional("toolResponse", Kind::Map, "The answer to it."),
        Field::optional("partMetadata", Kind::Map, "The application's own notes."),
        Field::optional("audioTranscription", Kind::Map, "The words of a sound."),
        Field::optional("mediaProcessing", Kind::Map, "How media were treated."),
        Field::optional("speechMetadata", Kind::Map, "Facts about speech."),
    ],
);

static BLOB: Model = Model::closed(
    "Blob",
    &[
        Field::optional("data", Kind::Bytes, "The bytes, in base64."),
        Field::optional("mimeType", Kind::Text, "Their type."),
        Field::optional("displayName", Kind::Text, "A name for people."),
    ],
);

static FILE: Model = Model::closed(
    "FileData",
    &[
        Field::optional("fileUri", Kind::Text, "Where."),
        Field::optional("mimeType", Kind::Text, "Their type."),
        Field::optional("displayName", Kind::Text, "A name for people."),
    ],
);

static CALL: Model = Model::closed(
    "FunctionCall",
    &[
        Field::optional("id", Kind::Text, "Ties the answer to the call."),
        Field::optional("name", Kind::Text, "The tool."),
        Field::optional("args", Kind::Map, "Its arguments."),
        Field::optional("partialArgs", Kind::List(&Kind::Map), "Arguments that are still coming."),
        Field::optional("willContinue", Kind::Flag, "Whether more of this call is coming."),
    ],
);

static RESPONSE: Model = Model::closed(
    "FunctionResponse",
    &[
        Field::optional("id", Kind::Text, "The id of the call."),
        Field::optional("name", Kind::Text, "The tool."),
        Field::optional("response", Kind::Map, "Its result."),
        Field::optional("parts", Kind::List(&Kind::Map), "Media in the result."),
        Field::optional("scheduling", Kind::Text, "When the model should take notice."),
        Field::optional("willContinue", Kind::Flag, "Whether more answers are coming."),
    ],
);
