//! The JSON of an event whose operations are not computed yet.

use std::io;
use std::mem::replace;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::{CompactFormatter, Formatter};
use sessile_state::{Change, Delta};

use super::delta::operations_json;
use super::{Event, OPERATIONS};
use crate::record::{Rare, Spelled, Spelling, Stored};

/// The stored JSON of an event with operations, without the object of its changes. A store that has
/// computed the results only inserts them, and serializes nothing else.
#[derive(Debug, Clone)]
pub struct JsonAroundDelta {
    before: String,
    after: String,
}

impl JsonAroundDelta {
    /// The JSON around the changes of an event that is to be appended. The event is temporarily
    /// changed and then restored, because copying it would cost more than serializing it.
    ///
    /// # Errors
    ///
    /// serde_json's, if a number has no JSON form.
    pub fn new(event: &mut Event) -> Result<Self, serde_json::Error> {
        // Removals stay in: they are also recorded outside of this object.
        let mut plain = event.actions.state_delta.clone();
        plain.retain(|key| !matches!(event.actions.state_delta.get(key), Some(Change::Operate(_))));
        let intent = replace(&mut event.actions.state_delta, plain);
        let (had_extras, had_metadata) = (event.extras.is_set(), event.custom_metadata.is_some());
        let metadata = event.extras.custom_metadata.get_or_insert_default();
        metadata.insert(OPERATIONS.to_owned(), operations_json(&intent.only_operations()));

        let json = marked_json(event);

        event.actions.state_delta = intent;
        if let Some(metadata) = &mut event.extras.custom_metadata {
            metadata.remove(OPERATIONS);
        }
        if !had_metadata {
            event.extras.custom_metadata = None;
        }
        if !had_extras {
            event.extras = Rare::default();
        }
        Self::split(json?)
    }

    /// The whole JSON, with these results of all changes of the event.
    ///
    /// # Errors
    ///
    /// serde_json's, which values of state never cause.
    pub fn with(&self, results: &Delta) -> Result<String, serde_json::Error> {
        let mut json = Vec::with_capacity(self.before.len() + self.after.len() + 64);
        json.extend_from_slice(self.before.as_bytes());
        serde_json::to_writer(&mut json, &Spelled(results, Spelling::Snake))?;
        json.extend_from_slice(self.after.as_bytes());
        String::from_utf8(json).map_err(serde_json::Error::custom)
    }

    fn split(json: Vec<u8>) -> Result<Self, serde_json::Error> {
        let mut parts = json.split(|byte| *byte == MARK);
        let (Some(before), Some(_), Some(after)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(serde_json::Error::custom("the event is written without its changes"));
        };
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).map_err(serde_json::Error::custom);
        Ok(Self { before: text(before)?, after: text(after)? })
    }
}

/// A byte that no text in UTF-8 has.
const MARK: u8 = 0xff;

/// The stored JSON of an event, with marks before and after the object of its changes.
fn marked_json(event: &Event) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = Vec::with_capacity(512);
    Stored(event).serialize(&mut serde_json::Serializer::with_formatter(&mut json, Marking::default()))?;
    Ok(json)
}

/// Writes compact JSON, and marks the value of `state_delta` in the value of `actions`.
#[derive(Default)]
struct Marking {
    /// How many objects are open.
    depth: usize,
    in_key: bool,
    in_actions: bool,
    /// Whether the next value is the one to mark.
    is_next: bool,
    is_open: bool,
    is_done: bool,
}

/// How many objects the changes are in.
const DEPTH: usize = 2;

impl Formatter for Marking {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_next && !self.is_done {
            (self.is_next, self.is_open) = (false, true);
            writer.write_all(&[MARK])?;
        }
        self.depth += 1;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        CompactFormatter.end_object(writer)?;
        self.depth -= 1;
        if self.is_open && self.depth == DEPTH {
            (self.is_open, self.is_done) = (false, true);
            writer.write_all(&[MARK])?;
        }
        Ok(())
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.in_key = true;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.in_key = false;
        CompactFormatter.end_object_key(writer)
    }

    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        match (self.in_key, self.depth) {
            (true, 1) => self.in_actions = fragment == "actions",
            (true, DEPTH) => self.is_next = self.in_actions && fragment == "state_delta",
            _ => {}
        }
        CompactFormatter.write_string_fragment(writer, fragment)
    }
}
