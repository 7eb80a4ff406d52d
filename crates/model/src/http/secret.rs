use reqwest::header::HeaderValue;

/// A secret text. It has no `Debug`, and errors and logs replace it.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// The value of a header; `None` if the secret contains characters that are not allowed in one.
    pub(super) fn header(&self, before: &str) -> Option<HeaderValue> {
        let Ok(mut value) = HeaderValue::try_from(format!("{before}{}", self.0)) else { return None };
        value.set_sensitive(true);
        Some(value)
    }

    /// The text without this secret.
    pub(super) fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[secret]") }
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}
