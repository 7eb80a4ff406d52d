use sessile_session::EventActions;
use sessile_state::StateError;

/// Adds the actions of another callback or tool to those of an event; where both set the same
/// field, the later one counts. This includes changes of state that code put into the actions
/// itself: each is composed with the event's earlier change of the same key. Changes that were made
/// through a context's state are not in its actions; `add_changes` and `merge::join` join those.
///
/// # Errors
///
/// [`StateError::Operation`] if a later operation cannot be applied to the value that the event
/// sets.
pub(crate) fn join_actions(actions: &mut EventActions, later: EventActions) -> Result<(), StateError> {
    if later == EventActions::default() {
        return Ok(());
    }
    let mut later = later;
    actions.state_delta.merge(&std::mem::take(&mut later.state_delta))?;
    if later == EventActions::default() {
        return Ok(());
    }
    let (into, from) = (&mut *actions.extras, &mut *later.extras);
    into.artifact_delta.append(&mut from.artifact_delta);
    into.requested_auth_configs.append(&mut from.requested_auth_configs);
    into.requested_tool_confirmations.append(&mut from.requested_tool_confirmations);
    into.unknown.append(&mut from.unknown);
    macro_rules! later_counts {
        ($($field:ident),*) => {
            $(if from.$field.is_some() { into.$field = from.$field.take(); })*
        };
    }
    later_counts!(
        skip_summarization,
        transfer_to_agent,
        transfer_reason,
        escalate,
        compaction,
        end_of_agent,
        agent_state,
        rewind_before_invocation_id,
        route,
        set_model_response
    );
    if let Some(widgets) = from.render_ui_widgets.take() {
        into.render_ui_widgets.get_or_insert_default().extend(widgets);
    }
    Ok(())
}
