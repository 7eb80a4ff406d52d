//! What may be an artifact's content.

use sessile_session::{Blob, Part};

use crate::error::ArtifactError;

/// The type of bytes without a type.
pub(crate) const BYTES: &str = "application/octet-stream";

/// What a version holds.
pub(crate) enum Kind<'a> {
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// The URI of a file elsewhere, or of another artifact.
    File(&'a str),
}

impl Kind<'_> {
    /// The content of a part, if it can be saved.
    pub(crate) fn of<'a>(name: &str, part: &'a Part) -> Result<Kind<'a>, ArtifactError> {
        let refused = |reason: &str| {
            Err(ArtifactError::InvalidContent { name: name.to_owned(), reason: reason.to_owned() })
        };
        match (&part.text, &part.inline_data, &part.file_data) {
            (Some(text), None, None) => Ok(Kind::Text(text)),
            (None, Some(blob), None) => match &blob.data {
                Some(data) => Ok(Kind::Bytes(&data.0)),
                None => refused("its inline data has no bytes"),
            },
            (None, None, Some(file)) => match file.file_uri.as_deref() {
                Some(uri) if !uri.is_empty() => Ok(Kind::File(uri)),
                _ => refused("its file data has no URI"),
            },
            (None, None, None) => {
                refused("it is neither a text (`text`), nor bytes (`inlineData`), nor a file (`fileData`)")
            }
            _ => refused("it is more than one of text, bytes and file; save them under two names"),
        }
    }
}

/// The type of the bytes, which everything with bytes has.
pub(crate) fn type_of(blob: &Blob) -> &str {
    blob.mime_type.as_deref().filter(|mime_type| !mime_type.is_empty()).unwrap_or(BYTES)
}

/// The tombstone that a rewind saves for an artifact that did not exist: no bytes, without a type.
/// Such a version reads as absent, in google-adk too.
pub(crate) fn tombstone() -> Part {
    let nothing =
        Blob { data: Some(Vec::new().into()), mime_type: Some(BYTES.to_owned()), ..Blob::default() };
    Part { inline_data: Some(nothing.into()), ..Part::default() }
}

pub(crate) fn is_tombstone(part: &Part) -> bool {
    part.inline_data == tombstone().inline_data
}

/// The artifact as text, for a template or a prompt: a text itself, or the bytes of a textual type
/// (`text/…`, JSON, XML, YAML and their like) in UTF-8. `None` for everything else.
///
/// ```
/// use sessile_artifact::as_text;
/// use sessile_session::{Blob, Part};
///
/// let json = Blob {
///     data: Some(b"[1]".to_vec().into()),
///     mime_type: Some("application/json; charset=utf-8".to_owned()),
///     ..Blob::default()
/// };
/// assert_eq!(as_text(&Part { inline_data: Some(json.into()), ..Part::default() }), Some("[1]"));
/// ```
pub fn as_text(part: &Part) -> Option<&str> {
    if let Some(text) = &part.text {
        return Some(text);
    }
    let blob = part.inline_data.as_ref()?;
    if !is_textual(blob.mime_type.as_deref()?) {
        return None;
    }
    // Bytes that are not UTF-8 are not a text, even if their type is textual.
    std::str::from_utf8(&blob.data.as_ref()?.0).ok()
}

fn is_textual(mime_type: &str) -> bool {
    const TEXTUAL: [&str; 8] = ["json", "xml", "yaml", "x-yaml", "toml", "csv", "javascript", "x-ndjson"];
    let essence = mime_type.split_once(';').map_or(mime_type, |(essence, _)| essence);
    let essence = essence.trim().to_ascii_lowercase();
    match essence.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) => {
            TEXTUAL.contains(&kind) || ["+json", "+xml", "+yaml"].iter().any(|end| kind.ends_with(end))
        }
        Some((_, kind)) => kind.ends_with("+xml"),
        None => false,
    }
}
