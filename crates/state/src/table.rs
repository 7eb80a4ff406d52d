//! The entries of one shard.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::key::Key;
use crate::value::Slot;

/// How many shards a table has: a power of two, enough for the threads of one agent.
pub(crate) const SHARDS: usize = 32;

/// The hash of a key: it chooses the shard, finds the entry, and identifies claims.
pub(crate) type Hash = u64;

/// A hash table that is copied on write while a snapshot shares it. Otherwise it is changed in
/// place, without checking a reference count.
pub(crate) enum Table {
    Own(Entries),
    Shared(Arc<Entries>),
}

/// What a snapshot shares.
#[derive(Clone, Default)]
pub(crate) struct Entries(HashTable<Entry>);

#[derive(Clone)]
struct Entry {
    key: Key,
    value: Slot,
}

/// What an insertion found.
pub(crate) enum Inserted {
    /// The value that was there.
    Over(Slot),
    /// Nothing: the key is new, and must be added to the index.
    New(Key),
}

impl Table {
    pub(crate) fn get(&self, hash: Hash, key: &str) -> Option<&Slot> {
        match self {
            Self::Own(entries) => entries.get(hash, key),
            Self::Shared(entries) => entries.get(hash, key),
        }
    }

    pub(crate) fn insert(&mut self, hash: Hash, key: &str, value: Slot, hasher: &RandomState) -> Inserted {
        let entries = self.entries();
        if let Some(entry) = entries.0.find_mut(hash, |entry| &*entry.key == key) {
            return Inserted::Over(std::mem::replace(&mut entry.value, value));
        }
        let key = Key::from(key);
        let entry = Entry { key: key.clone(), value };
        entries.0.insert_unique(hash, entry, |entry| hasher.hash_one(&*entry.key));
        Inserted::New(key)
    }

    pub(crate) fn remove(&mut self, hash: Hash, key: &str) -> Option<Slot> {
        self.get(hash, key)?; // a shared table is copied only if the key is there
        let found = self.entries().0.find_entry(hash, |entry| &*entry.key == key);
        found.ok().map(|entry| entry.remove().0.value)
    }

    /// The entries as they are now; the next write copies them if they are still shared then.
    pub(crate) fn share(&mut self) -> Arc<Entries> {
        if let Self::Own(entries) = self {
            *self = Self::Shared(Arc::new(std::mem::take(entries)));
        }
        match self {
            Self::Shared(entries) => entries.clone(),
            Self::Own(_) => unreachable!("it was shared just above"),
        }
    }

    /// The entries, for a write.
    fn entries(&mut self) -> &mut Entries {
        if let Self::Shared(entries) = self {
            *self = Self::Own(Arc::unwrap_or_clone(std::mem::take(entries)));
        }
        match self {
            Self::Own(entries) => entries,
            Self::Shared(_) => unreachable!("it was taken just above"),
        }
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::Own(Entries::default())
    }
}

impl Entries {
    pub(crate) fn get(&self, hash: Hash, key: &str) -> Option<&Slot> {
        self.0.find(hash, |entry| &*entry.key == key).map(|entry| &entry.value)
    }
}

/// The shard of a hash, from bits that the table inside the shard does not use first.
pub(crate) fn shard_of(hash: Hash) -> usize {
    (hash >> 40) as usize % SHARDS
}
