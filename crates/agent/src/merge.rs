//! Joins changes that were made concurrently, in a fixed order.

use std::collections::{BTreeMap, BTreeSet};

use sessile_session::{Guard, Guards, OnOverwrite, Overwrites, Overwrote, SessionError};
use sessile_state::{Change, Delta, SharedValue, StateError, same_value};

/// What one writer changed.
pub(crate) struct Written<'a> {
    /// The tool, for messages about conflicts.
    pub(crate) writer: &'a str,
    pub(crate) delta: &'a Delta,
    /// The values that it had read of the keys that it then set or removed.
    pub(crate) guards: &'a Guards,
}

/// The joined changes of concurrent writers.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) delta: Delta,
    pub(crate) guards: Guards,
    /// What they overwrote of each other's changes. It was computed from the known values, so the
    /// guards refuse the commit if something else is stored by then: join again with the current
    /// values.
    pub(crate) overwrote: Overwrites,
    /// Whether it depends on the known values, as `overwrote` says.
    pub(crate) is_exact: bool,
}

/// A writer whose changes cannot be joined with those of the writers before it.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its index among the writers.
    pub(crate) writer: usize,
    /// Why, and what to do.
    pub(crate) reason: String,
}

/// Joins what writers changed concurrently on the same state, in their order. Operations of all
/// writers are kept, one after the other; a value that is set replaces what was done to the key
/// before. A writer that had read a key before it set it is compared with what the writers before
/// it left of the key. `known` finds the values that were there before all of them.
pub(crate) fn join(
    known: &dyn Fn(&str) -> Option<SharedValue>,
    writers: &[Written<'_>],
) -> Result<Joined, Refused> {
    let mut join = Join {
        joined: Joined {
            delta: Delta::new(),
            guards: Guards::new(OnOverwrite::Refuse),
            overwrote: Overwrites::new(),
            is_exact: overwrite_each_other(writers),
        },
        relied: BTreeSet::new(),
        known,
    };
    let mut last_writer: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, Written { writer, delta, guards }) in writers.iter().enumerate() {
        for (key, change) in delta.iter() {
            let guard = guards.get(key).filter(|_| !matches!(change, Change::Operate(_)));
            let earlier = join.joined.delta.get(key).cloned();
            let change = match (&earlier, guard) {
                (None, None) => change.clone(),
                (None, Some(guard)) => {
                    join.first(index, key, guard)?;
                    change.clone()
                }
                (Some(earlier), _) if matches!(change, Change::Operate(_)) => {
                    let both = earlier.then(change);
                    both.map_err(|source| StateError::Operation { key: key.to_owned(), source })
                        .map_err(|error| Refused { writer: index, reason: error.to_string() })?
                }
                (Some(earlier), Some(guard)) => {
                    join.after(index, key, guard, earlier)?;
                    change.clone()
                }
                (Some(earlier), None) => {
                    if earlier != change {
                        warn(key, last_writer[key], writer);
                    }
                    change.clone()
                }
            };
            replace(&mut join.joined.delta, key, change);
            last_writer.insert(key, writer);
        }
    }
    Ok(join.end())
}

/// A join in progress.
struct Join<'a> {
    joined: Joined,
    /// The keys whose known values were compared with something.
    relied: BTreeSet<String>,
    known: &'a dyn Fn(&str) -> Option<SharedValue>,
}

impl Join<'_> {
    /// The guard of the first writer of a key: for the store, unless all is computed here.
    fn first(&mut self, writer: usize, key: &str, guard: &Guard) -> Result<(), Refused> {
        if !self.joined.is_exact {
            self.joined.guards.insert_guard(key.to_owned(), guard.clone());
            return Ok(());
        }
        self.relied.insert(key.to_owned());
        self.compare(writer, key, guard, (self.known)(key))
    }

    /// The guard of a later writer: compared with what the earlier ones left.
    fn after(&mut self, writer: usize, key: &str, guard: &Guard, earlier: &Change) -> Result<(), Refused> {
        let known = match earlier {
            Change::Operate(_) => {
                self.relied.insert(key.to_owned());
                (self.known)(key)
            }
            Change::Set(_) | Change::Remove => None,
        };
        // If an earlier operation cannot be applied, the store refuses it, and this is joined again
        // without it.
        let left = earlier.apply(known.as_ref()).unwrap_or(known);
        self.compare(writer, key, guard, left)
    }

    fn compare(
        &mut self,
        writer: usize,
        key: &str,
        guard: &Guard,
        found: Option<SharedValue>,
    ) -> Result<(), Refused> {
        let is_same = match (&guard.read, &found) {
            (Some(read), Some(found)) => same_value(read, found),
            (None, None) => true,
            _ => false,
        };
        match guard.on_overwrite {
            _ if is_same => {}
            OnOverwrite::Report => {
                let overwrote = Overwrote { read: guard.read.clone(), found };
                self.joined.overwrote.entry(key.to_owned()).or_default().push(overwrote);
            }
            OnOverwrite::Refuse => {
                let error = SessionError::Overwritten { current: [(key.to_owned(), found)].into() };
                return Err(Refused { writer, reason: error.to_string() });
            }
        }
        Ok(())
    }

    fn end(mut self) -> Joined {
        for key in self.relied {
            let known = (self.known)(&key);
            self.joined.guards.insert(key, known);
        }
        self.joined
    }
}

/// Whether a writer sets or removes a key that it had read and that a writer before it changed.
fn overwrite_each_other(writers: &[Written<'_>]) -> bool {
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    for Written { delta, guards, .. } in writers {
        if guards.iter().any(|(key, _)| changed.contains(key) && delta.get(key).is_some()) {
            return true;
        }
        changed.extend(delta.iter().map(|(key, _)| key));
    }
    false
}

/// What a parallel branch set and removed.
pub(crate) struct Branch<'a> {
    /// Its agent, for warnings about conflicts.
    pub(crate) name: &'a str,
    pub(crate) delta: Delta,
}

/// Joins what branches set and removed, in their order: the last branch's value counts. Operations
/// on `temp:` keys, which no store computes, are all kept.
pub(crate) fn join_branches(branches: &[Branch<'_>]) -> Delta {
    let mut joined = Delta::new();
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for Branch { name, delta } in branches {
        for (key, change) in delta.iter() {
            let next = match (joined.get(key), change) {
                (None, _) => change.clone(),
                (Some(earlier), Change::Operate(_)) => match earlier.then(change) {
                    Ok(both) => both,
                    Err(_) => {
                        warn(key, last[key], name);
                        change.clone()
                    }
                },
                (Some(earlier), _) => {
                    if earlier != change {
                        warn(key, last[key], name);
                    }
                    change.clone()
                }
            };
            replace(&mut joined, key, next);
            last.insert(key, name);
        }
    }
    joined
}

/// Replaces the change of a key in the delta.
fn replace(delta: &mut Delta, key: &str, change: Change) {
    match change {
        Change::Set(value) => delta.set(key, value),
        Change::Remove => delta.remove(key),
        Change::Operate(operations) => {
            delta.retain(|other| other != key);
            delta.operate(key, operations);
        }
    }
}

fn warn(key: &str, earlier: &str, later: &str) {
    tracing::warn!(
        key,
        earlier,
        later,
        "`{earlier}` and `{later}` wrote different values to the key `{key}` concurrently, and that of `{later}` \
         counts; use `add`, `append` or `union`, or declare a reducer for the key, so that both count"
    );
}
