use axum::extract::State;
use axum::response::Response;
use sessile_session::{CreateSession, Event, EventActions};

use crate::api::shared::Shared;
use crate::api::state_change::{GUARDS, StateChange};
use crate::describe::model::{EVENT, Field, Kind, Model, STATE_OPS};
use crate::describe::route_doc::{Answer, BodyDoc, Doc};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::{ApiError, advising};
use crate::http::json::Fields;
use crate::http::path_params::{OfSession, OfUser};
use crate::http::response;

pub(crate) const CREATE: Doc =
    Doc::new("sessions", "Creates a session, with state and events.", Answer::One("Session"))
        .with_body(BodyDoc::Optional(&REQUEST))
        .failing(&[400, 403, 409, 413]);

pub(crate) const CREATE_AT: Doc =
    Doc::new("sessions", "Creates a session under an id; the body is its state.", Answer::One("Session"))
        .with_body(BodyDoc::OptionalMap)
        .failing(&[403, 409, 413]);

static REQUEST: Model = Model::open(
    "CreateSessionRequest",
    &[
        Field::optional("sessionId", Kind::Text, "Its id; one is made if it is blank or left out."),
        Field::optional("state", Kind::Map, "Initial state, keys with their prefixes."),
        STATE_OPS,
        Field::optional("events", Kind::List(&Kind::Object(&EVENT)), "Events that it starts with."),
        Field::optional("options", Kind::Map, "Options of the session service; Sessile has none."),
    ],
);

pub(crate) async fn create(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let mut new = CreateSession::new(app, user);
    if let Some(fields) = body.optional_fields(&REQUEST)? {
        check_options(&fields)?;
        new.id = fields.text("sessionId");
        refuse_conditions(&fields)?;
        new.state = StateChange::initial(&fields)?;
        new.events = events(&fields, shared.http.limits.events)?;
    }
    finish(&shared, &principal, new).await
}

pub(crate) async fn create_at(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let new = CreateSession::new(key.app(), key.user()).with_id(key.id()).with_state(body.state()?);
    finish(&shared, &principal, new).await
}

async fn finish(shared: &Shared, principal: &Principal, new: CreateSession) -> Result<Response, ApiError> {
    principal.writes(new.state.iter().map(|(key, _)| key))?;
    let advice =
        "list the user's sessions, or read the one with the id that you gave, to see whether it is there";
    let session = shared.sessions.create(new).await.map_err(advising(advice))?;
    tracing::debug!(session = %session.key(), "created session");
    response::session(&session)
}

/// Refuses guards and removals: a new session has no state to compare with.
fn refuse_conditions(fields: &Fields<'_>) -> Result<(), ApiError> {
    let text = "A new session has no state to compare with; use stateRead and stateAbsent with PATCH or with \
                an appended event";
    fields.refuse(&GUARDS, text)?;
    Ok(fields.refuse(&["stateRemove"], "A new session has nothing to remove; remove keys with PATCH")?)
}

/// Refuses options, with the messages of ADK: Sessile's session service has none.
fn check_options(fields: &Fields<'_>) -> Result<(), ApiError> {
    const BOUND: [&str; 4] = ["app_name", "session_id", "state", "user_id"];
    let options = fields.map("options")?.unwrap_or_default();
    let bound: Vec<&str> = BOUND.into_iter().filter(|key| options.contains_key(*key)).collect();
    if !bound.is_empty() {
        let text = "Session options cannot contain keys already bound by the endpoint: ";
        return Err(ApiError::BadRequest(format!("{text}{}", bound.join(", "))));
    }
    if !options.is_empty() {
        let text = "Session options are not supported by the configured session service.";
        return Err(ApiError::BadRequest(text.to_owned()));
    }
    Ok(())
}

/// The events that a session starts with. They may have content, but no actions.
fn events(fields: &Fields<'_>, limit: usize) -> Result<Vec<Event>, ApiError> {
    if fields.count("events") > limit {
        return Err(ApiError::Unusable(format!("A session is created with at most {limit} events")));
    }
    let events: Vec<Event> = fields.read("events")?.unwrap_or_default();
    for (index, event) in events.iter().enumerate() {
        let what = if event.long_running_tool_ids.as_ref().is_some_and(|ids| !ids.is_empty()) {
            "long-running tool IDs"
        } else if event.actions != EventActions::default() {
            "event actions"
        } else if calls_protocol(event) {
            "ADK protocol function calls"
        } else {
            continue;
        };
        return Err(ApiError::BadRequest(format!(
            "Session initialization event {index} cannot include {what}."
        )));
    }
    Ok(events)
}

fn calls_protocol(event: &Event) -> bool {
    const PROTOCOL: [&str; 3] = ["adk_request_credential", "adk_request_confirmation", "adk_request_input"];
    let calls = event.function_calls().filter_map(|call| call.name.as_deref());
    let responses = event.function_responses().filter_map(|response| response.name.as_deref());
    calls.chain(responses).any(|name| PROTOCOL.contains(&name))
}
