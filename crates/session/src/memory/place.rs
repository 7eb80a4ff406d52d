//! The order of sessions in lists.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::page::ListPlace;

/// A session under its application.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) user: String,
    pub(super) id: String,
}

/// The position of a session in a list, in the sort order of lists.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) update_time: f64,
    pub(super) name: Arc<Name>,
}

impl From<ListPlace> for Place {
    fn from(ListPlace { update_time, user, id }: ListPlace) -> Self {
        Self { update_time, name: Arc::new(Name { user, id }) }
    }
}

impl From<&Place> for ListPlace {
    fn from(Place { update_time, name }: &Place) -> Self {
        Self { update_time: *update_time, user: name.user.clone(), id: name.id.clone() }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.update_time.total_cmp(&other.update_time).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}
