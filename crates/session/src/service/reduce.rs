//! Writes of keys with a reducer that say what they were computed from.

use sessile_state::{Change, Delta, Scope, StateSchema};

use super::SessionService;
use super::append::Append;
use crate::error::SessionError;
use crate::guard::Guards;

impl SessionService {
    /// An append with operations in the place of what it sets of keys that have a reducer in the
    /// schema of the application and that it says the value of from before. The operation needs no
    /// guard: it loses nothing.
    pub(super) fn reduced(&self, app: &str, mut append: Append) -> Result<Append, SessionError> {
        if let Some(schema) = self.schema(app) {
            reduce(schema, &mut append.event.actions.state_delta, &mut append.guards, str::to_owned)?;
        }
        Ok(append)
    }

    /// The same of changes of one scope, whose keys are without their prefix.
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

/// `full` makes the key that the schema knows of the one that the delta has.
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
