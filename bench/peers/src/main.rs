//! Runs the same operations on Sessile and its peers, side by side, and prints the ratios.
//!
//! `cargo run --release --manifest-path bench/peers/Cargo.toml [-- [live] [WORD]]`: the operations
//! of `State`, or those of a live session; with a word, only the rows whose name contains it.

mod live;
mod measure;
mod state;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let live = arguments.next_if(|argument| argument == "live").is_some();
    let word = arguments.next().unwrap_or_default();
    if live {
        println!("| live session | Sessile | gemini-adk-rs 4.0.0 |");
        println!("|---|---|---|");
        for (_, row) in live::ROWS.iter().filter(|(name, _)| name.contains(&word)) {
            println!("{}", row().measure());
        }
    } else {
        println!("| state operation | Sessile | gemini-adk-rs 0.6.0 | gemini-adk-rs 4.0.0 |");
        println!("|---|---|---|---|");
        for row in state::rows().into_iter().filter(|row| row.name.contains(&word)) {
            println!("{}", row.measure());
        }
    }
}
