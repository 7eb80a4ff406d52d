//! When two values are the same.

use proptest::prelude::*;
use sessile_state::{SharedValue, same_json, same_value};

fn value(text: &str) -> SharedValue {
    SharedValue::from_json(text).expect("JSON")
}

/// Numbers whose spellings meet: around the ends of integers and floats, and with more digits than
/// either has.
const SPELLINGS: [&str; 44] = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "0e5",
    "1",
    "1.0",
    "1.00",
    "1e0",
    "10e-1",
    "0.1e1",
    "-1",
    "-1.0",
    "0.1",
    "1e-1",
    "0.10000000000000001",
    "0.1000000000000000055511151231257827",
    "100",
    "1e2",
    "1E+2",
    "9007199254740992",
    "9007199254740992.0",
    "9007199254740993",
    "9007199254740993.0",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775808.0",
    "9.223372036854775807e18",
    "9.223372036854776e18",
    "9223372036854776000",
    "9223372036854776000.0",
    "18446744073709551615",
    "18446744073709551616",
    "1.8446744073709552e19",
    "18446744073709552000",
    "1e22",
    "10000000000000000000000",
    "1e23",
    "100000000000000000000000",
    "99999999999999991611392",
    "1e300",
    "123456789012345678901234567890",
    "123456789012345678901234567890.0",
    "1.2345678901234567890123456789e29",
];

const SHAPES: [&str; 4] =
    ["#", "[#, 123456789012345678901234567890]", "{\"a\": #, \"b\": [1.0]}", "[[#], {\"x\": {\"y\": #}}]"];

#[test]
fn sameness_of_every_pair_of_spellings_agrees_with_their_decimal_value() {
    for one in SPELLINGS {
        for other in SPELLINGS {
            let same = same_json(one, other);
            for shape in SHAPES {
                let [a, b] = [one, other].map(|spelling| shape.replace('#', spelling));
                assert_eq!(same_value(&value(&a), &value(&b)), same, "{a} and {b}");
            }
        }
    }
}

proptest! {
    #[test]
    fn sameness_is_an_equivalence(
        one in 0..SPELLINGS.len(), other in 0..SPELLINGS.len(), third in 0..SPELLINGS.len(), shape in 0..SHAPES.len(),
    ) {
        let texts = [one, other, third].map(|place| SHAPES[shape].replace('#', SPELLINGS[place]));
        let [a, b, c] = [value(&texts[0]), value(&texts[1]), value(&texts[2])];
        prop_assert!(same_value(&a, &a) && same_json(&texts[0], &texts[0]));
        prop_assert_eq!(same_value(&a, &b), same_value(&b, &a));
        if same_value(&a, &b) && same_value(&b, &c) {
            prop_assert!(same_value(&a, &c), "{:?}", texts);
        }
        prop_assert_eq!(same_value(&a, &b), same_json(&texts[0], &texts[1]), "{:?}", texts);
    }
}
