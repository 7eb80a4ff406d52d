//! The bottom of every state: a table of values in shards, and one ordered index of its keys.
//!
//! - A key's hash chooses its shard, so writers of different keys rarely contend for a lock.
//! - Tables and index are copied on write *if* a snapshot shares them: a snapshot is a handful of
//!   reference-counted pointers, and a state without snapshots is changed in place.
//! - Locks are acquired in one order: shards by number, then the index. A change of several keys
//!   holds the locks of all their shards and of the index, so readers see all of it or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::change::Change;
use crate::delta::Delta;
use crate::error::StateError;
use crate::gate::{Gate, GateGuard, Why};
use crate::journal::{Journal, as_keys};
use crate::key::Key;
use crate::operation::Operations;
use crate::plan::{Blocked, Plan};
use crate::snapshot::{Index, Snapshot};
use crate::sync::{Mutex, lock};
use crate::table::{Hash, Inserted, SHARDS, Table, shard_of};
use crate::value::{SharedValue, Slot};

pub(crate) struct Base {
    /// Boxed, so that a delta view, which has none, stays small.
    shards: Box<[Shard; SHARDS]>,
    index: Mutex<Arc<BTreeSet<Key>>>,
    hasher: RandomState,
    /// What is changed and read, if the state is recorded.
    pub(crate) journal: Journal,
}

/// Aligned to its own cache lines, so that threads in different shards do not cause false sharing.
#[repr(align(128))]
struct Shard(Gate<Table, Hash>);

type Locked<'a> = [Option<GateGuard<'a, Table, Hash>>; SHARDS];

impl Base {
    pub(crate) fn new() -> Self {
        Self {
            shards: Box::new(std::array::from_fn(|_| Shard(Gate::new(Table::default())))),
            index: Mutex::new(Arc::default()),
            hasher: RandomState::default(),
            journal: Journal::default(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Slot> {
        let hash = self.hash(key);
        let table = self.shard(hash).lock();
        let value = table.get(hash, key).cloned();
        if let Some(mut noted) = self.journal.noted_for(key) {
            noted.read(key, || value.clone().map(SharedValue::from));
        }
        value
    }

    /// The value of a key without counting it as read.
    pub(crate) fn peek(&self, key: &str) -> Option<Slot> {
        let hash = self.hash(key);
        self.shard(hash).lock().get(hash, key).cloned()
    }

    /// The value of `key`, or else that of `other`, both read under their locks at once.
    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<Slot> {
        let (hash, other_hash) = (self.hash(key), self.hash(other));
        let (place, other_place) = (shard_of(hash), shard_of(other_hash));
        let first = self.shards[place.min(other_place)].0.lock();
        let second = (place != other_place).then(|| self.shards[place.max(other_place)].0.lock());
        let last = second.as_ref().unwrap_or(&first);
        let (table, other_table) = if place < other_place { (&first, last) } else { (last, &first) };
        let value = table.get(hash, key).or_else(|| other_table.get(other_hash, other)).cloned();
        if let Some(mut noted) = self.journal.noted_for(key) {
            noted.read(key, || table.get(hash, key).cloned().map(SharedValue::from));
        }
        value
    }

    /// Writes one key.
    pub(crate) fn put(&self, key: &str, value: Slot) -> Result<(), Why> {
        let hash = self.hash(key);
        let mut table = self.shard(hash).lock_for(&hash)?;
        if let Some(mut noted) = self.journal.noted_for(key) {
            noted.set(key, value.clone().into());
        }
        let old = self.insert(&mut table, hash, key, value);
        drop(table); // before `old`, which may be large
        drop(old);
        Ok(())
    }

    /// Removes one key and returns what it held.
    pub(crate) fn take(&self, key: &str) -> Result<Option<Slot>, Why> {
        let hash = self.hash(key);
        let mut table = self.shard(hash).lock_for(&hash)?;
        let old = table.remove(hash, key);
        if let Some(old) = &old {
            Arc::make_mut(&mut lock(&self.index)).remove(key);
            if let Some(mut noted) = self.journal.noted_for(key) {
                noted.read(key, || Some(old.clone().into()));
                noted.remove(key);
            }
        }
        Ok(old)
    }

    /// Operates on one key, if `check` accepts what becomes of it.
    pub(crate) fn operate(
        &self,
        key: &str,
        operations: &Operations,
        check: &dyn Fn(&SharedValue) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let hash = self.hash(key);
        let mut table = self.shard(hash).lock_for(&hash).map_err(|why| why.on(key))?;
        let held = table.get(hash, key).cloned().map(SharedValue::from);
        let value = operations.apply(held.as_ref()).map_err(|source| StateError::operation(key, source))?;
        check(&value)?;
        if let Some(mut noted) = self.journal.noted_for(key) {
            noted.operate(&key.into(), operations, held, value.clone());
        }
        let old = self.insert(&mut table, hash, key, value.into());
        drop(table); // before `old`, which may be large
        drop(old);
        Ok(())
    }

    /// Claims `key` for a `modify`, and returns its value.
    pub(crate) fn claim(&self, key: &str) -> Result<Option<Slot>, Why> {
        let hash = self.hash(key);
        let mut table = self.shard(hash).lock_for(&hash)?;
        table.claim(hash);
        Ok(table.get(hash, key).cloned())
    }

    /// Records that the closure of a `modify` gets this value.
    pub(crate) fn note_claimed(&self, key: &str, value: Option<&Slot>) {
        if let Some(mut noted) = self.journal.noted_for(key) {
            noted.claimed(key, || value.cloned().map(SharedValue::from));
        }
    }

    /// Ends a claim, writing `value` if there is one.
    pub(crate) fn release(&self, key: &str, value: Option<Slot>) {
        let hash = self.hash(key);
        let shard = self.shard(hash);
        let mut table = shard.lock();
        if let Some(value) = &value
            && let Some(mut noted) = self.journal.noted_for(key)
        {
            noted.set(key, value.clone().into());
        }
        let old = value.and_then(|value| self.insert(&mut table, hash, key, value));
        shard.release(&mut table, &hash);
        drop(table);
        drop(old);
    }

    /// Makes all changes atomically, or none if a key is claimed. `mine` says that the claims of
    /// this thread were made for this change and do not block it.
    pub(crate) fn try_apply(&self, delta: &Delta, mine: bool) -> Result<(), Blocked> {
        let shards = delta.entries().fold(0, |shards, (key, _)| shards | 1 << shard_of(self.hash(key)));
        self.try_write_locked(self.lock_shards(shards), delta, mine)
    }

    /// Lets `plan` decide on changes from the state under the locks, and makes them.
    pub(crate) fn try_write(&self, plan: &mut Plan<'_>, mine: bool) -> Result<(), Blocked> {
        let mut shards = self.lock_shards(!0);
        let delta = plan(&self.view_of(&mut shards));
        self.try_write_locked(shards, &delta, mine)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.view_of(&mut self.lock_shards(!0))
    }

    pub(crate) fn index(&self) -> Index {
        Index::of(lock(&self.index).clone())
    }

    fn try_write_locked(&self, mut shards: Locked<'_>, delta: &Delta, mine: bool) -> Result<(), Blocked> {
        for (key, _) in delta.entries() {
            let hash = self.hash(key);
            if shards[shard_of(hash)].as_ref().is_some_and(|table| table.claimed(&hash, mine)) {
                return Err(Blocked::Claimed);
            }
        }
        let resolved;
        let intended = delta;
        let delta = match delta.has_operations() {
            false => delta,
            true => {
                let value_of = |key: &str| {
                    let hash = self.hash(key);
                    let table = shards[shard_of(hash)].as_ref()?;
                    table.get(hash, key).cloned().map(SharedValue::from)
                };
                resolved = delta.resolved(value_of).map_err(Blocked::Refused)?;
                &resolved
            }
        };
        self.record(&shards, intended, delta);
        // Dropped after the locks are released, because dropping a large value takes time.
        let mut old = Vec::with_capacity(delta.len());
        let mut index = lock(&self.index);
        for (key, change) in delta.entries() {
            let hash = self.hash(key);
            let table = shards[shard_of(hash)].as_mut().expect("the caller locks the shards of all keys");
            match change {
                Change::Set(value) => match table.insert(hash, key, value.clone().into(), &self.hasher) {
                    Inserted::Over(value) => old.push(value),
                    Inserted::New(key) => drop(Arc::make_mut(&mut index).insert(key)),
                },
                Change::Remove => {
                    if let Some(value) = table.remove(hash, key) {
                        Arc::make_mut(&mut index).remove(key);
                        old.push(value);
                    }
                }
                Change::Operate(_) => unreachable!("operations were resolved above"),
            }
        }
        drop((index, shards));
        Ok(())
    }

    /// Puts values that were committed elsewhere below the recorded changes. Claims are ignored:
    /// for a `modify` in progress, the value that its closure got still counts as the one that was
    /// read.
    pub(crate) fn absorb(&self, values: BTreeMap<String, Option<SharedValue>>) {
        let values = as_keys(values);
        let which = values.iter().fold(0, |shards, (key, _)| shards | 1 << shard_of(self.hash(key)));
        let mut shards = self.lock_shards(which);
        let mut index = lock(&self.index);
        let Some(mut noted) = self.journal.noted() else { return };
        for (key, committed) in &values {
            let Some(shown) = noted.shown(key, committed) else { continue };
            let hash = self.hash(key);
            let Some(table) = shards[shard_of(hash)].as_mut() else { continue };
            match shown {
                Some(value) => {
                    if let Inserted::New(key) = table.insert(hash, key, value.into(), &self.hasher) {
                        Arc::make_mut(&mut index).insert(key);
                    }
                }
                None => {
                    if table.remove(hash, key).is_some() {
                        Arc::make_mut(&mut index).remove(key);
                    }
                }
            }
        }
    }

    /// Records the changes of several keys before they are made, if the state is recorded.
    fn record(&self, shards: &Locked<'_>, intended: &Delta, results: &Delta) {
        let Some(mut noted) = self.journal.noted() else { return };
        for (key, change) in intended.entries().filter(|(key, _)| noted.keeps(key)).collect::<Vec<_>>() {
            match (change, results.get(key)) {
                (Change::Set(value), _) => noted.set(key, value.clone()),
                (Change::Remove, _) => noted.remove(key),
                (Change::Operate(operations), Some(Change::Set(after))) => {
                    let hash = self.hash(key);
                    let table = shards[shard_of(hash)].as_ref();
                    let before = table.and_then(|table| table.get(hash, key)).cloned();
                    noted.operate(key, operations, before.map(SharedValue::from), after.clone());
                }
                (Change::Operate(_), _) => unreachable!("operations come to values"),
            }
        }
    }

    fn insert(&self, table: &mut Table, hash: Hash, key: &str, value: Slot) -> Option<Slot> {
        match table.insert(hash, key, value, &self.hasher) {
            Inserted::Over(old) => Some(old),
            Inserted::New(key) => {
                Arc::make_mut(&mut lock(&self.index)).insert(key);
                None
            }
        }
    }

    /// Locks the shards whose bits are set, in order.
    fn lock_shards(&self, which: u32) -> Locked<'_> {
        std::array::from_fn(|place| (which >> place & 1 == 1).then(|| self.shards[place].0.lock()))
    }

    /// All shards must be locked.
    fn view_of(&self, shards: &mut Locked<'_>) -> Snapshot {
        let tables = shards.each_mut().map(|table| table.as_mut().expect("all shards are locked").share());
        Snapshot::new(tables, self.hasher.clone(), self.index())
    }

    fn hash(&self, key: &str) -> Hash {
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: Hash) -> &Gate<Table, Hash> {
        &self.shards[shard_of(hash)].0
    }
}
