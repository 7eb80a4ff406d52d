//! Requests that make sense to a server of ADK.

use serde_json::{Value, json};

use crate::answer::Answer;

/// One request of a sequence. Users and sessions are few, so that requests meet.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Create {
        user: String,
        id: Option<String>,
        state: Value,
    },
    CreateAt {
        user: String,
        id: String,
        state: Option<Value>,
    },
    Get {
        user: String,
        id: String,
    },
    List {
        user: String,
    },
    Patch {
        user: String,
        id: String,
        delta: Value,
        snake_case: bool,
    },
    Delete {
        user: String,
        id: String,
    },
    Run {
        user: String,
        id: String,
        text: String,
        delta: Option<Value>,
    },
    SaveArtifact {
        user: String,
        id: String,
        name: String,
        text: String,
    },
    Artifacts {
        user: String,
        id: String,
    },
    Artifact {
        user: String,
        id: String,
        name: String,
        version: Option<u8>,
    },
    ArtifactVersions {
        user: String,
        id: String,
        name: String,
    },
    DeleteArtifact {
        user: String,
        id: String,
        name: String,
    },
    Remember {
        user: String,
        id: String,
    },
    /// Anything else, as it is.
    Raw {
        method: &'static str,
        path: String,
        body: Option<String>,
    },
}

/// A request as it is sent.
pub(crate) struct Request {
    method: &'static str,
    path: String,
    body: Option<String>,
}

impl Call {
    pub(crate) fn request(&self) -> Request {
        let (method, path, body) = match self {
            Self::Create { user, id, state } => {
                let mut body = json!({"state": state});
                if let Some(id) = id {
                    body["sessionId"] = id.as_str().into();
                }
                ("POST", sessions(user), Some(body))
            }
            Self::CreateAt { user, id, state } => ("POST", session(user, id), state.clone()),
            Self::Get { user, id } => ("GET", session(user, id), None),
            Self::List { user } => ("GET", sessions(user), None),
            Self::Patch { user, id, delta, snake_case } => {
                let name = if *snake_case { "state_delta" } else { "stateDelta" };
                ("PATCH", session(user, id), Some(json!({ name: delta })))
            }
            Self::Delete { user, id } => ("DELETE", session(user, id), None),
            Self::Run { user, id, text, delta } => {
                let message = json!({"role": "user", "parts": [{"text": text}]});
                let mut body =
                    json!({"appName": "echo", "userId": user, "sessionId": id, "newMessage": message});
                if let Some(delta) = delta {
                    body["stateDelta"] = delta.clone();
                }
                ("POST", "/run".to_owned(), Some(body))
            }
            Self::SaveArtifact { user, id, name, text } => {
                let body = json!({"filename": name, "artifact": {"text": text}});
                ("POST", format!("{}/artifacts", session(user, id)), Some(body))
            }
            Self::Artifacts { user, id } => ("GET", format!("{}/artifacts", session(user, id)), None),
            Self::Artifact { user, id, name, version } => {
                let version = version.map_or(String::new(), |version| format!("?version={version}"));
                ("GET", format!("{}/artifacts/{name}{version}", session(user, id)), None)
            }
            Self::ArtifactVersions { user, id, name } => {
                ("GET", format!("{}/artifacts/{name}/versions", session(user, id)), None)
            }
            Self::DeleteArtifact { user, id, name } => {
                ("DELETE", format!("{}/artifacts/{name}", session(user, id)), None)
            }
            Self::Remember { user, id } => {
                ("PATCH", format!("/apps/echo/users/{user}/memory"), Some(json!({"sessionId": id})))
            }
            Self::Raw { method, path, body } => {
                return Request { method, path: path.clone(), body: body.clone() };
            }
        };
        Request { method, path, body: body.map(|body| body.to_string()) }
    }
}

impl Request {
    pub(crate) async fn send(&self, client: &reqwest::Client, address: &str) -> Answer {
        let method = self.method.parse().expect("the methods are known");
        let mut request = client.request(method, format!("{address}{}", self.path));
        if let Some(body) = &self.body {
            request = request.header("content-type", "application/json").body(body.clone());
        }
        let response = request.send().await.expect("the server answers");
        let status = response.status().as_u16();
        Answer::new(status, &response.text().await.expect("the answer is read to its end"))
    }
}

fn sessions(user: &str) -> String {
    format!("/apps/echo/users/{user}/sessions")
}

fn session(user: &str, id: &str) -> String {
    format!("{}/{id}", sessions(user))
}

impl Call {
    /// The same call by a user of this run alone.
    pub(crate) fn of_run(&self, run: &str) -> Self {
        let mut call = self.clone();
        match &mut call {
            Self::Create { user, .. }
            | Self::CreateAt { user, .. }
            | Self::Get { user, .. }
            | Self::List { user }
            | Self::Patch { user, .. }
            | Self::Delete { user, .. }
            | Self::Run { user, .. }
            | Self::SaveArtifact { user, .. }
            | Self::Artifacts { user, .. }
            | Self::Artifact { user, .. }
            | Self::ArtifactVersions { user, .. }
            | Self::DeleteArtifact { user, .. }
            | Self::Remember { user, .. } => user.push_str(&format!("-{run}")),
            Self::Raw { .. } => {}
        }
        call
    }
}
