//! What is told to people beside the data, on standard error.

use std::fmt::Arguments;
use std::io::{IsTerminal, Write, stderr};

/// Tells something. If nobody listens, there is nobody to tell that to.
pub(crate) fn say(text: Arguments<'_>) {
    drop(writeln!(stderr(), "{text}"));
}

/// Whether colours may be used in what goes to a terminal: not if `NO_COLOR` is set.
pub(crate) fn colours_on(terminal: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && terminal.is_terminal()
}

/// Text that cannot drive a terminal: what is stored may hold anything, also escape sequences.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().flat_map(escaped).collect()
}

/// [`harmless`], with line breaks and tabs left as they are.
pub(crate) fn harmless_lines(text: &str) -> String {
    let kept = |character| matches!(character, '\n' | '\t');
    let each = text.chars().map(|character| match character {
        character if kept(character) => character.to_string(),
        character => escaped(character).collect(),
    });
    each.collect()
}

fn escaped(character: char) -> Box<dyn Iterator<Item = char>> {
    // Beside control characters, those that reorder or hide the text around them.
    let hiding = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if character.is_control() || hiding {
        Box::new(character.escape_default())
    } else {
        Box::new(std::iter::once(character))
    }
}
