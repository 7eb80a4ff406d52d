//! Both layouts of a file keep the contract.

mod support;

use std::process::ExitCode;
use std::sync::Arc;

use sessile_conformance::Suite;
use support::{new_file, new_v1_file, open};

fn main() -> ExitCode {
    Suite::default()
        .with_store("new_file::", || async { Arc::new(open(&new_file()).await) as _ })
        .with_store("v1_file::", || async { Arc::new(open(&new_v1_file()).await) as _ })
        .run()
}
