//! One pass from left to right; its cost grows with the text alone.

use unicode_ident::{is_xid_continue, is_xid_start};

use super::{Ignored, Piece, Placeholder, PlaceholderKind, Position};
use crate::scope::Scope;

const BRACES: [char; 2] = ['{', '}'];

/// The pieces of a text, and what looked like a placeholder but is not one.
pub(super) fn parse(source: &str) -> (Vec<Piece>, Vec<Ignored>) {
    let mut parser = Parser {
        source,
        place: 0,
        counted: Position { offset: 0, line: 1, column: 1 },
        open: Vec::new(),
        text: String::new(),
        pieces: Vec::new(),
        ignored: Vec::new(),
    };
    while parser.step() {}
    parser.end_text();
    (parser.pieces, parser.ignored)
}

struct Parser<'a> {
    source: &'a str,
    /// Bytes parsed so far.
    place: usize,
    /// The last position that was asked for, so that lines are counted once.
    counted: Position,
    /// The literal braces that are open, to know which `}}` is an escape and which closes two.
    open: Vec<Opened>,
    text: String,
    pieces: Vec<Piece>,
    ignored: Vec<Ignored>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// By `{`, closed by `}`.
    Single,
    /// By `{{`, closed by `}}`.
    Double,
}

impl Parser<'_> {
    /// Takes the text up to the next brace, and the brace. False at the end.
    fn step(&mut self) -> bool {
        let rest = &self.source[self.place..];
        let Some(brace) = rest.find(BRACES) else {
            self.take_text(rest.len());
            return false;
        };
        self.take_text(brace);
        let rest = &self.source[self.place..];
        if rest.starts_with('}') {
            self.close(rest.starts_with("}}"));
        } else if self.source[..self.place].ends_with(['$', '\\']) {
            let run = rest.len() - rest.trim_start_matches('{').len();
            self.open.extend(std::iter::repeat_n(Opened::Single, run));
            self.take_text(run);
        } else if rest.starts_with("{{") {
            self.open.push(Opened::Double);
            self.take_text(1);
            self.place += 1;
        } else {
            self.open_single(rest);
        }
        true
    }

    /// A `}`, or two.
    fn close(&mut self, double: bool) {
        let escape = double && self.open.last() != Some(&Opened::Single);
        if escape || self.open.last() == Some(&Opened::Single) {
            self.open.pop();
        }
        self.take_text(1);
        self.place += usize::from(escape);
    }

    /// A `{` alone: the start of a placeholder, or just a brace.
    fn open_single(&mut self, rest: &str) {
        let inner = rest[1..].split_once(BRACES).map(|(inner, _)| inner);
        let closed = inner.filter(|inner| rest[1 + inner.len()..].starts_with('}'));
        if let Some(inner) = closed {
            let position = self.position();
            if let Some((kind, name, optional)) = classify(inner) {
                self.end_text();
                let placeholder = Placeholder { kind, name: name.to_owned(), optional, position };
                self.pieces.push(Piece::Placeholder(placeholder));
                self.place += inner.len() + 2;
                return;
            }
            self.ignored.push(Ignored { text: inner.to_owned(), position });
        }
        self.open.push(Opened::Single);
        self.take_text(1);
    }

    fn take_text(&mut self, length: usize) {
        self.text.push_str(&self.source[self.place..self.place + length]);
        self.place += length;
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    fn position(&mut self) -> Position {
        let mut position = self.counted;
        for character in self.source[position.offset..self.place].chars() {
            if character == '\n' {
                position.line += 1;
                position.column = 1;
            } else {
                position.column += 1;
            }
        }
        position.offset = self.place;
        self.counted = position;
        position
    }
}

/// What the text between two braces names, and whether it may be absent.
fn classify(inner: &str) -> Option<(PlaceholderKind, &str, bool)> {
    let inner = inner.trim();
    let (name, optional) = match inner.strip_suffix('?') {
        Some(name) => (name, true),
        None => (inner, false),
    };
    if let Some(file) = name.strip_prefix("artifact.") {
        return (!file.is_empty()).then_some((PlaceholderKind::Artifact, file, optional));
    }
    is_identifier(Scope::of(name).1).then_some((PlaceholderKind::Key, name, optional))
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || is_xid_start(first))
        && characters.all(is_xid_continue)
}
