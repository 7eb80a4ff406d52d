//! The contract of a store, as tests.
//!
//! Every store runs all cases, each on a fresh store of its own, from a test without harness:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use sessile_session::MemoryStore;
//! // [[test]] name = "conformance", harness = false
//! fn main() -> std::process::ExitCode {
//!     sessile_conformance::run(|| async { Arc::new(MemoryStore::new()) as _ })
//! }
//! ```
//!
//! To add a case, write an `async fn` in the file of its subject and name it in that file's list. A
//! case that is in no list is dead code, and the lints fail.

#![expect(clippy::unwrap_used, reason = "a case panics if the contract is broken")]

mod cases;
mod failing_store;
pub mod histories;
pub mod tables;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use sessile_session::{SessionService, Store};

pub use failing_store::{Between, Call};

/// Runs all cases on one kind of store; `new_store` makes the fresh store of each.
pub fn run<F, Fut>(new_store: F) -> ExitCode
where
    F: Fn() -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Arc<dyn Store>> + Send,
{
    Suite::default().with_store("", new_store).run()
}

/// All cases, on several kinds of store.
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite").field("cases", &self.trials.len()).finish()
    }
}

impl Suite {
    /// Adds all cases on one more kind of store, their names after `label`.
    #[must_use]
    pub fn with_store<F, Fut>(mut self, label: &str, new_store: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Arc<dyn Store>> + Send,
    {
        self.trials.extend(cases::all().map(|(name, case)| {
            let new_store = new_store.clone();
            Trial::test(format!("{label}{name}"), move || {
                runtime().block_on(async move { case(SessionService::over(new_store().await)).await });
                Ok(())
            })
        }));
        self
    }

    /// Runs the cases that the command line asks for.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

/// A case: it panics if the store breaks the contract.
type Case = fn(SessionService) -> Pin<Box<dyn Future<Output = ()> + Send>>;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime for the test starts")
}
