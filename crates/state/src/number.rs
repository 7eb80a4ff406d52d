//! Arithmetic on JSON numbers that gives the same result in every store: integers are exact over
//! the range of `i64` and `u64`, everything else is a 64-bit float.

use std::cmp::Ordering;

use serde_json::Number;

use crate::not_json::NotJson;

/// A number that can be added to a stored one: every integer of up to 64 bits, and floats.
pub trait Addend {
    /// The number as JSON.
    ///
    /// # Errors
    ///
    /// [`NotJson`] if it is NaN or infinite.
    fn to_number(self) -> Result<Number, NotJson>;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Addend for $type {
            fn to_number(self) -> Result<Number, NotJson> {
                Ok(Number::from(self))
            }
        })*
    };
}

integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl Addend for f64 {
    fn to_number(self) -> Result<Number, NotJson> {
        Number::from_f64(self).ok_or_else(|| NotJson::new(format!("{self} has no JSON form")))
    }
}

impl Addend for f32 {
    fn to_number(self) -> Result<Number, NotJson> {
        f64::from(self).to_number()
    }
}

impl Addend for Number {
    fn to_number(self) -> Result<Number, NotJson> {
        Ok(self)
    }
}

/// A result that the named range of numbers cannot hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange(pub(crate) &'static str);

/// The sum of two numbers.
pub(crate) fn add(one: &Number, other: &Number) -> Result<Number, OutOfRange> {
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        let sum = one + other;
        let number = i64::try_from(sum).map(Number::from).or_else(|_| u64::try_from(sum).map(Number::from));
        return number.map_err(|_| OutOfRange("64-bit integers"));
    }
    let sum = float(one) + float(other);
    Number::from_f64(sum).ok_or(OutOfRange("64-bit floats"))
}

/// What must be added to `from` to get `to`; `None` if it is not a 64-bit number.
pub(crate) fn difference(from: &Number, to: &Number) -> Option<Number> {
    if let (Some(from), Some(to)) = (integer(from), integer(to)) {
        let by = to - from;
        return i64::try_from(by).map(Number::from).or_else(|_| u64::try_from(by).map(Number::from)).ok();
    }
    Number::from_f64(float(to) - float(from))
}

/// The sum of two integers, if it is a 64-bit integer too.
pub(crate) fn add_integers(one: &Number, other: &Number) -> Option<Number> {
    integer(one)?;
    integer(other)?;
    add(one, other).ok()
}

/// Compares two numbers by value, without rounding either.
pub(crate) fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => compare_to_float(one, float(other)),
        (None, Some(other)) => compare_to_float(other, float(one)).reverse(),
        (None, None) => float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal),
    }
}

/// The larger of two bounds.
pub(crate) fn larger(one: Option<Number>, other: Option<Number>) -> Option<Number> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if compare(&one, &other).is_lt() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The smaller of two bounds.
pub(crate) fn smaller(one: Option<Number>, other: Option<Number>) -> Option<Number> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if compare(&one, &other).is_gt() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Compares an integer of 65 bits with a float. The float's whole part is exact as an `i128` where
/// it matters: beyond that range its sign decides.
fn compare_to_float(integer: i128, float: f64) -> Ordering {
    const BEYOND: f64 = 36_893_488_147_419_103_232.0; // 2 to the power of 65
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float <= -BEYOND {
        return Ordering::Greater;
    }
    let whole = float.floor();
    let fraction = if float > whole { Ordering::Less } else { Ordering::Equal };
    integer.cmp(&(whole as i128)).then(fraction)
}

pub(crate) fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Every JSON number that was parsed has a finite float.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).expect("a number")
    }

    #[test]
    fn integers_are_exact_to_the_ends_of_their_range_and_no_further() {
        let sum = |one: &str, other: &str| add(&number(one), &number(other)).map(|sum| sum.to_string());
        assert_eq!(sum("9223372036854775807", "1").as_deref(), Ok("9223372036854775808"));
        assert_eq!(sum("18446744073709551614", "1").as_deref(), Ok("18446744073709551615"));
        assert_eq!(sum("18446744073709551615", "-9223372036854775808").as_deref(), Ok("9223372036854775807"));
        assert!(sum("18446744073709551615", "1").is_err());
        assert!(sum("-9223372036854775808", "-1").is_err());
    }

    #[test]
    fn a_fraction_on_either_side_makes_it_a_float() {
        let sum = |one: &str, other: &str| add(&number(one), &number(other)).map(|sum| sum.to_string());
        assert_eq!(sum("0.1", "0.2").as_deref(), Ok("0.30000000000000004"));
        assert_eq!(sum("1", "0.5").as_deref(), Ok("1.5"));
        assert_eq!(sum("0.5", "0.5").as_deref(), Ok("1.0"));
        assert_eq!(sum("9007199254740993", "0.0").as_deref(), Ok("9007199254740992.0"));
        assert!(sum("1.7976931348623157e308", "1.7976931348623157e308").is_err());
    }

    #[test]
    fn numbers_are_compared_without_rounding() {
        for (one, other, order) in [
            ("1", "1.0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("-9223372036854775808", "-9223372036854775808.0", Ordering::Equal),
            ("18446744073709551615", "1e300", Ordering::Less),
            ("-1", "-1e300", Ordering::Greater),
            ("1", "1.5", Ordering::Less),
            ("-2", "-1.5", Ordering::Less),
            ("0.0", "-0.0", Ordering::Equal),
        ] {
            assert_eq!(compare(&number(one), &number(other)), order, "{one} and {other}");
            assert_eq!(compare(&number(other), &number(one)), order.reverse(), "{other} and {one}");
        }
    }
}
