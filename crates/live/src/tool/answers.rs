//! Every call is answered exactly once, whatever callbacks return.

use std::collections::BTreeMap;

use crate::tool_call::{ToolCall, ToolResponse};

/// Which calls a callback answered in the place of the tool, by position; answers to calls that
/// were not made, and second answers, are problems.
pub(crate) fn overridden(
    calls: &[ToolCall],
    answers: Vec<ToolResponse>,
    problems: &mut Vec<String>,
) -> BTreeMap<usize, ToolResponse> {
    let mut chosen = BTreeMap::new();
    for answer in answers {
        let fits =
            |call: &ToolCall| call.id == answer.id && (!call.id.is_empty() || call.name == answer.name);
        let place = (0..calls.len()).find(|place| fits(&calls[*place]) && !chosen.contains_key(place));
        match place {
            Some(place) => {
                chosen.insert(place, answer);
            }
            None => problems.push(format!(
                "an answer to the call {:?} of {:?} was left out: there is no such call that is not answered yet",
                answer.id, answer.name
            )),
        }
    }
    chosen
}

/// What a callback made of the answers, with those it left out put back.
pub(crate) fn completed(
    answers: Vec<ToolResponse>,
    changed: Vec<ToolResponse>,
    problems: &mut Vec<String>,
) -> Vec<ToolResponse> {
    let as_call = |answer: &ToolResponse| ToolCall {
        id: answer.id.clone(),
        name: answer.name.clone(),
        ..ToolCall::default()
    };
    let calls: Vec<_> = answers.iter().map(as_call).collect();
    let mut changed = overridden(&calls, changed, problems);
    answers.into_iter().enumerate().map(|(place, answer)| changed.remove(&place).unwrap_or(answer)).collect()
}
