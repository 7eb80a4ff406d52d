use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::ops::Bound::{Included, Unbounded};

use smallvec::SmallVec;

use crate::change::Change;
use crate::key::Key;

/// What happens to keys, in key order. A few are kept in a sorted list, which covers most deltas;
/// many are kept in a tree, so that inserting them in any order stays cheap.
#[derive(Clone)]
pub(crate) enum Changes {
    Few(SmallVec<[(Key, Change); 2]>),
    Many(BTreeMap<Key, Change>),
}

/// Up to this many, shifting the entries of a list costs less than a tree.
const FEW: usize = 16;

impl Changes {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(tree) => tree.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Change> {
        match self {
            Self::Few(list) => place(list, key).ok().map(|at| &list[at].1),
            Self::Many(tree) => tree.get(key),
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        match self {
            Self::Few(list) => Iter::Few(list.iter()),
            Self::Many(tree) => Iter::Many(tree.range::<str, _>(..)),
        }
    }

    /// The changes from `start` on.
    pub(crate) fn starting_at(&self, start: &str) -> Iter<'_> {
        match self {
            Self::Few(list) => {
                let first = list.partition_point(|(key, _)| **key < *start);
                Iter::Few(list[first..].iter())
            }
            Self::Many(tree) => Iter::Many(tree.range::<str, _>((Included(start), Unbounded))),
        }
    }

    pub(crate) fn insert(&mut self, key: Key, change: Change) -> Option<Change> {
        match self {
            Self::Many(tree) => tree.insert(key, change),
            Self::Few(list) => match place(list, &key) {
                Ok(at) => Some(std::mem::replace(&mut list[at].1, change)),
                Err(at) if list.len() < FEW => {
                    list.insert(at, (key, change));
                    None
                }
                Err(_) => {
                    let tree = list.drain(..).chain([(key, change)]).collect();
                    *self = Self::Many(tree);
                    None
                }
            },
        }
    }

    /// Adds a change of a key that comes after all others.
    pub(crate) fn push(&mut self, key: Key, change: Change) {
        match self {
            Self::Few(list) if list.len() < FEW => list.push((key, change)),
            _ => drop(self.insert(key, change)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Change> {
        match self {
            Self::Few(list) => place(list, key).ok().map(|at| list.remove(at).1),
            Self::Many(tree) => tree.remove(key),
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        match self {
            Self::Few(list) => list.retain(|(key, _)| keep(key)),
            Self::Many(tree) => tree.retain(|key, _| keep(key)),
        }
    }
}

/// The index of a key in a sorted list, or where to insert it. Keys mostly come in order, so the
/// end is checked first.
fn place(list: &[(Key, Change)], key: &str) -> Result<usize, usize> {
    if list.last().is_none_or(|(last, _)| **last < *key) {
        return Err(list.len());
    }
    list.binary_search_by(|(held, _)| (**held).cmp(key))
}

/// Goes over changes in key order.
pub(crate) enum Iter<'a> {
    Few(std::slice::Iter<'a, (Key, Change)>),
    Many(btree_map::Range<'a, Key, Change>),
}

impl Default for Iter<'_> {
    fn default() -> Self {
        Self::Few([].iter())
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Key, &'a Change);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(list) => list.next().map(|(key, change)| (key, change)),
            Self::Many(tree) => tree.next(),
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl FromIterator<(Key, Change)> for Changes {
    fn from_iter<I: IntoIterator<Item = (Key, Change)>>(entries: I) -> Self {
        let mut changes = Self::default();
        for (key, change) in entries {
            changes.insert(key, change);
        }
        changes
    }
}

/// Compares the entries, regardless of the representation.
impl PartialEq for Changes {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Changes {}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(n: u64) -> Change {
        Change::Set(serde_json::Value::from(n).into())
    }

    #[test]
    fn a_list_that_becomes_a_tree_holds_what_a_tree_holds() {
        // Keys in no order, some twice, on both sides of the limit.
        for count in [0, 1, 2, 3, 15, 16, 17, 18, 60] {
            let (mut changes, mut tree) = (Changes::default(), BTreeMap::new());
            for n in 0..count {
                let key: Key = format!("k{}", n * 7 % 41).into();
                assert_eq!(changes.insert(key.clone(), change(n)), tree.insert(key, change(n)));
            }
            assert!(changes.iter().eq(&tree) && changes.len() == tree.len());
            for start in ["", "k2", "k30", "z"] {
                let rest = tree.range::<str, _>((Included(start), Unbounded));
                assert!(changes.starting_at(start).eq(rest));
            }
            let mut pushed = Changes::default();
            tree.iter().for_each(|(key, change)| pushed.push(key.clone(), change.clone()));
            assert_eq!(changes, pushed);
            let other: Changes =
                tree.iter().rev().map(|(key, change)| (key.clone(), change.clone())).collect();
            assert_eq!(changes, other);
            for key in ["k7", "absent", "k0"] {
                assert_eq!(changes.get(key), tree.get(key));
                assert_eq!(changes.remove(key), tree.remove(key));
            }
            changes.retain(|key| key.ends_with('4'));
            tree.retain(|key, _| key.ends_with('4'));
            assert!(changes.iter().eq(&tree));
        }
    }
}
