//! Which request a client sends next.

use std::time::Duration;

use crate::arena::{DELETED, KEPT, SHARED};
use crate::change::Scope;
use crate::client::Client;
use crate::fill;
use crate::history::{Via, Write};
use crate::target::{Condition, Target};

impl Client<'_> {
    pub(crate) fn step(&mut self) {
        if self.chance.percent(30) {
            // Bursts with pauses between them: a round lasts long enough for faults to happen in
            // it.
            let pause = self.chance.below(25);
            std::thread::sleep(Duration::from_millis(u64::try_from(pause).expect("it is short")));
        }
        match self.chance.below(100) {
            0..45 => {
                let target = *self.chance.pick(&KEPT);
                self.change(target);
            }
            45..65 => {
                let target = *self.chance.pick(&SHARED);
                self.change(target);
            }
            65..78 => {
                let target = *self.chance.pick(&KEPT);
                let window = self.window();
                self.read(target, window);
            }
            78..86 => {
                let target = *self.chance.pick(&SHARED);
                self.read(target, None);
            }
            _ => self.churn(),
        }
    }

    /// Few events in most answers; all of them now and then.
    fn window(&mut self) -> Option<usize> {
        (!self.chance.percent(8)).then(|| 1 + self.chance.below(4))
    }

    /// Changes a session that is never deleted, or shared state.
    fn change(&mut self, target: Target) {
        if self.chance.percent(40) {
            let window = if target.scope() == Scope::Session { Some(1) } else { None };
            self.read(target, window); // so that guards and conditions are not always out of date
        }
        let token = self.next_token();
        let mut scopes = vec![target.scope()];
        if target.scope() == Scope::Session {
            scopes.extend([Scope::User, Scope::App].into_iter().filter(|_| self.chance.percent(40)));
        }
        let mut change = fill::counting(&token, &scopes, &mut self.chance);
        let scope = *self.chance.pick(&scopes);
        let seen = self.seen.get(&target);
        let mut condition = None;
        match seen {
            Some(seen) if self.chance.percent(25) => {
                fill::compare_and_set(&mut change, &token, target.scope(), seen);
                condition = Some(seen.condition());
            }
            seen => fill::embellish(&mut change, &token, scope, seen, &mut self.chance),
        }
        // A write without a session has no event that could report; it would be refused with 422.
        change.report &= target.scope() == Scope::Session;
        let removes = change.parts.values().any(|part| !part.remove.is_empty());
        let is_event = target.scope() == Scope::Session && !removes && self.chance.percent(45);
        let via = if is_event { Via::Event } else { Via::Patch };
        let key = (is_event || self.chance.percent(75)).then(|| format!("key-{token}"));
        let window = if target.scope() == Scope::Session { self.window() } else { None };
        let write = Write { via, condition, key: key.clone(), window, ..fill::plain(&token, change) };
        if self.write(target, write)
            && let Some(key) = key.filter(|_| self.chance.percent(8))
        {
            self.reuse(target, via, key);
        }
    }

    /// Sends another write under a key that is taken, which must be refused.
    fn reuse(&mut self, target: Target, via: Via, key: String) {
        let token = self.next_token();
        let change = fill::counting(&token, &[target.scope()], &mut self.chance);
        self.write(target, Write { via, key: Some(key), ..fill::plain(&token, change) });
    }

    /// Creates, changes, reads or deletes the session that is deleted now and then.
    fn churn(&mut self) {
        match self.chance.below(100) {
            0..30 => {
                let write = fill::creation(&self.next_token());
                self.write(DELETED, write);
            }
            30..65 => {
                let token = self.next_token();
                let change = fill::counting(&token, &[Scope::Session, Scope::User], &mut self.chance);
                let condition = self.former_condition(50);
                self.write(DELETED, Write { condition, ..fill::plain(&token, change) });
            }
            65..85 => {
                let condition = self.former_condition(60);
                self.delete(DELETED, condition);
            }
            _ => self.read(DELETED, None),
        }
    }

    /// In so many of a hundred cases an `If-Match` of what was seen before, often of a former
    /// incarnation.
    fn former_condition(&mut self, percent: usize) -> Option<Condition> {
        if self.former.is_empty() || !self.chance.percent(percent) {
            return None;
        }
        let recent = &self.former[self.former.len().saturating_sub(4)..];
        Some(self.chance.pick(recent).clone())
    }
}
