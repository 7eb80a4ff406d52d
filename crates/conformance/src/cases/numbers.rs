//! Arithmetic and equality of numbers, which every store computes in the same way, wherever it
//! computes it.

use serde_json::Number;
use sessile_session::{SessionError, SessionService};
use sessile_state::{Operation, OperationError, SharedValue};

use super::{cases, changing, delta, empty, session, stored, user_scope, value};

cases!(
    integers_are_exact_to_the_ends_of_64_bits,
    integers_beyond_64_bits_are_refused,
    with_a_fraction_it_is_the_addition_of_floats,
    large_floats_stay_floats,
    a_float_stays_a_float,
    sums_beyond_the_largest_float_are_refused,
    bounds_are_inclusive_and_compared_by_value,
    many_small_additions_are_those_of_floats,
    union_compares_numbers_by_value,
    union_keeps_every_digit,
    union_of_fields_replaces_fields_whole,
    append_keeps_every_digit,
    shared_state_is_computed_alike_without_a_session,
);

const PREFIXES: [&str; 3] = ["", "user:", "app:"];

fn number(text: &str) -> Number {
    serde_json::from_str(text).expect("a number")
}

/// Makes an operation on a value, or on an absent one, in each scope; returns what is stored then.
/// All scopes must agree.
async fn operated(
    service: &SessionService,
    held: Option<&str>,
    operation: &Operation,
) -> Result<SharedValue, SessionError> {
    let made = match service.get(&super::key("s"), sessile_session::EventWindow::NONE).await.unwrap() {
        Some(made) => made,
        None => session(service, "s", empty()).await,
    };
    let mut results = Vec::new();
    for prefix in PREFIXES {
        let key = format!("{prefix}k");
        let prepare = changing(|delta| match held {
            Some(held) => delta.set(&key, value(held)),
            None => delta.remove(&key),
        });
        service.append_to(made.key(), prepare).await.unwrap();
        let appended =
            service.append_to(made.key(), changing(|delta| delta.operate(&key, operation.clone()))).await;
        let read = stored(service, made.key()).await;
        let now = read.state().get_raw(&key).cloned();
        results.push(match appended {
            Ok(_) => {
                let event = read.events().last().unwrap();
                let result = event.actions.state_delta.values().next().map(|(_, value)| value.clone());
                assert_eq!(result, now, "the event tells what is stored under {key}");
                Ok(now.expect("an operation leaves a value"))
            }
            Err(error) => {
                assert_eq!(now.map(|now| compact(&now)), held.map(str::to_owned), "{key} keeps its value");
                Err(error)
            }
        });
    }
    let texts: Vec<_> = results.iter().map(|result| result.as_ref().map(compact).map_err(drop)).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{operation:?} on {held:?}: {texts:?}");
    results.swap_remove(0)
}

/// A value's text; stores may put spaces between its parts.
fn compact(value: &SharedValue) -> String {
    value.to_string().replace(' ', "")
}

async fn sum(service: &SessionService, held: Option<&str>, by: &str) -> Result<SharedValue, SessionError> {
    operated(service, held, &Operation::add(number(by))).await
}

async fn integers_are_exact_to_the_ends_of_64_bits(service: SessionService) {
    for (held, by, expected) in [
        (Some("5"), "-7", "-2"),
        (Some("5"), "-5", "0"),
        (Some("9007199254740992"), "1", "9007199254740993"),
        (Some("9223372036854775807"), "1", "9223372036854775808"),
        (Some("18446744073709551614"), "1", "18446744073709551615"),
        (Some("18446744073709551615"), "-9223372036854775808", "9223372036854775807"),
        (Some("-9223372036854775808"), "18446744073709551615", "9223372036854775807"),
        (Some("-9223372036854775807"), "-1", "-9223372036854775808"),
        (Some("-9223372036854775808"), "0", "-9223372036854775808"),
        (None, "18446744073709551615", "18446744073709551615"),
        (None, "-9223372036854775808", "-9223372036854775808"),
    ] {
        let result = sum(&service, held, by).await.unwrap();
        assert_eq!(result.to_string(), expected, "{held:?} + {by}");
    }
}

async fn integers_beyond_64_bits_are_refused(service: SessionService) {
    for (held, by) in [
        ("18446744073709551615", "1"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-1"),
        ("18446744073709551616", "1"),
        ("18446744073709551616", "-18446744073709551615"),
        ("-9223372036854775809", "1"),
        ("123456789012345678901234567890", "0.5"),
    ] {
        let refused = sum(&service, Some(held), by).await.unwrap_err();
        let SessionError::Operation { key, source: OperationError::OutOfRange { .. }, found, .. } = &refused
        else {
            panic!("{held} + {by}: {refused}")
        };
        assert_eq!((key.as_str(), found.as_deref().map(compact).as_deref()), ("k", Some(held)));
        assert!(refused.to_string().contains("64-bit integers"), "{refused}");
    }
}

/// Floats that have fewer than 17 digits before the point are spelled alike everywhere.
async fn with_a_fraction_it_is_the_addition_of_floats(service: SessionService) {
    for (held, by, expected) in [
        (Some("0.1"), "0.2", "0.30000000000000004"),
        (Some("0.3"), "-0.1", "0.19999999999999998"),
        (Some("1"), "0.5", "1.5"),
        (Some("1.5"), "1", "2.5"),
        (Some("0.5"), "0.5", "1.0"),
        (Some("1.5"), "-1.5", "0.0"),
        (Some("1.0"), "1", "2.0"),
        (Some("1"), "1.0", "2.0"),
        (Some("100.0"), "-100", "0.0"),
        (Some("9007199254740993"), "0.0", "9007199254740992.0"),
        (Some("9007199254740993"), "1.5", "9007199254740994.0"),
        (Some("123456789.125"), "0.000244140625", "123456789.12524414"),
        (None, "0.5", "0.5"),
        (None, "1.0", "1.0"),
    ] {
        let result = sum(&service, held, by).await.unwrap();
        assert_eq!(result.to_string(), expected, "{held:?} + {by}");
    }
}

/// Databases may spell these without an exponent. They stay floats nevertheless: the next addition
/// rounds as that of floats does.
async fn large_floats_stay_floats(service: SessionService) {
    for (held, by) in [
        ("1e16", "1"),
        ("1e16", "3"),
        ("1e16", "1.0"),
        ("1e17", "-1"),
        ("1e22", "1000000"),
        ("1.5e300", "1"),
        ("1e300", "1e300"),
        ("1e300", "-1e300"),
        ("-1e300", "18446744073709551615"),
        ("18446744073709551615", "0.5"),
        ("1", "1e20"),
        ("1e-7", "1"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "-5e-324"),
        ("1.7976931348623157e308", "1"),
        ("2023347301156851", "0.25"), // two texts are equally short and close
    ] {
        let expected = held.parse::<f64>().unwrap() + by.parse::<f64>().unwrap();
        let result = sum(&service, Some(held), by).await.unwrap();
        assert_eq!(bits(&result), expected.to_bits(), "{held} + {by} is {result}, not {expected:e}");

        let again = service.append_to(&super::key("s"), changing(|delta| delta.add("app:k", 3))).await;
        again.unwrap();
        let read = stored(&service, &super::key("s")).await;
        let result = read.state().get_raw("app:k").unwrap();
        assert_eq!(bits(result), (expected + 3.0).to_bits(), "{held} + {by} + 3 is {result}");
    }
}

/// The bits of a float; its text shows that it is one.
fn bits(value: &SharedValue) -> u64 {
    let text = value.to_string();
    assert!(text.contains(['.', 'e', 'E']), "{text} reads as an integer");
    text.parse::<f64>().unwrap().to_bits()
}

async fn a_float_stays_a_float(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    for by in [0.5, 0.5, 1.0, -2.0] {
        let event = changing(|delta| PREFIXES.iter().for_each(|prefix| delta.add(format!("{prefix}n"), by)));
        service.append_to(made.key(), event).await.unwrap();
    }
    let read = stored(&service, made.key()).await;
    for prefix in PREFIXES {
        assert_eq!(read.state().get_raw(&format!("{prefix}n")).unwrap().to_string(), "0.0");
    }
    let results = read.events().iter().map(|event| serde_json::to_string(&*event.event).unwrap());
    for (result, expected) in results.zip(["0.5", "1.0", "2.0", "0.0"]) {
        assert!(result.contains(&format!("\"app:n\":{expected}")), "{result}");
    }
}

async fn sums_beyond_the_largest_float_are_refused(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    for (held, by) in [
        ("1.7976931348623157e308", "1.7976931348623157e308"),
        ("1.7976931348623157e308", "1e308"),
        ("-1.7976931348623157e308", "-1e300"),
    ] {
        service.append_to(made.key(), changing(|delta| delta.set("user:k", value(held)))).await.unwrap();
        let event = changing(|delta| delta.add("user:k", number(by)));
        let refused = service.append_to(made.key(), event).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::Operation { source: OperationError::OutOfRange { .. }, .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains("64-bit floats"), "{refused}");
        let read = stored(&service, made.key()).await;
        assert_eq!(bits(read.state().get_raw("user:k").unwrap()), held.parse::<f64>().unwrap().to_bits());
    }
}

async fn bounds_are_inclusive_and_compared_by_value(service: SessionService) {
    let within = |by: &str, min: Option<&str>, max: Option<&str>| {
        let mut operation = Operation::add(number(by));
        if let Some(min) = min {
            operation = operation.at_least(number(min));
        }
        if let Some(max) = max {
            operation = operation.at_most(number(max));
        }
        operation
    };
    for (held, by, min, max, expected) in [
        (Some("5"), "-5", Some("0"), None, Ok("0")),
        (Some("5"), "-6", Some("0"), None, Err(true)),
        (Some("5"), "5", None, Some("10"), Ok("10")),
        (Some("5"), "6", None, Some("10"), Err(false)),
        (Some("5"), "0", Some("5"), Some("5"), Ok("5")),
        (None, "-1", Some("0"), None, Err(true)),
        (None, "1", Some("0"), Some("1"), Ok("1")),
        (Some("1"), "1", None, Some("2.0"), Ok("2")),
        (Some("1"), "1", None, Some("1.5"), Err(false)),
        (Some("1"), "1", Some("2.5"), None, Err(true)),
        (Some("-1"), "-1", Some("-2.5"), None, Ok("-2")),
        (Some("-1"), "-1", Some("-1.5"), None, Err(true)),
        (Some("0.5"), "-0.5", Some("0"), None, Ok("0.0")),
        (Some("0.5"), "-0.75", Some("0"), None, Err(true)),
        (Some("0.5"), "0.25", None, Some("0.75"), Ok("0.75")),
        (Some("0.5"), "0.25", None, Some("0.5"), Err(false)),
        (Some("9007199254740992"), "1", None, Some("9007199254740992.0"), Err(false)),
        (Some("9007199254740992"), "1", None, Some("9007199254740993"), Ok("9007199254740993")),
        (Some("18446744073709551614"), "1", None, Some("18446744073709551615"), Ok("18446744073709551615")),
        (Some("18446744073709551614"), "1", Some("18446744073709551615"), None, Ok("18446744073709551615")),
        (Some("18446744073709551614"), "0", Some("18446744073709551615"), None, Err(true)),
        (Some("7"), "1", Some("-1e300"), Some("1e300"), Ok("8")),
        (Some("7"), "1", Some("1e300"), None, Err(true)),
        // The value that is there already may be outside: only the sum counts.
        (Some("-7"), "8", Some("0"), None, Ok("1")),
        (Some("20"), "-1", None, Some("10"), Err(false)),
    ] {
        let operation = within(by, min, max);
        let shown = format!("{held:?} {operation:?}");
        match (operated(&service, held, &operation).await, expected) {
            (Ok(result), Ok(expected)) => assert_eq!(result.to_string(), expected, "{shown}"),
            (
                Err(SessionError::Operation { source: OperationError::Bound { below, bound, .. }, .. }),
                Err(expected),
            ) => {
                assert_eq!(below, expected, "{shown}");
                let crossed = if below { min } else { max };
                assert_eq!(Some(bound), crossed.map(number), "{shown}");
            }
            (other, _) => panic!("{shown}: {other:?}"),
        }
    }
}

async fn many_small_additions_are_those_of_floats(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let mut expected = 0.0;
    for n in 1..=30 {
        let by = 1.0 / f64::from(n);
        expected += by;
        let event = changing(|delta| PREFIXES.iter().for_each(|prefix| delta.add(format!("{prefix}n"), by)));
        service.append_to(made.key(), event).await.unwrap();
    }
    let read = stored(&service, made.key()).await;
    for prefix in PREFIXES {
        let sum: f64 = read.state().get(&format!("{prefix}n")).unwrap();
        assert_eq!(sum.to_bits(), f64::to_bits(expected), "{prefix}");
    }
}

async fn union(service: &SessionService, held: Option<&str>, items: &str) -> String {
    let operation = Operation::union(value(items).to_items());
    compact(&operated(service, held, &operation).await.unwrap())
}

async fn union_compares_numbers_by_value(service: SessionService) {
    for (held, items, expected) in [
        (Some("[1,2.5]"), "[1.0,2.50,3]", "[1,2.5,3]"),
        (Some("[1.0]"), "[1]", "[1.0]"),
        (Some("[100]"), "[1e2,1E2]", "[100]"),
        (Some("[0]"), "[-0.0,0.0]", "[0]"),
        (None, "[1,1.0,\"1\",null,null,true,1]", "[1,\"1\",null,true]"),
        (Some("[[1,2]]"), "[[1.0,2],[2,1],[1]]", "[[1,2],[2,1],[1]]"),
        (
            Some("[{\"a\":1,\"b\":[1.0]}]"),
            "[{\"b\":[1],\"a\":1.0},{\"a\":1}]",
            "[{\"a\":1,\"b\":[1.0]},{\"a\":1}]",
        ),
        (Some("[\"a\"]"), "[\"A\",\"a\",\"\\u0061\"]", "[\"a\",\"A\"]"),
        (
            Some("[9007199254740992]"),
            "[9007199254740993,9007199254740992.0]",
            "[9007199254740992,9007199254740993]",
        ),
        (Some("[false]"), "[0,null,\"\",false,[],{}]", "[false,0,null,\"\",[],{}]"),
        (Some("[1,1]"), "[1]", "[1,1]"),
        (Some("[1]"), "[]", "[1]"),
    ] {
        assert_eq!(union(&service, held, items).await, expected, "{held:?} and {items}");
    }
}

async fn union_keeps_every_digit(service: SessionService) {
    let big = "123456789012345678901234567890";
    for (held, items, expected) in [
        (format!("[{big}]"), format!("[{big},1]"), format!("[{big},1]")),
        (format!("[{big}]"), format!("[{big}.0,{big}1]"), format!("[{big},{big}1]")),
        (
            "[1]".to_owned(),
            format!("[{big},[{big}],{{\"a\":{big}}}]"),
            format!("[1,{big},[{big}],{{\"a\":{big}}}]"),
        ),
        (format!("[[{big}]]"), format!("[[{big}],[{big},0]]"), format!("[[{big}],[{big},0]]")),
    ] {
        assert_eq!(union(&service, Some(&held), &items).await, expected, "{held} and {items}");
    }
}

async fn union_of_fields_replaces_fields_whole(service: SessionService) {
    let big = "123456789012345678901234567890";
    for (held, fields, expected) in [
        (
            Some("{\"a\":1,\"b\":{\"c\":1}}"),
            "{\"b\":{\"d\":2},\"e\":null}",
            "{\"a\":1,\"b\":{\"d\":2},\"e\":null}".to_owned(),
        ),
        (Some("{\"a\":1}"), "{}", "{\"a\":1}".to_owned()),
        (Some("{}"), "{\"\":0}", "{\"\":0}".to_owned()),
        (None, "{}", "{}".to_owned()),
        (Some("{\"a\":1.0}"), &format!("{{\"b\":[{big}]}}"), format!("{{\"a\":1.0,\"b\":[{big}]}}")),
        (
            Some("{\"a\":18446744073709551616}"),
            "{\"b\":1}",
            "{\"a\":18446744073709551616,\"b\":1}".to_owned(),
        ),
        (Some("{\"a\":18446744073709551616}"), "{\"a\":1}", "{\"a\":1}".to_owned()),
    ] {
        let operation = Operation::union_fields(value(fields).to_fields());
        let result = operated(&service, held, &operation).await.unwrap();
        assert_eq!(compact(&result), expected, "{held:?} and {fields}");
    }
}

async fn append_keeps_every_digit(service: SessionService) {
    let big = "123456789012345678901234567890";
    for (held, items, expected) in [
        (
            Some("[1]".to_owned()),
            format!("[{big},0.1000000000000000055511151231257827]"),
            format!("[1,{big},0.1000000000000000055511151231257827]"),
        ),
        (
            Some(format!("[{big}]")),
            "[1.0,18446744073709551615]".to_owned(),
            format!("[{big},1.0,18446744073709551615]"),
        ),
        (None, format!("[[{big}],{{\"a\":-{big}}}]"), format!("[[{big}],{{\"a\":-{big}}}]")),
        (Some(format!("[{big}]")), "[]".to_owned(), format!("[{big}]")),
    ] {
        let operation = Operation::append(value(&items).to_items());
        let result = operated(&service, held.as_deref(), &operation).await.unwrap();
        assert_eq!(compact(&result), expected, "{held:?} and {items}");
    }
    let read = stored(&service, &super::key("s")).await;
    let told: Vec<_> = read.events().iter().filter_map(|event| event.operations().remove("app:k")).collect();
    let told = serde_json::to_string(&told[0]).unwrap();
    assert!(told.contains(big), "the intent keeps every digit too: {told}");
}

async fn shared_state_is_computed_alike_without_a_session(service: SessionService) {
    let (service, scope) = (&service, &user_scope());
    let operate = async |name: &str, operation: Operation| {
        let write = delta(|delta| delta.operate(name, operation));
        service.write_state(sessile_session::StateWrite::new(scope.clone(), write)).await
    };
    for (name, held, by, expected) in [
        ("a", "0.1", "0.2", "0.30000000000000004"),
        ("b", "18446744073709551614", "1", "18446744073709551615"),
        ("c", "0.5", "0.5", "1.0"),
    ] {
        service.write_user_state("shop", "ada", delta(|delta| delta.set(name, value(held)))).await.unwrap();
        let written = operate(name, Operation::add(number(by))).await.unwrap();
        assert_eq!(written.state[name].to_string(), expected);
        assert_eq!(service.user_state("shop", "ada").await.unwrap()[name].to_string(), expected);
    }
    let refused = operate("b", Operation::add(1)).await.unwrap_err();
    assert!(matches!(refused, SessionError::Operation { source: OperationError::OutOfRange { .. }, .. }));
    let written =
        operate("list", Operation::union(value("[1,1.0,123456789012345678901234567890]").to_items())).await;
    assert_eq!(compact(&written.unwrap().state["list"]), "[1,123456789012345678901234567890]");
}
