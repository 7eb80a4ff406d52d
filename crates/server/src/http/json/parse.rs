//! A strict parser for untrusted JSON.
//!
//! Besides invalid JSON, it refuses documents that would be accepted and read back as something
//! else: a key given twice, half of a surrogate pair, a number beyond an `f64`, nesting
//! deeper than a limit. Every value keeps its text, so that no digit is lost on the way to a store.

use std::borrow::Cow;
use std::collections::HashSet;

/// A value and the text it was read from.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) raw: &'a str,
    pub(crate) value: Value<'a>,
}

/// The value of a text. A number is kept as its text, see [`Node::raw`].
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Flag(bool),
    Number,
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Why a text was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// How many characters were understood.
    pub(crate) position: usize,
    pub(crate) message: String,
}

/// Reads a whole text.
pub(crate) fn parse(text: &str, depth: usize) -> Result<Node<'_>, Malformed> {
    let mut reader = Reader { text, at: 0, depth };
    reader.space();
    let node = reader.node(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.error("Extra data"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn node(&mut self, depth: usize) -> Result<Node<'a>, Malformed> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.list(depth + 1)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ if self.take("null") => Value::Null,
            _ if self.take("true") => Value::Flag(true),
            _ if self.take("false") => Value::Flag(false),
            _ => return Err(self.error("Expecting value")),
        };
        Ok(Node { raw: &self.text[start..self.at], value })
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, Malformed> {
        self.enter(depth)?;
        let mut entries: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        let mut names = HashSet::new();
        if self.closes(b'}') {
            return Ok(Value::Object(entries));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("Expecting property name enclosed in double quotes"));
            }
            let name = self.string()?;
            let known = match entries.len() {
                0..8 => entries.iter().any(|(other, _)| *other == name),
                8 => {
                    names.extend(entries.iter().map(|(name, _)| name.clone()));
                    !names.insert(name.clone())
                }
                _ => !names.insert(name.clone()),
            };
            if known {
                self.at = start;
                return Err(self.error(&format!("The key {name:?} is given twice")));
            }
            self.space();
            if !self.take(":") {
                return Err(self.error("Expecting ':' delimiter"));
            }
            self.space();
            let node = self.node(depth)?;
            entries.push((name, node));
            if self.closes(b'}') {
                return Ok(Value::Object(entries));
            }
            self.comma()?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, Malformed> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(Value::List(items));
        }
        loop {
            self.space();
            items.push(self.node(depth)?);
            if self.closes(b']') {
                return Ok(Value::List(items));
            }
            self.comma()?;
        }
    }

    fn number(&mut self) -> Result<Value<'a>, Malformed> {
        let start = self.at;
        let rest = self.text[start..].bytes();
        self.at +=
            rest.take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')).count();
        let text = &self.text[start..self.at];
        if is_short_integer(text) {
            return Ok(Value::Number);
        }
        let problem = match serde_json::from_str::<&serde_json::value::RawValue>(text) {
            Err(_) => "Expecting value",
            Ok(_) if !text.parse::<f64>().is_ok_and(f64::is_finite) => "The number is beyond a 64-bit float",
            Ok(_) => return Ok(Value::Number),
        };
        self.at = start;
        Err(self.error(problem))
    }

    /// A text without its quotes and escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let (mut end, mut escaped) = (start + 1, false);
        loop {
            end += bytes.get(end..).map_or(0, plain_length);
            match bytes.get(end) {
                None => return Err(self.error("Unterminated string starting at")),
                Some(b'"') => break,
                Some(b'\\') => (end, escaped) = (end + 2, true),
                // Plain bytes end at a quote, a backslash or a control character.
                Some(_) => {
                    self.at = end;
                    return Err(self.error("Invalid control character at"));
                }
            }
        }
        self.at = end + 1;
        if !escaped {
            return Ok(Cow::Borrowed(&self.text[start + 1..end]));
        }
        serde_json::from_str(&self.text[start..self.at]).map(Cow::Owned).map_err(|error| {
            self.at = start;
            let what = if error.to_string().contains("surrogate") || error.to_string().contains("hex escape")
            {
                "Half of a surrogate pair, which is not a character"
            } else {
                "Invalid \\escape"
            };
            self.error(what)
        })
    }

    fn enter(&mut self, depth: usize) -> Result<(), Malformed> {
        if depth > self.depth {
            return Err(self.error(&format!("Nested deeper than {} levels", self.depth)));
        }
        self.at += 1;
        Ok(())
    }

    fn closes(&mut self, bracket: u8) -> bool {
        self.space();
        let closes = self.peek() == Some(bracket);
        self.at += usize::from(closes);
        closes
    }

    fn comma(&mut self) -> Result<(), Malformed> {
        if self.take(",") { Ok(()) } else { Err(self.error("Expecting ',' delimiter")) }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, message: &str) -> Malformed {
        let position = self.text.bytes().take(self.at).filter(|byte| byte & 0xC0 != 0x80).count();
        Malformed { position, message: message.to_owned() }
    }
}

/// Whether a number consists of few digits only, as nearly all do. Then it is valid JSON and fits
/// into an `i64`, and needs no further check.
fn is_short_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty(),
        digits => digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit),
    }
}

/// How many bytes of a string come before a quote, a backslash or a control character. Strings are
/// most of a body, so eight bytes are examined at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Whether a byte is less than `n`, which is at most 0x80; bytes of 0x80 and more are not.
    let has_less = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH != 0;
    let has = |word: u64, byte: u8| has_less(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_ne_bytes(*word);
        if has_less(word, 0x20) || has(word, b'"') || has(word, b'\\') {
            return length + special(&bytes[length..]);
        }
        length += 8;
    }
    length + special(rest)
}

/// The index of the first byte that a string cannot hold unescaped; the length, if there is none.
fn special(bytes: &[u8]) -> usize {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.iter().position(is_special).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{parse, plain_length, special};

    #[test]
    fn plain_bytes_are_counted_as_one_by_one() {
        let texts = ["", "plain", "é and 😀 and \u{7f}\u{80}\u{a2}\u{dc}", "0123456789abcdef!~ ^[]#"];
        for text in texts {
            for place in 0..=text.len() {
                for mark in (0..=u8::MAX).map(|byte| vec![byte]).chain([Vec::new(), b"\"\\".to_vec()]) {
                    let bytes = [&text.as_bytes()[..place], &mark, &text.as_bytes()[place..]].concat();
                    assert_eq!(plain_length(&bytes), special(&bytes), "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_of_all_lengths_are_numbers() {
        for text in
            ["0", "-0", "7", "-12", "999999999999999999", "1234567890123456789", "1.5", "-1e-3", "0.0"]
        {
            assert_eq!(parse(text, 5).expect(text).raw, text);
        }
        for text in ["-", "00", "-01", "01", "1.", ".5", "+1", "1e", "--1", "1-1", "0123456789"] {
            parse(text, 5).expect_err(text);
        }
    }

    fn message(text: &str) -> String {
        let error = parse(text, 5).expect_err(text);
        format!("{}: {}", error.position, error.message)
    }

    #[test]
    fn what_is_not_json_is_refused_where_it_goes_wrong() {
        let cases = [
            ("", "0: Expecting value"),
            ("{\"a\":", "5: Expecting value"),
            ("{\"a\":1} x", "8: Extra data"),
            ("{\"a\":1,}", "7: Expecting property name enclosed in double quotes"),
            ("{\"a\" 1}", "5: Expecting ':' delimiter"),
            ("[1 2]", "3: Expecting ',' delimiter"),
            ("[\"é\", nope]", "6: Expecting value"),
            ("\"a", "0: Unterminated string starting at"),
            ("\"a\\", "0: Unterminated string starting at"),
            ("\"a\u{1}\"", "2: Invalid control character at"),
            ("\"\\x\"", "0: Invalid \\escape"),
            ("[01]", "1: Expecting value"),
            ("[-]", "1: Expecting value"),
        ];
        for (text, expected) in cases {
            assert_eq!(message(text), expected, "{text}");
        }
    }

    #[test]
    fn what_would_be_read_back_as_something_else_is_refused() {
        assert_eq!(message(r#"{"a":1,"a":2}"#), "7: The key \"a\" is given twice");
        assert_eq!(message(r#"{"a":1,"\u0061":2}"#), "7: The key \"a\" is given twice");
        assert_eq!(message(r#"["\ud800"]"#), "1: Half of a surrogate pair, which is not a character");
        assert_eq!(message(r#"["\udc00"]"#), "1: Half of a surrogate pair, which is not a character");
        assert_eq!(message("[1e999]"), "1: The number is beyond a 64-bit float");
        assert_eq!(message("[NaN]"), "1: Expecting value");
        assert_eq!(message("[[[[[[1]]]]]]"), "5: Nested deeper than 5 levels");
        let many: Vec<String> = (0..20).map(|i| format!("\"k{i}\":1")).collect();
        let text = format!("{{{},\"k7\":2}}", many.join(","));
        assert!(message(&text).ends_with("The key \"k7\" is given twice"));
    }

    #[test]
    fn a_value_keeps_its_text() {
        let text = r#" {"n": 1.0, "big": 123456789012345678901234567890, "e": "\ud83d\ude00"} "#;
        let node = parse(text, 5).unwrap();
        let super::Value::Object(entries) = node.value else { panic!("an object") };
        assert_eq!(entries[0].1.raw, "1.0");
        assert_eq!(entries[1].1.raw, "123456789012345678901234567890");
        assert!(matches!(&entries[2].1.value, super::Value::Text(text) if text == "😀"));
    }
}
