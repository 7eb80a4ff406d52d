//! What writes change.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::change::{Change, LOG, Op, Part, Scope};
use crate::history::{Via, Write};
use crate::view::View;

/// How much there is to take in each place, which is less than clients ask for.
const STOCK: i64 = 4;
const SEATS: i64 = 3;

/// A session with a full stock. Its creation is in the logs of the user and the application.
pub(crate) fn creation(token: &str) -> Write {
    let mut change = stocked(token, Scope::Session);
    let session = change.parts.get_mut(&Scope::Session).expect("it was just made");
    session.set.insert("born".into(), token.into());
    session.ops.clear();
    for scope in [Scope::User, Scope::App] {
        let mut part = logged(token);
        part.ops.insert("count".into(), vec![add(json!(1))]);
        change.parts.insert(scope, part);
    }
    Write { via: Via::Create, ..plain(token, change) }
}

/// Fills the stock of a user or of the application.
pub(crate) fn stocking(token: &str, scope: Scope) -> Write {
    plain(token, stocked(token, scope))
}

fn stocked(token: &str, scope: Scope) -> Change {
    let set = [("stock".to_owned(), json!(STOCK))].into_iter().collect();
    Change { parts: [(scope, Part { set, ..logged(token) })].into(), report: false }
}

/// A PATCH without conditions that can be sent only once.
pub(crate) fn plain(token: &str, change: Change) -> Write {
    Write { token: token.to_owned(), via: Via::Patch, change, condition: None, key: None, window: None }
}

/// Adds to the counters of these scopes, which always can be done.
pub(crate) fn counting(token: &str, scopes: &[Scope], chance: &mut Chance) -> Change {
    let part = |chance: &mut Chance| {
        let mut part = logged(token);
        let by = |chance: &mut Chance| add(json!(chance.below(5) + 1));
        let ops = if chance.percent(20) { vec![by(chance), by(chance)] } else { vec![by(chance)] };
        part.ops.insert("count".into(), ops);
        part
    };
    Change { parts: scopes.iter().map(|scope| (*scope, part(chance))).collect(), report: false }
}

/// Adds something to one scope of a change. `seen` is what the caller knows of the state.
pub(crate) fn embellish(
    change: &mut Change,
    token: &str,
    scope: Scope,
    seen: Option<&View>,
    chance: &mut Chance,
) {
    let part = change.parts.entry(scope).or_insert_with(|| logged(token));
    let mut operate = |name: &str, op| drop(part.ops.insert(name.to_owned(), vec![op]));
    match chance.below(100) {
        0..8 => operate("weight", add(json!(0.25 * chance.below(9) as f64))),
        8..20 => {
            let shared = chance.pick(&[json!("red"), json!("green"), json!(1), json!(1.0)]).clone();
            operate("tags", Op::Union(json!([token, shared, token])));
        }
        20..28 => {
            let field = format!("field{}", chance.below(4));
            operate("fields", Op::Union(json!({ field: token })));
        }
        28..48 => {
            let by = -1 - i64::try_from(chance.below(2)).expect("it is small");
            operate("stock", Op::Add { by: json!(by), min: Some(0), max: None });
        }
        48..58 => operate("seats", Op::Add { by: json!(1), min: None, max: Some(SEATS) }),
        58..64 => {
            part.set.insert(format!("scratch{}", chance.below(3)), json!({ "by": token }));
        }
        64..69 => part.remove.push(format!("scratch{}", chance.below(3))),
        _ => {
            part.set.insert("register".into(), token.into());
            let current = seen.and_then(|view| view.states.get(&scope)).map(|state| state.get("register"));
            match current {
                Some(current) if !chance.percent(15) => {
                    guard(part, "register", current);
                    change.report = chance.percent(35);
                }
                _ => {} // a blind write, which makes guards fail
            }
        }
    }
}

/// Continues the count of compare-and-set writes; the caller sends an `If-Match` with it.
pub(crate) fn compare_and_set(change: &mut Change, token: &str, scope: Scope, seen: &View) {
    let current = seen.states.get(&scope).and_then(|state| state.get("cas")?.as_i64()).unwrap_or_default();
    let part = change.parts.entry(scope).or_insert_with(|| logged(token));
    part.set.insert("cas".into(), json!(current + 1));
}

fn guard(part: &mut Part, name: &str, current: Option<&Value>) {
    match current {
        Some(value) => drop(part.read.insert(name.to_owned(), value.clone())),
        None => part.absent.push(name.to_owned()),
    }
}

fn logged(token: &str) -> Part {
    Part { ops: [(LOG.to_owned(), vec![Op::Append(vec![token.into()])])].into(), ..Part::default() }
}

fn add(by: Value) -> Op {
    Op::Add { by, min: None, max: None }
}
