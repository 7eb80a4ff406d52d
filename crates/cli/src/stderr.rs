//! Messages for people, on standard error: standard output is for data.

use std::fmt::Arguments;
use std::io::{IsTerminal, Write, stderr};

/// Prints a line. A failure is ignored: there is no other place to report it.
pub(crate) fn say(text: Arguments<'_>) {
    drop(writeln!(stderr(), "{text}"));
}

/// Whether output may be coloured: only on a terminal, and not if `NO_COLOR` is set.
pub(crate) fn colours_on(terminal: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && terminal.is_terminal()
}

/// Escapes control characters: stored text is untrusted, and may hold escape sequences that would
/// drive the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().flat_map(escaped).collect()
}

/// As [`harmless`], but keeps line breaks and tabs.
pub(crate) fn harmless_lines(text: &str) -> String {
    let kept = |character| matches!(character, '\n' | '\t');
    let each = text.chars().map(|character| match character {
        character if kept(character) => character.to_string(),
        character => escaped(character).collect(),
    });
    each.collect()
}

fn escaped(character: char) -> Box<dyn Iterator<Item = char>> {
    // Also characters that reorder or hide the text around them.
    let hiding = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if character.is_control() || hiding {
        Box::new(character.escape_default())
    } else {
        Box::new(std::iter::once(character))
    }
}
