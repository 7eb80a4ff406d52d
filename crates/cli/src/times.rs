//! Times and ages in the form that people write.

use std::str::FromStr;
use std::time::Duration;

use time::OffsetDateTime;
use time::macros::format_description;

/// A time in Unix seconds, to the second, in UTC.
pub(crate) fn shown(time: f64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");
    let parsed = OffsetDateTime::from_unix_timestamp(time as i64);
    match parsed.map(|parsed| parsed.format(format)) {
        Ok(Ok(text)) => text,
        _ => time.to_string(),
    }
}

/// How old something is: a whole number and `s`, `m`, `h`, `d` or `w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an age; write 90s, 15m, 12h, 30d or 4w");
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return Err(wrong()),
        };
        let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
        let age = number.checked_mul(seconds).filter(|age| *age > 0).ok_or_else(wrong)?;
        Ok(Self(Duration::from_secs(age)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_unit() {
        assert_eq!("2d".parse(), Ok(Age(Duration::from_secs(172_800))));
        for wrong in
            ["", "d", "5", "-5d", "5 d", "0s", "5y", "99999999999999999999d", "18446744073709551615w", "5ü"]
        {
            assert!(wrong.parse::<Age>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(shown(1_700_000_000.75), "2023-11-14 22:13:20Z");
        assert_eq!(shown(f64::MAX), f64::MAX.to_string());
    }
}
