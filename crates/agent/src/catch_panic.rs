//! Panics of the application's code.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// Runs code of the application; if it panics, the message is the error. What it was changing is
/// dropped with it or is behind locks that ignore poisoning, so no other code sees it half done.
pub(crate) async fn catch_panic<T>(code: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(code).catch_unwind().await.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
