use std::fmt;
use std::marker::PhantomData;

/// A key and the type of its value, as a constant.
///
/// ```
/// use sessile_state::{State, StateKey};
///
/// const TURN_COUNT: StateKey<u32> = StateKey::new("session:turn_count");
///
/// let state = State::new();
/// state.set_key(&TURN_COUNT, 5);
/// assert_eq!(state.get_key(&TURN_COUNT), Some(5));
/// ```
pub struct StateKey<T> {
    key: &'static str,
    /// A key produces and accepts `T`s but holds none, so it is `Send` and `Sync` for every `T`.
    value: PhantomData<fn(T) -> T>,
}

impl<T> StateKey<T> {
    /// A key for values of type `T`.
    pub const fn new(key: &'static str) -> Self {
        Self { key, value: PhantomData }
    }

    /// The key as text, prefix included.
    pub const fn key(&self) -> &'static str {
        self.key
    }
}

impl<T> Clone for StateKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StateKey<T> {}

impl<T> fmt::Debug for StateKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKey({:?})", self.key)
    }
}
