//! PostgreSQL keeps the contract.

mod support;

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    sessile_conformance::run(|| async {
        let url = support::new_schema().await;
        Arc::new(support::connect(&format!("{url}&pool_size=6")).await) as _
    })
}
