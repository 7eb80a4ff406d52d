//! The command `sessile`.

fn main() {}
