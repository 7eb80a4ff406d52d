//! The bottom of every state: a table of values in shards, and one ordered index of its keys.
//!
//! - A key's hash chooses its shard, so writers of different keys rarely meet.
//! - Tables and index are copied on write *if* a snapshot shares them: a snapshot is a handful of
//!   counted references, and a state nobody looks at whole is changed in place.
//! - Locks are taken in one order: shards by number, then the index. A change of several keys
//!   holds all shards, so nobody sees half of it.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::delta::Change;
use crate::gate::{Blocked, Gate, GateGuard, Key};
use crate::node::{Plan, WouldWait};
use crate::snapshot::{Index, Snapshot};
use crate::sync::{Mutex, lock};
use crate::value::SharedValue;

/// How many shards a table has: a power of two, enough for the threads of one agent.
pub(crate) const SHARDS: usize = 8;

pub(crate) struct Base {
    /// Boxed, so that a delta view, which has none, stays small.
    shards: Box<[Shard; SHARDS]>,
    index: Mutex<Arc<BTreeSet<Key>>>,
    hasher: RandomState,
}

/// Alone on its cache lines, so that two threads in two shards do not slow each other down.
#[repr(align(128))]
struct Shard(Gate<Arc<Table>>);

/// The entries of one shard.
#[derive(Clone, Default)]
pub(crate) struct Table(HashTable<Entry>);

#[derive(Clone)]
struct Entry {
    key: Key,
    value: SharedValue,
}

type Shards<'a> = [GateGuard<'a, Arc<Table>>; SHARDS];

impl Base {
    pub(crate) fn new() -> Self {
        let empty = Arc::new(Table::default());
        Self {
            shards: Box::new(std::array::from_fn(|_| Shard(Gate::new(empty.clone())))),
            index: Mutex::new(Arc::default()),
            hasher: RandomState::default(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<SharedValue> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).lock().get(hash, key).cloned()
    }

    /// The value of `key`, or else that of `other`, as they are at one moment.
    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<SharedValue> {
        let (hash, other_hash) = (self.hasher.hash_one(key), self.hasher.hash_one(other));
        let (place, other_place) = (place(hash), place(other_hash));
        let first = self.shards[place.min(other_place)].0.lock();
        let second = (place != other_place).then(|| self.shards[place.max(other_place)].0.lock());
        let last = second.as_ref().unwrap_or(&first);
        let (table, other_table) = if place < other_place { (&first, last) } else { (last, &first) };
        table.get(hash, key).or_else(|| other_table.get(other_hash, other)).cloned()
    }

    /// Writes one key.
    pub(crate) fn put(&self, key: &str, value: SharedValue) -> Result<(), Blocked> {
        let hash = self.hasher.hash_one(key);
        let mut table = self.shard(hash).lock_for(key)?;
        let old = match Arc::make_mut(&mut table).insert(hash, key, value, &self.hasher) {
            Inserted::Over(old) => Some(old),
            Inserted::New(key) => {
                Arc::make_mut(&mut lock(&self.index)).insert(key);
                None
            }
        };
        drop(table); // before `old`, which may be large
        drop(old);
        Ok(())
    }

    /// Removes one key and returns what it held.
    pub(crate) fn take(&self, key: &str) -> Result<Option<SharedValue>, Blocked> {
        let hash = self.hasher.hash_one(key);
        let mut table = self.shard(hash).lock_for(key)?;
        let old = Table::remove(&mut table, hash, key);
        if old.is_some() {
            Arc::make_mut(&mut lock(&self.index)).remove(key);
        }
        Ok(old)
    }

    /// Claims `key` for a `modify`, and returns it with its value.
    pub(crate) fn claim(&self, key: &str) -> Result<(Key, Option<SharedValue>), Blocked> {
        let hash = self.hasher.hash_one(key);
        let mut table = self.shard(hash).lock_for(key)?;
        let (key, value) = match table.entry(hash, key) {
            Some(entry) => (entry.key.clone(), Some(entry.value.clone())),
            None => (key.into(), None),
        };
        Gate::claim(&mut table, key.clone());
        Ok((key, value))
    }

    /// Ends a claim, writing `value` if there is one.
    pub(crate) fn release(&self, key: &Key, value: Option<SharedValue>) {
        let hash = self.hasher.hash_one(&**key);
        let shard = self.shard(hash);
        let mut table = shard.lock();
        let mut old = None;
        if let Some(value) = value {
            match Arc::make_mut(&mut table).insert(hash, key, value, &self.hasher) {
                Inserted::Over(value) => old = Some(value),
                Inserted::New(key) => drop(Arc::make_mut(&mut lock(&self.index)).insert(key)),
            }
        }
        shard.release(&mut table, key);
        drop(table);
        drop(old);
    }

    /// Makes all changes of `plan` at one moment, or none if a claim is in the way.
    pub(crate) fn try_write(&self, plan: &mut Plan<'_>) -> Result<(), WouldWait> {
        let mut shards: Shards<'_> = std::array::from_fn(|place| self.shards[place].0.lock());
        let changes = plan(&|| self.view_of(&shards));
        for (key, _) in &changes {
            if shards[place(self.hasher.hash_one(&**key))].claimed(key) {
                return Err(WouldWait(key.clone()));
            }
        }
        // Kept until the locks are free: dropping a large value takes a while.
        let mut old = Vec::with_capacity(changes.len());
        let mut index = lock(&self.index);
        for (key, change) in changes {
            let hash = self.hasher.hash_one(&*key);
            let table = &mut shards[place(hash)];
            match change {
                Change::Set(value) => match Arc::make_mut(table).insert(hash, &key, value, &self.hasher) {
                    Inserted::Over(value) => old.push(value),
                    Inserted::New(key) => drop(Arc::make_mut(&mut index).insert(key)),
                },
                Change::Remove => {
                    if let Some(value) = Table::remove(table, hash, &key) {
                        Arc::make_mut(&mut index).remove(&key);
                        old.push(value);
                    }
                }
            }
        }
        drop((index, shards));
        Ok(())
    }

    /// Waits until nobody holds `key`.
    pub(crate) fn wait_for(&self, key: &str) -> Result<(), Blocked> {
        self.shard(self.hasher.hash_one(key)).lock_for(key).map(drop)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let shards: Shards<'_> = std::array::from_fn(|place| self.shards[place].0.lock());
        self.view_of(&shards)
    }

    pub(crate) fn index(&self) -> Index {
        Index::of(lock(&self.index).clone())
    }

    fn view_of(&self, shards: &Shards<'_>) -> Snapshot {
        let tables = std::array::from_fn(|place| Arc::clone(&shards[place]));
        Snapshot::new(tables, self.hasher.clone(), self.index())
    }

    fn shard(&self, hash: u64) -> &Gate<Arc<Table>> {
        &self.shards[place(hash)].0
    }
}

/// What an insertion found.
enum Inserted {
    /// The value that was there.
    Over(SharedValue),
    /// Nothing: the key is new, and the index must hear of it.
    New(Key),
}

impl Table {
    fn insert(&mut self, hash: u64, key: &str, value: SharedValue, hasher: &RandomState) -> Inserted {
        if let Some(entry) = self.0.find_mut(hash, |entry| &*entry.key == key) {
            return Inserted::Over(std::mem::replace(&mut entry.value, value));
        }
        let key = Key::from(key);
        let entry = Entry { key: key.clone(), value };
        self.0.insert_unique(hash, entry, |entry| hasher.hash_one(&*entry.key));
        Inserted::New(key)
    }

    /// Removes a key; copies no shared table if the key is absent.
    fn remove(table: &mut Arc<Self>, hash: u64, key: &str) -> Option<SharedValue> {
        table.entry(hash, key)?;
        let found = Arc::make_mut(table).0.find_entry(hash, |entry| &*entry.key == key);
        found.ok().map(|entry| entry.remove().0.value)
    }

    pub(crate) fn get(&self, hash: u64, key: &str) -> Option<&SharedValue> {
        self.entry(hash, key).map(|entry| &entry.value)
    }

    fn entry(&self, hash: u64, key: &str) -> Option<&Entry> {
        self.0.find(hash, |entry| &*entry.key == key)
    }
}

/// The shard of a hash, from bits that the table inside the shard does not use first.
pub(crate) fn place(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}
