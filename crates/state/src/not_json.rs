/// The part of a value that has no JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", self.place())]
pub struct NotJson {
    /// Where in the value, as `.field[0]`; empty for the value itself.
    path: String,
    /// What is wrong there, and what to do instead.
    reason: String,
}

impl NotJson {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    /// Prepends the path segment of the enclosing value, as the error propagates outwards.
    pub(crate) fn inside(mut self, place: &str) -> Self {
        self.path.insert_str(0, place);
        self
    }

    /// Where in the value the problem is, as `.field[0]`; empty for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// At most 100 characters of the path.
    fn place(&self) -> String {
        match self.path.char_indices().nth(100) {
            _ if self.path.is_empty() => String::new(),
            Some((end, _)) => format!(" (at {}…)", &self.path[..end]),
            None => format!(" (at {})", self.path),
        }
    }
}

impl serde::ser::Error for NotJson {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
