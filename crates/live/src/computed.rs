//! Computed variables: values under `derived:` that are computed from other keys.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sessile_state::{SharedValue, State, StateError};

/// A computed variable as it was declared.
pub(crate) struct Computed {
    /// Its name, without `derived:`.
    name: String,
    inputs: Vec<String>,
    compute: Compute,
}

type Compute = Box<dyn Fn(&State) -> Result<Option<SharedValue>, StateError> + Send + Sync>;

impl Computed {
    pub(crate) fn new<T: Serialize>(
        name: impl AsRef<str>,
        inputs: impl IntoIterator<Item = impl AsRef<str>>,
        compute: impl Fn(&State) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let name = bare(name.as_ref()).to_owned();
        let key = format!("derived:{name}");
        let compute = move |state: &State| {
            let value = compute(state).map(|value| SharedValue::from_serialize(&value));
            value.transpose().map_err(|source| StateError::NotJson { key: key.clone(), source })
        };
        Self {
            name,
            inputs: inputs.into_iter().map(|input| bare(input.as_ref()).to_owned()).collect(),
            compute: Box::new(compute),
        }
    }
}

/// `x` and `derived:x` are the same name.
fn bare(name: &str) -> &str {
    name.strip_prefix("derived:").unwrap_or(name)
}

/// The computed variables of a session in topological order: each comes after its inputs.
#[derive(Default)]
pub(crate) struct ComputedVariables {
    variables: Vec<Variable>,
}

struct Variable {
    key: String,
    computed: Computed,
    /// The inputs of the last computation.
    seen: Option<Vec<Option<SharedValue>>>,
}

impl ComputedVariables {
    /// Sorts the variables topologically; a cycle is a problem.
    pub(crate) fn new(declared: Vec<Computed>, problems: &mut Vec<String>) -> Self {
        let mut by_name = BTreeMap::new();
        for computed in declared {
            let name = computed.name.clone();
            if name.is_empty() || name.contains(':') {
                problems.push(format!(
                    "the computed variable {name:?} needs a name without a prefix; it is stored as `derived:<name>`"
                ));
            }
            if by_name.insert(name.clone(), computed).is_some() {
                problems.push(format!("the computed variable {name:?} is declared twice"));
            }
        }
        let mut variables = Vec::with_capacity(by_name.len());
        let mut placed = BTreeSet::new();
        while !by_name.is_empty() {
            let ready = by_name.iter().find(|(_, computed)| {
                computed.inputs.iter().all(|input| placed.contains(input) || !by_name.contains_key(input))
            });
            let Some(name) = ready.map(|(name, _)| name.clone()) else {
                let names: Vec<_> = by_name.into_keys().collect();
                problems.push(format!(
                    "computed variables depend on each other in a circle: {}",
                    names.join(", ")
                ));
                break;
            };
            if let Some(computed) = by_name.remove(&name) {
                variables.push(Variable { key: format!("derived:{name}"), computed, seen: None });
            }
            placed.insert(name);
        }
        Self { variables }
    }

    /// Recomputes the variables whose inputs changed. A variable without a value is removed.
    pub(crate) fn recompute(&mut self, state: &State, problems: &mut Vec<String>) {
        for variable in &mut self.variables {
            let inputs: Vec<_> = variable.computed.inputs.iter().map(|input| state.get_raw(input)).collect();
            if variable.seen.as_ref() == Some(&inputs) {
                continue;
            }
            variable.seen = Some(inputs);
            let written = match (variable.computed.compute)(state) {
                Ok(value) if value == state.get_raw(&variable.key) => Ok(()),
                Ok(Some(value)) => state.try_set_raw(&variable.key, value),
                Ok(None) => state.try_remove(&variable.key).map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                problems.push(format!("the computed variable {:?} failed: {error}", variable.computed.name));
            }
        }
    }
}
