//! ADK-Rust, doing what the benchmarks ask of everyone.
//!
//! - `adk-rust-peer serve memory|sqlite:FILE PORT` serves the agent `echo`, which says "ok";
//! - `adk-rust-peer turn TURNS` prints the nanoseconds of one turn with a tool call, the median of
//!   all.

mod agent;
mod serve;
mod turn;

use anyhow::bail;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", store, port] => serve::serve(store, port.parse()?).await,
        ["turn", turns] => turn::turns(turns.parse()?).await,
        _ => bail!("usage: adk-rust-peer serve memory|sqlite:FILE PORT | turn TURNS"),
    }
}
