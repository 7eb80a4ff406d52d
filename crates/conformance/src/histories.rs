//! Random histories of users' state in which Sessile and other programs take turns, for stores in
//! google-adk's tables.

use serde_json::{Value, json};
use sessile_session::{
    CreateSession, Event, EventActions, ScopeKey, SessionKey, SessionService, StateMap, Version,
};
use sessile_state::{Delta, Operation, same_value};

/// What another program does to the row of a user's state.
#[derive(Debug, Clone)]
pub enum ForeignWrite {
    /// Sets keys and keeps the others; makes the row if there is none. The keys may have a prefix.
    Merge(Value),
    /// Puts another state in the place of the stored one.
    Replace(Value),
    /// Deletes the row.
    Delete,
}

/// Makes `count` histories, each of another user, and compares every state with the one that is
/// computed backwards from the final state. `write` writes as another program to the state of a
/// user of the application `shop`.
///
/// # Panics
///
/// If a computed state is not what it was.
pub async fn are_computed_backwards(
    service: &SessionService,
    histories: u64,
    write: impl AsyncFn(&str, ForeignWrite),
) {
    for seed in 1..=histories {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let user = format!("user {seed}");
        let seen = live(service, &user, &mut chance, &write).await;
        let scope = ScopeKey::User("shop".to_owned(), user);
        let mut before = 0;
        for (version, expected) in &seen {
            assert!(
                *version > before || (*version == before && before > 0),
                "{scope}: {version} after {before}"
            );
            before = *version;
            let found = service.scope_state_at(&scope, *version).await.unwrap();
            assert!(same(&found, expected), "seed {seed}, version {version}: {found:?} and {expected:?}");
        }
    }
}

/// A few writes, each followed by a read of the state.
async fn live(
    service: &SessionService,
    user: &str,
    chance: &mut Chance,
    write: &impl AsyncFn(&str, ForeignWrite),
) -> Vec<(Version, StateMap)> {
    let scope = ScopeKey::User("shop".to_owned(), user.to_owned());
    let key = SessionKey::new("shop", user, "s").unwrap();
    service.create(CreateSession::new("shop", user).with_id("s")).await.unwrap();
    let mut seen = Vec::new();
    for step in 0..4 + chance.below(5) {
        match chance.below(8) {
            0 | 1 => drop(service.append_to(&key, event(chance)).await),
            2 => drop(
                service.write_state(sessile_session::StateWrite::new(scope.clone(), delta(chance, ""))).await,
            ),
            3 | 4 => write(user, ForeignWrite::Merge(object(chance, true))).await,
            5 => write(user, ForeignWrite::Replace(object(chance, true))).await,
            6 => write(user, ForeignWrite::Replace(json!({}))).await,
            _ if step > 0 && chance.below(3) == 0 => write(user, ForeignWrite::Delete).await,
            _ => write(user, ForeignWrite::Merge(object(chance, false))).await,
        }
        note(service, &scope, &mut seen).await;
    }
    // The last write is one of Sessile's, which also makes the row again if it was deleted.
    service
        .write_state(sessile_session::StateWrite::new(scope.clone(), json!({"last": user})))
        .await
        .unwrap();
    note(service, &scope, &mut seen).await;
    seen
}

/// Remembers the state. A missing row, which a store may read as version 0, is skipped.
async fn note(service: &SessionService, scope: &ScopeKey, seen: &mut Vec<(Version, StateMap)>) {
    let state = service.scope_state(scope).await.unwrap();
    if state.version > 0 {
        seen.push((state.version, (*state.state).clone()));
    }
}

const NAMES: [&str; 7] = ["n", "list", "map", "text", "ключ", "odd \"key\"", "back\\slash"];

fn value(chance: &mut Chance) -> Value {
    match chance.below(8) {
        0 => json!(null),
        1 => json!(chance.below(100)),
        2 => json!(1.5),
        3 => json!(u64::MAX - chance.below(9)),
        4 => json!([chance.below(9), {"deep": [true, 2.0]}]),
        5 => json!({"a": chance.below(9), "b": "ü \" \\ '"}),
        6 => json!("text 😀 \u{1}"),
        _ => json!(false),
    }
}

/// A state as another program writes it, some keys of it with their prefix.
fn object(chance: &mut Chance, may_be_prefixed: bool) -> Value {
    let mut object = serde_json::Map::new();
    for _ in 0..=chance.below(3) {
        let name = NAMES[chance.below(NAMES.len() as u64) as usize];
        let is_prefixed = may_be_prefixed && chance.below(3) == 0;
        object.insert(if is_prefixed { format!("user:{name}") } else { name.to_owned() }, value(chance));
    }
    object.into()
}

fn delta(chance: &mut Chance, prefix: &str) -> Delta {
    let mut delta = Delta::new();
    let name = |name: &str| format!("{prefix}{name}");
    match chance.below(6) {
        0 => delta.add(name("n"), chance.below(50)),
        1 => delta.append(name("list"), [value(chance), value(chance)]),
        2 => delta.union(name("list"), [value(chance), json!(1)]),
        3 => {
            delta.operate(name("map"), Operation::union_fields([("a", value(chance)), ("c", value(chance))]))
        }
        4 => delta.remove(name(NAMES[chance.below(NAMES.len() as u64) as usize])),
        _ => delta.set(name(NAMES[chance.below(NAMES.len() as u64) as usize]), value(chance)),
    }
    delta
}

/// An event; its operation may be refused because another program stored something else there,
/// which changes nothing.
fn event(chance: &mut Chance) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta(delta(chance, "user:")))
}

fn same(one: &StateMap, other: &StateMap) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((a, one), (b, other))| a == b && same_value(one, other))
}

/// Numbers that are the same for the same seed (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}
