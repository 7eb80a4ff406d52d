//! PostgreSQL keeps the contract, on plain and on partitioned tables.

#[path = "support/partitioned.rs"]
mod partitioned;
mod support;

use std::process::ExitCode;
use std::sync::Arc;

use sessile_conformance::Suite;

fn main() -> ExitCode {
    Suite::default()
        .with_store("plain::", || async {
            let url = support::new_schema().await;
            Arc::new(support::connect(&format!("{url}&pool_size=6")).await) as _
        })
        .with_store("partitioned::", || async {
            let url = partitioned::new_partitioned_schema().await;
            Arc::new(support::connect(&format!("{url}&pool_size=6")).await) as _
        })
        .run()
}
