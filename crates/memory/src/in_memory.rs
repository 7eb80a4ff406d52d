use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use sessile_session::{Event, Session};

use crate::error::MemoryError;
use crate::service::{MemoryEntry, MemoryService};
use crate::time::iso;
use crate::words::{composed, findable, text_of, words};

/// How many memories a search returns at the most.
const MOST: usize = 10;

/// Memories in memory, which live as long as this value. A search compares words and returns at
/// most ten memories: those that share the most words with the query, the older first.
#[derive(Default)]
pub struct InMemoryMemory {
    /// A std lock: it is never held across an `.await`.
    users: RwLock<HashMap<(String, String), Remembered>>,
}

/// The memories of one user.
#[derive(Default)]
struct Remembered {
    /// In the order in which they were first added.
    memories: Vec<Memory>,
    /// The index of the memory of an event, by session and event.
    indexes: HashMap<(String, String), usize>,
}

struct Memory {
    event: Arc<Event>,
    /// Its text, composed and in lower case.
    text: String,
    words: BTreeSet<String>,
}

impl InMemoryMemory {
    /// A service without memories.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl MemoryService for InMemoryMemory {
    async fn add_session(&self, session: &Session) -> Result<(), MemoryError> {
        let key = session.key();
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let Remembered { memories, indexes } =
            users.entry((key.app().to_owned(), key.user().to_owned())).or_default();
        for event in session.events() {
            let text = event.content.as_ref().map(text_of).unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            let text = composed(&text);
            let words = findable(&text);
            let memory = Memory { event: event.event.clone(), text: text.to_lowercase(), words };
            let index = *indexes.entry((key.id().to_owned(), event.id.clone())).or_insert(memories.len());
            match memories.get_mut(index) {
                Some(old) => *old = memory,
                None => memories.push(memory),
            }
        }
        Ok(())
    }

    async fn search(&self, app: &str, user: &str, query: &str) -> Result<Vec<MemoryEntry>, MemoryError> {
        let asked = words(&composed(query));
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let remembered = users.get(&(app.to_owned(), user.to_owned()));
        let memories = remembered.map_or(&[][..], |remembered| &remembered.memories);
        let scored = memories.iter().map(|memory| (memory.score(asked.iter()), memory));
        let mut found: Vec<_> = scored.filter(|(score, _)| *score > 0).collect();
        // The sort is stable: equal matches stay in the order in which they were added.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        Ok(found.into_iter().take(MOST).map(|(_, memory)| memory.entry()).collect())
    }
}

impl Memory {
    /// How many of the words it has. A word that is not ASCII may also be a part of one, since many
    /// languages write no spaces.
    fn score<'a>(&self, asked: impl Iterator<Item = &'a String>) -> usize {
        let has = |word: &&String| {
            self.words.contains(*word) || (!word.is_ascii() && self.text.contains(word.as_str()))
        };
        asked.filter(has).count()
    }

    fn entry(&self) -> MemoryEntry {
        let event = &self.event;
        MemoryEntry {
            content: event.content.clone().unwrap_or_default(),
            author: Some(event.author.clone()).filter(|author| !author.is_empty()),
            timestamp: iso(event.time()),
            id: Some(event.id.clone()),
            custom_metadata: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for InMemoryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryMemory").finish_non_exhaustive()
    }
}
