/// A boolean in one of the spellings that ADK accepts in bodies and queries.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "t" | "y" | "yes" => Some(true),
        "false" | "0" | "off" | "f" | "n" | "no" => Some(false),
        _ => None,
    }
}
