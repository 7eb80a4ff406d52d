use crate::operation::{OperationError, Operations};
use crate::value::SharedValue;

/// What happens to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key gets this value; null is a value.
    Set(SharedValue),
    /// The key is removed.
    Remove,
    /// The value is computed from the one that is stored when the change is committed.
    Operate(Operations),
}

impl Change {
    /// The one change that has the effect of this one and then `later`.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if `later` operates on a value that this change sets and that it cannot
    /// be applied to.
    pub fn then(&self, later: &Self) -> Result<Self, OperationError> {
        match (self, later) {
            (_, Self::Set(_) | Self::Remove) => Ok(later.clone()),
            (Self::Set(value), Self::Operate(operations)) => operations.apply(Some(value)).map(Self::Set),
            (Self::Remove, Self::Operate(operations)) => operations.apply(None).map(Self::Set),
            (Self::Operate(earlier), Self::Operate(operations)) => {
                let mut all = earlier.clone();
                all.extend(operations);
                Ok(Self::Operate(all))
            }
        }
    }

    /// What the change makes of a value; `None` is absence.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if it is an operation that cannot be applied to this value.
    pub fn apply(&self, value: Option<&SharedValue>) -> Result<Option<SharedValue>, OperationError> {
        match self {
            Self::Set(value) => Ok(Some(value.clone())),
            Self::Remove => Ok(None),
            Self::Operate(operations) => operations.apply(value).map(Some),
        }
    }
}
