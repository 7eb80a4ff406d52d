use sessile_session::EventActions;

/// Adds what another callback or tool did to an event's actions; the later one counts where both say
/// something. Changes of state are joined elsewhere, by their rules.
pub(crate) fn join_actions(actions: &mut EventActions, later: EventActions) {
    if later == EventActions::default() {
        return;
    }
    let mut later = later;
    actions.state_delta.append(&mut later.state_delta);
    if later == EventActions::default() {
        return;
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
}
