//! google-adk's two layouts of a SQLite file: the same tables, with times written differently.

use rusqlite::types::{Value, ValueRef};
use sessile_session::next_update_time;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// How a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `SqliteSessionService`: times are Unix seconds, as numbers.
    Adk,
    /// `DatabaseSessionService`, version 1: times are texts in UTC, with microseconds.
    V1,
}

const TEXT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:6]");
const TEXT_WITHOUT_FRACTION: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

impl Layout {
    /// The time, rounded to the precision of this layout.
    pub(crate) fn round(self, time: f64) -> f64 {
        match self {
            Self::Adk => time,
            Self::V1 => microseconds(time) as f64 / 1e6,
        }
    }

    /// The time of a session's last change after an event, see [`next_update_time`]. Times are
    /// rounded before they are compared, to the precision of this layout.
    pub(crate) fn next_update_time(self, before: f64, event: f64) -> f64 {
        self.round(next_update_time(before, self.round(event)))
    }

    /// The time as a column's value.
    pub(crate) fn write_time(self, time: f64) -> Result<Value, time::Error> {
        match self {
            Self::Adk => Ok(Value::Real(time)),
            Self::V1 => {
                let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(microseconds(time)) * 1000)?;
                Ok(Value::Text(at.format(TEXT)?))
            }
        }
    }

    /// The time of a column's value.
    pub(crate) fn read_time(self, value: ValueRef<'_>) -> Result<f64, String> {
        match value {
            ValueRef::Real(time) => Ok(time),
            ValueRef::Integer(time) => Ok(time as f64),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
                let parsed = PrimitiveDateTime::parse(text, TEXT)
                    .or_else(|_| PrimitiveDateTime::parse(text, TEXT_WITHOUT_FRACTION))
                    .map_err(|error| format!("{text:?} is not a time: {error}"))?;
                let nanoseconds = parsed.assume_offset(UtcOffset::UTC).unix_timestamp_nanos();
                Ok((nanoseconds / 1000) as f64 / 1e6)
            }
            ValueRef::Null | ValueRef::Blob(_) => Err("it is not a time".to_owned()),
        }
    }

    /// The column by which google-adk orders events of the same time.
    pub(crate) fn tie(self) -> &'static str {
        match self {
            Self::Adk => "rowid",
            Self::V1 => "id",
        }
    }
}

/// Whole microseconds, rounded as google-adk does.
fn microseconds(time: f64) -> i64 {
    (time * 1e6).round_ties_even() as i64
}
