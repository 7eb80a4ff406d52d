//! Every call is answered exactly once, whatever callbacks return.

use std::collections::BTreeMap;

use crate::tool_call::{LiveToolCall, ToolResponse};

/// The calls that a callback answered instead of the tool, by index. Answers to unknown calls and
/// second answers are problems.
pub(crate) fn overridden(
    calls: &[LiveToolCall],
    answers: Vec<ToolResponse>,
    problems: &mut Vec<String>,
) -> BTreeMap<usize, ToolResponse> {
    let mut chosen = BTreeMap::new();
    for answer in answers {
        let fits =
            |call: &LiveToolCall| call.id == answer.id && (!call.id.is_empty() || call.name == answer.name);
        let index = (0..calls.len()).find(|index| fits(&calls[*index]) && !chosen.contains_key(index));
        match index {
            Some(index) => {
                chosen.insert(index, answer);
            }
            None => problems.push(format!(
                "an answer to the call {:?} of {:?} was left out: there is no such call, or it was answered before",
                answer.id, answer.name
            )),
        }
    }
    chosen
}

/// The answers that a callback returned, completed by the original ones that it left out.
pub(crate) fn completed(
    answers: Vec<ToolResponse>,
    changed: Vec<ToolResponse>,
    problems: &mut Vec<String>,
) -> Vec<ToolResponse> {
    let as_call = |answer: &ToolResponse| LiveToolCall {
        id: answer.id.clone(),
        name: answer.name.clone(),
        ..LiveToolCall::default()
    };
    let calls: Vec<_> = answers.iter().map(as_call).collect();
    let mut changed = overridden(&calls, changed, problems);
    answers.into_iter().enumerate().map(|(index, answer)| changed.remove(&index).unwrap_or(answer)).collect()
}
