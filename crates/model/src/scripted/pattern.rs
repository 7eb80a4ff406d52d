/// A text with placeholders `{name}` that match any text.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Name(String),
}

impl Pattern {
    /// Parses a pattern; the error says what is wrong with it.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("the pattern {pattern:?} {what}"));
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some(open) = rest.find('{') {
            if !rest[..open].trim().is_empty() {
                pieces.push(Piece::Text(rest[..open].trim().to_owned()));
            }
            let Some(close) = rest[open..].find('}') else { return wrong("has a \"{\" without \"}\"") };
            let name = rest[open + 1..open + close].trim();
            if name.is_empty() {
                return wrong("has braces without a name");
            }
            if matches!(pieces.last(), Some(Piece::Name(_))) {
                return wrong("has two names with nothing between them");
            }
            pieces.push(Piece::Name(name.to_owned()));
            rest = &rest[open + close + 1..];
        }
        if !rest.trim().is_empty() {
            pieces.push(Piece::Text(rest.trim().to_owned()));
        }
        if pieces.is_empty() {
            return wrong("is empty");
        }
        Ok(Self(pieces))
    }

    /// What the placeholders match in this text; `None` if the text does not fit.
    pub(super) fn captures(&self, text: &str) -> Option<Vec<(String, String)>> {
        let Some(Piece::Text(first)) = self.0.first() else { return follow(&self.0, text) };
        occurrences(first, text).find_map(|end| follow(&self.0[1..], &text[end..]))
    }
}

/// Matches pieces against a text from its beginning.
fn follow(pieces: &[Piece], text: &str) -> Option<Vec<(String, String)>> {
    let Some((Piece::Name(name), after)) = pieces.split_first() else { return Some(Vec::new()) };
    let fits = |value: &str, rest: &str, after: &[Piece]| {
        let value = value.trim();
        if value.is_empty() {
            return None;
        }
        let mut captures = follow(after, rest)?;
        captures.push((name.clone(), value.to_owned()));
        Some(captures)
    };
    match after.split_first() {
        Some((Piece::Text(next), after)) => {
            let end = occurrences(next, text).next()?;
            fits(&text[..end - next.len()], &text[end..], after)
        }
        _ => fits(text.split(['.', '!', '?', ',', ';', '\n']).next()?, "", &[]),
    }
}

/// The ends of all occurrences of the words in the text, as whole words.
fn occurrences<'a>(words: &'a str, text: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |inside: Option<char>, outside: Option<char>| {
        inside.is_some_and(char::is_alphanumeric) && outside.is_some_and(char::is_alphanumeric)
    };
    text.char_indices().filter_map(move |(start, _)| {
        let end = start + words.len();
        let found = text.get(start..end)?.eq_ignore_ascii_case(words);
        let apart = !joins(words.chars().next(), text[..start].chars().next_back())
            && !joins(words.chars().next_back(), text.get(end..)?.chars().next());
        (found && apart).then_some(end)
    })
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn captures(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
        Pattern::parse(pattern).unwrap().captures(text)
    }

    fn one(name: &str, value: &str) -> Option<Vec<(String, String)>> {
        Some(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn words_fit_whole_and_in_any_case() {
        assert_eq!(captures("hi", "Oh, HI there"), Some(vec![]));
        assert_eq!(captures("hi", "this"), None);
        assert_eq!(captures("hi", "this is hi"), Some(vec![]));
        assert_eq!(captures("über", "x über"), Some(vec![]));
    }

    #[test]
    fn a_name_stands_for_text_up_to_what_follows_or_the_end_of_the_sentence() {
        assert_eq!(
            captures("my name is {name}", "Hi! My name is Ada Lovelace. And yours?"),
            one("name", "Ada Lovelace")
        );
        assert_eq!(captures("add {item} to", "please add two books to my cart"), one("item", "two books"));
        assert_eq!(captures("{item} please", "bread please"), one("item", "bread"));
        assert_eq!(captures("my name is {name}", "my name is "), None);
        assert_eq!(captures("is {name}", "it is. No, it is Zoë"), one("name", "Zoë"));
        assert_eq!(captures("name: {name}.", "The name: . You are kind."), None);
    }

    #[test]
    fn what_is_not_a_pattern_is_refused() {
        for (pattern, error) in [
            (" ", "the pattern \" \" is empty"),
            ("a {b", "the pattern \"a {b\" has a \"{\" without \"}\""),
            ("a {}", "the pattern \"a {}\" has braces without a name"),
            ("{a} {b}", "the pattern \"{a} {b}\" has two names with nothing between them"),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap_err(), error);
        }
    }
}
