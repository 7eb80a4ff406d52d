//! The fields that say how state is changed, and what the change was computed from.

use super::{Field, Kind};

/// Keys that are removed. An absent key stays absent.
pub(crate) const STATE_REMOVE: Field = Field::optional(
    "stateRemove",
    Kind::List(&Kind::Text),
    "Keys to remove; null in `stateDelta` is a value.",
);

/// Keys that are changed by operations on what is stored.
pub(crate) const STATE_OPS: Field = Field::optional(
    "stateOps",
    Kind::MapOf(&Kind::Operations),
    "Operations on keys, computed in the commit from what is stored then, so that no writer overwrites another: \
     `{\"add\": 1, \"min\": 0}`, `{\"append\": [\"x\"]}`, `{\"union\": [\"a\"]}`, or a list of them. 409 if one cannot be \
     applied; nothing is stored then.",
);

/// Values that the change was computed from.
pub(crate) const STATE_READ: Field = Field::optional(
    "stateRead",
    Kind::Map,
    "Keys that must still hold these values when the change is committed; null means null.",
);

/// Keys that were absent when the change was computed.
pub(crate) const STATE_ABSENT: Field = Field::optional(
    "stateAbsent",
    Kind::List(&Kind::Text),
    "Keys that must still be absent when the change is committed.",
);

/// What happens if a key holds something else.
pub(crate) const ON_OVERWRITE: Field = Field::optional(
    "onOverwrite",
    Kind::Word(&["refuse", "report"]),
    "What happens if a key of `stateRead` or `stateAbsent` holds something else: `refuse` (409 with the current values, \
     nothing is stored), which is the default, or `report` (the change is \
     made, and its event tells what it overwrote; of shared state without a session, the header Sessile-Overwrote and \
     the history).",
);
