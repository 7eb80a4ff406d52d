//! Turns guarded writes of keys with a reducer into operations.

use sessile_state::{Change, Delta, Scope, StateSchema};

use super::SessionService;
use super::append::Append;
use crate::error::SessionError;
use crate::guard::Guards;

impl SessionService {
    /// Replaces sets by operations, for keys that have a reducer in the application's schema and a
    /// guard, which holds the value before. The guard is removed: an operation cannot lose an
    /// update.
    pub(super) fn reduced(&self, app: &str, mut append: Append) -> Result<Append, SessionError> {
        if let Some(schema) = self.schema(app) {
            reduce(schema, &mut append.event.actions.state_delta, &mut append.guards, str::to_owned)?;
        }
        Ok(append)
    }

    /// The same for changes of one scope, whose keys are without their prefix.
    pub(super) fn reduced_in(
        &self,
        app: &str,
        scope: Scope,
        delta: &mut Delta,
        guards: &mut Guards,
    ) -> Result<(), SessionError> {
        match self.schema(app) {
            Some(schema) => reduce(schema, delta, guards, |name| scope.key(name)),
            None => Ok(()),
        }
    }
}

/// `full` converts a key of the delta into the key that the schema declares.
fn reduce(
    schema: &StateSchema,
    delta: &mut Delta,
    guards: &mut Guards,
    full: impl Fn(&str) -> String,
) -> Result<(), SessionError> {
    if schema.reducers().is_empty() || guards.is_empty() {
        return Ok(());
    }
    for (name, change) in delta.clone().iter() {
        let key = full(name);
        let (Change::Set(to), Some(guard)) = (change, guards.get(name)) else { continue };
        let Some(reducer) = schema.reducers().get(&key).filter(|reducer| reducer.is_operation()) else {
            continue;
        };
        let operation = reducer.difference(&key, guard.read.as_ref(), to).map_err(|error| {
            let reason = format!("{error}; leave out the value that was read to replace what is stored");
            SessionError::InvalidState { key: key.clone(), reason }
        })?;
        delta.retain(|other| other != name);
        if let Some(operation) = operation {
            delta.operate(name, operation);
        }
        guards.retain(|other| other != name);
    }
    Ok(())
}
