//! Words of a text, as google-adk finds them.

use std::collections::BTreeSet;

use sessile_session::Content;
use unicode_normalization::UnicodeNormalization;

/// The texts of a message, without the model's reasoning, in one line; empty if there are none.
pub(crate) fn text_of(content: &Content) -> String {
    let said = content.parts().iter().filter(|part| part.thought != Some(true));
    let texts = said.filter_map(|part| part.text.as_deref());
    let lines = texts.map(|text| text.replace('\n', " ").trim().to_owned()).filter(|text| !text.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The text in Unicode's composed form, so that all ways to write a character compare as equal.
pub(crate) fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// The words of a composed text, in lower case.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    runs(text).map(str::to_lowercase).collect()
}

/// The words that a composed text can be found by: each, and each piece of one that mixes Latin
/// letters with others. Japanese and Chinese are written without spaces, so 私はPythonを使う is one
/// word, and Python a piece of it.
pub(crate) fn findable(text: &str) -> BTreeSet<String> {
    let mut words = words(text);
    let pieces: Vec<String> = words.iter().flat_map(|word| pieces(word)).map(str::to_owned).collect();
    words.extend(pieces);
    words
}

/// A text with the pieces of its words separated by spaces, so that a tokenizer finds them; see
/// [`findable`].
pub(crate) fn spaced(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.split_whitespace().flat_map(pieces).collect::<Vec<_>>().join(" ")
}

/// Runs of letters, digits and underscores.
pub(crate) fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !is_word(character)).filter(|word| !word.is_empty())
}

/// Whether a character is part of a word.
fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The pieces of a word, split where Latin letters end or begin.
fn pieces(word: &str) -> Vec<&str> {
    if word.is_ascii() {
        return vec![word];
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut kind = None;
    for (place, character) in word.char_indices() {
        let latin = is_latin(character);
        if kind.is_some_and(|kind| kind != latin) {
            pieces.push(&word[start..place]);
            start = place;
        }
        kind = Some(latin);
    }
    pieces.push(&word[start..]);
    pieces
}

/// Whether it is a Latin letter; among ASCII, digits and the underscore count too.
fn is_latin(character: char) -> bool {
    const LATIN: [(char, char); 16] = [
        ('\u{c0}', '\u{d6}'),
        ('\u{d8}', '\u{f6}'),
        ('\u{f8}', '\u{2af}'),
        ('\u{1d00}', '\u{1d25}'),
        ('\u{1d62}', '\u{1d65}'),
        ('\u{1d6b}', '\u{1d77}'),
        ('\u{1d79}', '\u{1d9a}'),
        ('\u{1e00}', '\u{1eff}'),
        ('\u{2090}', '\u{209c}'),
        ('\u{2184}', '\u{2184}'),
        ('\u{2c60}', '\u{2c7f}'),
        ('\u{a722}', '\u{a787}'),
        ('\u{a78b}', '\u{a7ff}'),
        ('\u{ab30}', '\u{ab68}'),
        ('\u{fb00}', '\u{fb06}'),
        ('\u{1df00}', '\u{1df2a}'),
    ];
    if character.is_ascii() {
        return is_word(character);
    }
    LATIN.iter().any(|&(first, last)| (first..=last).contains(&character))
}
