//! The sources of time and ids. They are injected, so that tests can choose them.

use std::time::{SystemTime, UNIX_EPOCH};

/// What time it is.
pub trait Clock: Send + Sync {
    /// Unix seconds.
    fn now(&self) -> f64;
}

/// The computer's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> f64 {
        // Before 1970 the difference is negative, and so is the time.
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        }
    }
}

/// Where new ids come from.
pub trait Ids: Send + Sync {
    /// An id that was never returned before.
    fn new_id(&self) -> String;
}

/// Random ids that begin with the time they were made at (UUID version 7): ids that are made
/// together are neighbours in an index, which then grows at its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn new_id(&self) -> String {
        let mut text = uuid::Uuid::encode_buffer();
        uuid::Uuid::now_v7().hyphenated().encode_lower(&mut text).to_owned()
    }
}
