//! Joining the pieces of a response to the whole.

use futures_util::stream::{self, BoxStream, StreamExt};
use sessile_agent::{ModelError, ModelResponse, ModelStream};
use sessile_session::{Content, Part, PartExtras};

/// Joins the events of a model's stream to a response.
pub(crate) trait Join: Send + 'static {
    /// Reads the data of an event, and returns what is new in it.
    fn read(&mut self, data: &str) -> Result<Option<ModelResponse>, ModelError>;

    /// Whether the model has signalled the end of the response.
    fn is_done(&self) -> bool {
        false
    }

    /// The whole response, or an error if it broke off.
    fn finish(self) -> Result<ModelResponse, ModelError>;
}

/// Streams partial responses as they arrive, and then the whole one.
pub(crate) fn as_they_come<J: Join>(
    joining: J,
    events: BoxStream<'static, Result<String, ModelError>>,
) -> ModelStream {
    stream::unfold(Some((events, joining)), |state| async {
        let (mut events, mut joining) = state?;
        while !joining.is_done()
            && let Some(data) = events.next().await
        {
            match data.and_then(|data| joining.read(&data)) {
                Ok(Some(piece)) => return Some((Ok(piece), Some((events, joining)))),
                Ok(None) => {}
                Err(error) => return Some((Err(error), None)),
            }
        }
        Some((joining.finish().map(|whole| ModelResponse { partial: Some(false), ..whole }), None))
    })
    .boxed()
}

/// A response in progress.
#[derive(Default)]
pub(crate) struct Answer {
    /// Everything but the content.
    pub(crate) about: ModelResponse,
    parts: Vec<Part>,
    /// Whether the next text begins a new part.
    closed: bool,
}

impl Answer {
    /// An answer without content so far.
    pub(crate) fn about(about: ModelResponse) -> Self {
        Self { about, ..Self::default() }
    }

    /// Adds a part. A text is joined to the one before it if both are thoughts or neither is; the
    /// model's signature under a text ends it.
    pub(crate) fn push(&mut self, part: Part) {
        let closes = part.thought_signature.is_some();
        match (self.parts.last_mut(), &part.text) {
            (Some(last), Some(text))
                if !self.closed && is_text(last) && is_text(&part) && same_kind(last, &part) =>
            {
                last.text.get_or_insert_default().push_str(text);
                if closes {
                    last.thought_signature = part.thought_signature.clone();
                }
            }
            _ => self.parts.push(part),
        }
        self.closed = closes;
    }

    /// The whole response. Without content, it gets an error code: its finish reason, or
    /// `MODEL_RETURNED_NO_CONTENT` if that was `STOP`.
    pub(crate) fn finish(self) -> ModelResponse {
        let Self { about: mut response, parts, .. } = self;
        let well = matches!(response.finish_reason.as_deref(), None | Some("STOP"));
        if well && response.error_code.is_none() && !parts.iter().any(means_something) {
            response.error_code = Some("MODEL_RETURNED_NO_CONTENT".to_owned());
            response.error_message = Some("the model stopped without saying or calling anything".to_owned());
        } else if parts.is_empty() && response.error_code.is_none() {
            response.error_code = response.finish_reason.clone();
        }
        response.content = (!parts.is_empty()).then(|| content(parts));
        response
    }
}

/// A content of the model with these parts.
pub(crate) fn content(parts: Vec<Part>) -> Content {
    Content { role: Some("model".to_owned()), parts: Some(parts), ..Content::default() }
}

/// A text without anything else but a signature.
fn is_text(part: &Part) -> bool {
    let bare = PartExtras { thought_signature: part.thought_signature.clone(), ..PartExtras::default() };
    part.text.is_some()
        && part.function_call.is_none()
        && part.function_response.is_none()
        && part.inline_data.is_none()
        && part.file_data.is_none()
        && *part.extras == bare
}

fn same_kind(one: &Part, other: &Part) -> bool {
    (one.thought == Some(true)) == (other.thought == Some(true))
}

fn means_something(part: &Part) -> bool {
    match &part.text {
        Some(text) if is_text(part) => part.thought != Some(true) && !text.trim().is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use sessile_session::Bytes;

    use super::*;

    fn signed(text: &str, signature: &[u8]) -> Part {
        let mut part = Part::text(text);
        part.thought_signature = Some(Bytes(signature.to_vec()));
        part
    }

    #[test]
    fn a_signature_ends_the_text_above_it() {
        let mut answer = Answer::default();
        let parts = [
            Part::text("a"),
            Part::text("b"),
            signed("c", b"1"),
            Part::text("d"),
            signed("", b"2"),
            signed("e", b"3"),
        ];
        parts.into_iter().for_each(|part| answer.push(part));
        let joined = answer.finish().content.expect("it says something").parts;
        assert_eq!(joined, Some(vec![signed("abc", b"1"), signed("d", b"2"), signed("e", b"3")]));
    }
}
