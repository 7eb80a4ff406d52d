//! The JSON form of a [`Delta`].

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::change::Change;
use crate::delta::Delta;
use crate::operation::Operations;
use crate::value::SharedValue;

/// `{"set": {key: value}, "remove": [keys], "ops": {key: operations}}`; parts that are empty are
/// left out.
impl Serialize for Delta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.values().next().is_some() {
            map.serialize_entry("set", &SetPart(self))?;
        }
        if self.removed().next().is_some() {
            map.serialize_entry("remove", &RemovePart(self))?;
        }
        if self.has_operations() {
            map.serialize_entry("ops", &OperationPart(self))?;
        }
        map.end()
    }
}

struct SetPart<'a>(&'a Delta);

impl Serialize for SetPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.values())
    }
}

struct RemovePart<'a>(&'a Delta);

impl Serialize for RemovePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.removed())
    }
}

struct OperationPart<'a>(&'a Delta);

impl Serialize for OperationPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.operations())
    }
}

/// Reads what [`Serialize`] writes. A key in two of the parts is an error.
impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parts {
            #[serde(default)]
            set: BTreeMap<String, SharedValue>,
            #[serde(default)]
            remove: Vec<String>,
            #[serde(default)]
            ops: BTreeMap<String, Operations>,
        }
        let Parts { set, remove, ops } = Parts::deserialize(deserializer)?;
        let mut delta = Self::from(set);
        let changes = remove.into_iter().map(|key| (key, Change::Remove));
        for (key, change) in changes.chain(ops.into_iter().map(|(key, ops)| (key, Change::Operate(ops)))) {
            if delta.insert(key.as_str().into(), change).is_some() {
                return Err(serde::de::Error::custom(format!("the key {key:?} is changed twice")));
            }
        }
        Ok(delta)
    }
}
