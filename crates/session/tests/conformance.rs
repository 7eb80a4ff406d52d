//! The memory store keeps the contract.

use std::process::ExitCode;
use std::sync::Arc;

use sessile_session::MemoryStore;

fn main() -> ExitCode {
    sessile_conformance::run(|| async { Arc::new(MemoryStore::new()) as _ })
}
