//! Durations in the JSON of protobuf: `"30s"`, `"2.5s"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Reads an optional duration.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| {
        parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a duration like \"2.5s\"")))
    })
    .transpose()
}

fn parse(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_broken_seconds_are_read() {
        assert_eq!(parse("30s"), Some(Duration::from_secs(30)));
        assert_eq!(parse("2.5s"), Some(Duration::from_millis(2500)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "s", "5", "5m", "-1s", "NaNs", "infs", "1e40s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
