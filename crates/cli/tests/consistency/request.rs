//! How a call is spelled in HTTP.

use serde_json::{Value, json};

use crate::history::{Call, Kind, Via};
use crate::http::Request;
use crate::target::Target;

/// The request of a call, in an application.
pub(crate) fn request_of(app: &str, call: &Call) -> Request {
    let (method, path, body) = line_and_body(app, call);
    Request { method, path, headers: headers_of(call), body: body.as_ref().map(Value::to_string) }
}

fn line_and_body(app: &str, call: &Call) -> (&'static str, String, Option<Value>) {
    let path = match call.target {
        Target::App => format!("/apps/{app}/state"),
        Target::User(user) => format!("/apps/{app}/users/{user}/state"),
        Target::Session(user, id) => format!("/apps/{app}/users/{user}/sessions/{id}"),
    };
    let with_window = |window: Option<usize>| match window {
        Some(window) => format!("{path}?numRecentEvents={window}"),
        None => path.clone(),
    };
    let write = match &call.kind {
        Kind::Read { window } => return ("GET", with_window(*window), None),
        Kind::Delete { .. } => return ("DELETE", path, None),
        Kind::Write(write) => write,
    };
    let mut fields = write.change.fields(call.target.scope());
    match (write.via, call.target) {
        (Via::Event, _) => {
            let event = json!({ "id": write.key, "author": "agent", "actions": fields });
            ("POST", format!("{path}/events"), Some(event))
        }
        (Via::Create, Target::Session(user, id)) => {
            let state = fields.remove("stateDelta").unwrap_or_else(|| json!({}));
            fields.extend([("sessionId".to_owned(), json!(id)), ("state".to_owned(), state)]);
            ("POST", format!("/apps/{app}/users/{user}/sessions"), Some(fields.into()))
        }
        _ => ("PATCH", with_window(write.window), Some(fields.into())),
    }
}

fn headers_of(call: &Call) -> String {
    let (condition, key) = match &call.kind {
        Kind::Read { .. } => (None, None),
        Kind::Delete { condition } => (condition.as_ref(), None),
        Kind::Write(write) => {
            (write.condition.as_ref(), write.key.as_ref().filter(|_| write.via == Via::Patch))
        }
    };
    let condition = condition.map(|condition| format!("if-match: {}\r\n", condition.etag));
    let key = key.map(|key| format!("idempotency-key: {key}\r\n"));
    condition.into_iter().chain(key).collect()
}
