//! Whether every answer is one that the contract has.

use super::facts::Facts;
use super::{Anomaly, Findings};
use crate::history::{Kind, Record, Via};
use crate::http::{Answer, Failure};
use crate::view::View;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for record in &facts.history.records {
        match &record.outcome {
            Ok(answer) if answer.status == 200 => {
                if !has_form(record, answer) {
                    findings.say(Anomaly::Status, record, "the answer lacks its ETag or is not as described");
                }
            }
            Ok(answer) => {
                if !is_expected(record, answer.status) || answer.detail().is_empty() {
                    findings.say(Anomaly::Status, record, "this status, or one without a detail");
                }
            }
            Err(Failure::Broken(why)) => {
                let killed = facts.history.kills.iter().any(|kill| {
                    kill.server == record.server && kill.start <= record.end && record.start <= kill.end
                });
                if !killed {
                    findings.say(Anomaly::Broken, record, why);
                }
            }
            Err(Failure::NotSent | Failure::GaveUp) => {}
        }
    }
}

fn is_expected(record: &Record, status: u16) -> bool {
    let churn = record.call.target.is_churn();
    match (&record.call.kind, status) {
        (_, 503) => true,
        (Kind::Write(write), 404) => churn && write.via != Via::Create,
        (_, 404) => churn,
        (Kind::Write(_), 409) => true, // explained elsewhere
        (Kind::Write(write), 412) => write.condition.is_some(),
        (Kind::Delete { condition }, 412) => condition.is_some(),
        _ => false,
    }
}

fn has_form(record: &Record, answer: &Answer) -> bool {
    match &record.call.kind {
        Kind::Delete { .. } => true,
        Kind::Write(write) if write.via == Via::Event => {
            answer.etag.is_some() && answer.body["actions"]["stateDelta"].is_object()
        }
        _ => View::of(record.call.target, answer).is_some(),
    }
}
