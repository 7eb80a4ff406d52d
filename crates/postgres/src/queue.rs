//! Commits that wait to be sent, and how they are taken from a queue as one batch.

use sessile_session::{Appended, Commit, SessionError};
use tokio::sync::oneshot;

use crate::batch::{Contents, Texts};

/// The largest number of events that are committed together.
const LARGEST_BATCH: usize = 256;

/// What a commit does, as its errors name it.
pub(crate) const ACTION: &str = "append an event";

/// A commit in a queue.
pub(crate) struct Waiting {
    pub(crate) commit: Commit,
    /// The commit as JSON, made before it is queued so that the batch does not wait for it.
    pub(crate) texts: Texts,
    /// The caller, which may have stopped waiting.
    pub(crate) reply: oneshot::Sender<Result<Appended, SessionError>>,
    /// Whether it was sent before and the answer was lost, so that it may already be committed.
    pub(crate) in_doubt: bool,
}

/// Takes the next batch from a queue. A batch must not hold the same event twice: a second one ends
/// the batch and is put into `left`, to begin the next.
pub(crate) fn next_batch(
    mut next: impl FnMut() -> Option<Waiting>,
    left: &mut Option<Waiting>,
) -> Vec<Waiting> {
    let (mut contents, mut waiting) = (Contents::default(), Vec::new());
    while waiting.len() < LARGEST_BATCH
        && let Some(one) = next()
    {
        if !contents.add(&one.commit) {
            *left = Some(one);
            break;
        }
        waiting.push(one);
    }
    waiting
}
