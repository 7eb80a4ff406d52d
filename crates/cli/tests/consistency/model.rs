//! What a write must do to a scope: the reference that answers are compared with.

use serde_json::{Map, Number, Value};

use crate::change::{Op, Part};

/// The names and values of one scope.
pub(crate) type State = Map<String, Value>;

/// The state after a write, or why the write has to be refused.
pub(crate) fn applied(part: &Part, state: &State) -> Result<State, String> {
    let mut after = state.clone();
    after.extend(part.set.clone());
    for name in &part.remove {
        after.remove(name);
    }
    for (name, ops) in &part.ops {
        for op in ops {
            let value = operated(op, after.get(name)).map_err(|why| format!("{name}: {why}"))?;
            after.insert(name.clone(), value);
        }
    }
    Ok(after)
}

fn operated(op: &Op, current: Option<&Value>) -> Result<Value, String> {
    match op {
        Op::Add { by, min, max } => {
            let sum = sum(current.unwrap_or(&Value::from(0)), by).ok_or("not a number")?;
            let as_float = sum.as_f64().ok_or("not a number")?;
            let beyond =
                min.is_some_and(|min| as_float < min as f64) || max.is_some_and(|max| as_float > max as f64);
            if beyond { Err(format!("{sum} is out of bounds")) } else { Ok(sum) }
        }
        Op::Append(items) => {
            let mut list = list(current)?;
            list.extend(items.iter().cloned());
            Ok(list.into())
        }
        Op::Union(Value::Object(fields)) => {
            let mut object = match current {
                None => State::new(),
                Some(Value::Object(object)) => object.clone(),
                Some(_) => return Err("not an object".to_owned()),
            };
            object.extend(fields.clone());
            Ok(object.into())
        }
        Op::Union(items) => {
            let mut list = list(current)?;
            for item in items.as_array().ok_or("not a list of items")? {
                if !list.iter().any(|other| same(other, item)) {
                    list.push(item.clone());
                }
            }
            Ok(list.into())
        }
    }
}

fn list(current: Option<&Value>) -> Result<Vec<Value>, String> {
    match current {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(_) => Err("not a list".to_owned()),
    }
}

/// Integers are added exactly; with a fraction on either side it is an addition of 64-bit floats.
fn sum(a: &Value, b: &Value) -> Option<Value> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => {
            let sum = a + b;
            let signed = i64::try_from(sum).map(Number::from);
            signed.or_else(|_| u64::try_from(sum).map(Number::from)).ok().map(Value::Number)
        }
        _ => Number::from_f64(a.as_f64()? + b.as_f64()?).map(Value::Number),
    }
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// Whether two values are equal, numbers by value: 1 and 1.0 are.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// As [`same`], of values that may be absent.
pub(crate) fn same_or_absent(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(op: Op, current: &Value) -> Result<Value, String> {
        let state = json!({ "key": current }).as_object().cloned().expect("it is an object");
        let part = Part { ops: [("key".to_owned(), vec![op])].into(), ..Part::default() };
        applied(&part, &state).map(|state| state["key"].clone())
    }

    fn add(by: Value, min: Option<i64>, max: Option<i64>) -> Op {
        Op::Add { by, min, max }
    }

    #[test]
    fn adding_is_exact_and_bounded() {
        let large = 9_007_199_254_740_993_i64; // not a 64-bit float
        assert_eq!(after(add(json!(1), None, None), &json!(large)), Ok(json!(large + 1)));
        assert_eq!(after(add(json!(1), None, None), &json!(i64::MAX)), Ok(json!(i64::MAX as u64 + 1)));
        assert_eq!(after(add(json!(0.25), None, None), &json!(1)), Ok(json!(1.25)));
        assert_eq!(after(add(json!(-1), Some(0), None), &json!(1)), Ok(json!(0)));
        after(add(json!(-1), Some(0), None), &json!(0)).expect_err("it is below the bound");
        after(add(json!(1), None, Some(5)), &json!(5)).expect_err("it is above the bound");
        after(add(json!(1), None, None), &json!("text")).expect_err("a text is no number");
    }

    #[test]
    fn lists_and_objects_grow() {
        assert_eq!(after(Op::Append(vec![json!(1), json!(1)]), &json!([1])), Ok(json!([1, 1, 1])));
        assert_eq!(after(Op::Union(json!([1.0, "b", "b"])), &json!([1])), Ok(json!([1, "b"])));
        assert_eq!(after(Op::Union(json!({"a": 2})), &json!({"a": 1, "b": 1})), Ok(json!({"a": 2, "b": 1})));
        after(Op::Union(json!([1])), &json!({})).expect_err("an object is no list");
    }
}
