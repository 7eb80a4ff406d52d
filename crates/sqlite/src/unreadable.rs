//! Finding JSON texts that cannot be represented as values, without parsing them.

/// Whether a JSON text may have a part that cannot be represented: a lone surrogate, a number
/// beyond the range of floats, or a nesting of more than 200 levels. One pass over the bytes, with
/// false positives but no false negatives.
pub(crate) fn may_be_unreadable(text: &str) -> bool {
    let mut bytes = text.bytes();
    let (mut depth, mut digits, mut power) = (0_usize, 0_usize, false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if has_surrogate(&mut bytes) => return true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (digits, power) = match byte {
            b'0'..=b'9' => (digits + 1, power),
            b'e' | b'E' => (0, true),
            b'+' => (0, power),
            _ => (0, false),
        };
        if depth > 200 || digits > 200 || (power && digits > 2) {
            return true;
        }
    }
    false
}

/// Whether a string, read up to its end, has an escape of a surrogate.
fn has_surrogate(bytes: &mut std::str::Bytes<'_>) -> bool {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return false,
            b'\\' if bytes.next() == Some(b'u') => {
                let code = [bytes.next(), bytes.next()];
                if matches!(code, [Some(b'd' | b'D'), Some(b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F')]) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::state;

    #[test]
    fn a_text_that_no_value_can_hold_may_be_unreadable() {
        let deep = "[".repeat(201) + &"]".repeat(201);
        let large = "9".repeat(400);
        for value in [
            r#""\ud83d""#,
            r#"{"\uDFFF": 1}"#,
            "1e999",
            "1E+400",
            &deep,
            &large,
            &format!("[\"]]]\", {deep}]"),
        ] {
            let text = format!(r#"{{"a": 1, "b": {value}}}"#);
            assert!(state(&text).is_err(), "{text}");
            assert!(may_be_unreadable(&text), "{text}");
        }
    }

    #[test]
    fn a_usual_text_is_not() {
        let ids = "8e123e456".repeat(50);
        for value in ["1", "1.5e-300", r#""\u00e9 \"quoted\" \\""#, "[[[]]]", "12345678901234567890", "1e22"]
        {
            let text = format!(r#"{{"id": "{ids}", "value": {value}}}"#);
            assert!(state(&text).is_ok() && !may_be_unreadable(&text), "{text}");
        }
    }
}
