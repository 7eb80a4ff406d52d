//! Runs the same operations on Sessile and its peers, side by side, and prints the ratios.
//!
//! `cargo run --release --manifest-path bench/peers/Cargo.toml [-- WORD]`; with a word, only the
//! rows whose name contains it.

mod measure;
mod state;

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    println!("| state operation | Sessile | gemini-adk-rs 0.6.0 | gemini-adk-rs 4.0.0 |");
    println!("|---|---|---|---|");
    for row in state::rows().into_iter().filter(|row| row.name.contains(&word)) {
        println!("{}", row.measure());
    }
}
