use time::OffsetDateTime;

/// Unix seconds as Python's `isoformat` writes a time in UTC, to the microsecond; `None` if it
/// is out of range.
pub(crate) fn iso(seconds: f64) -> Option<String> {
    let microseconds = (seconds * 1e6).round();
    if !microseconds.is_finite() {
        return None;
    }
    // Beyond its range a float saturates, and then the calendar refuses it.
    let time = OffsetDateTime::from_unix_timestamp_nanos((microseconds as i128).saturating_mul(1000)).ok()?;
    let (date, clock) = (time.date(), time.time());
    let day = format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day());
    let fraction = match clock.microsecond() {
        0 => String::new(),
        microsecond => format!(".{microsecond:06}"),
    };
    Some(format!("{day}T{:02}:{:02}:{:02}{fraction}+00:00", clock.hour(), clock.minute(), clock.second()))
}

#[cfg(test)]
mod tests {
    use super::iso;

    #[test]
    fn times_are_written_as_python_writes_them() {
        assert_eq!(iso(0.0).as_deref(), Some("1970-01-01T00:00:00+00:00"));
        assert_eq!(iso(1_705_312_800.25).as_deref(), Some("2024-01-15T10:00:00.250000+00:00"));
        assert_eq!(iso(-0.5).as_deref(), Some("1969-12-31T23:59:59.500000+00:00"));
        assert_eq!(iso(1e300), None);
        assert_eq!(iso(f64::NAN), None);
    }
}
