//! Artifacts of a session. A name may contain slashes, so the router matches everything after
//! `artifacts/`, and [`load`] splits it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};
use sessile_artifact::{ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};
use sessile_session::{Part, SessionKey};

use super::shared::Shared;
use crate::describe::model::{Field, Kind, Model, PART};
use crate::describe::route_doc::{Answer, BodyDoc, Doc, Param};
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::path_params::{OfSession, param};
use crate::http::query::Query;
use crate::http::response;

pub(crate) const NAMES: Doc =
    Doc::new("artifacts", "Lists the names of artifacts.", Answer::Texts).failing(&[400, 403]);
pub(crate) const SAVE: Doc = Doc::new("artifacts", "Saves a new version.", Answer::One("ArtifactVersion"))
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[400, 403]);
pub(crate) const LOAD: Doc = Doc::new("artifacts", "The newest version, or another.", Answer::One("Part"))
    .with_query(&[Param::new("version", "integer", "Which version, from 0.")])
    .failing(&[400, 403, 404]);
pub(crate) const VERSIONS: Doc =
    Doc::new("artifacts", "The numbers of its versions.", Answer::Numbers).failing(&[400, 403]);
pub(crate) const VERSION: Doc =
    Doc::new("artifacts", "A version, by number or `latest`.", Answer::One("Part")).failing(&[400, 403, 404]);
pub(crate) const ALL_METADATA: Doc =
    Doc::new("artifacts", "The metadata of each version.", Answer::List("ArtifactVersion"))
        .failing(&[400, 403]);
pub(crate) const METADATA: Doc =
    Doc::new("artifacts", "The metadata of a version.", Answer::One("ArtifactVersion"))
        .failing(&[400, 403, 404]);
pub(crate) const DELETE: Doc =
    Doc::new("artifacts", "Deletes all versions.", Answer::Null).failing(&[400, 403]);

static REQUEST: Model = Model::open(
    "SaveArtifactRequest",
    &[
        Field::required("filename", Kind::Text, "Its name; the prefix `user:` shares it with all sessions."),
        Field::required("artifact", Kind::Object(&PART), "Text or bytes."),
        Field::optional("customMetadata", Kind::Map, "The application's own notes."),
    ],
);

pub(crate) async fn names(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
) -> Result<Response, ApiError> {
    response::json(&service(&shared)?.names(&key).await?)
}

pub(crate) async fn save(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    body: Body,
) -> Result<Response, ApiError> {
    let fields = body.fields(&REQUEST)?;
    let key = ArtifactKey::new(&key, fields.text("filename").unwrap_or_default());
    let part: Part = fields.read("artifact")?.unwrap_or_default();
    let custom_metadata = fields.map("customMetadata")?.unwrap_or_default();
    let saved = service(&shared)?.save(&key, NewArtifact { part, custom_metadata }).await?;
    response::json(&described(&saved))
}

pub(crate) async fn load(
    State(shared): State<Shared>,
    Tail { session, path }: Tail,
    query: Query,
) -> Result<Response, ApiError> {
    let artifacts = service(&shared)?;
    let key = |name: &str| ArtifactKey::new(&session, name);
    let (name, what) = match path.rsplit_once("/versions") {
        Some((name, rest)) if !name.is_empty() && (rest.is_empty() || rest.starts_with('/')) => (name, rest),
        _ => {
            let version = query.count("version")?;
            return part(artifacts.load(&key(&path), version).await?);
        }
    };
    let steps: Vec<&str> = what.split('/').skip(1).collect();
    match steps.as_slice() {
        [] => {
            let versions = artifacts.versions(&key(name)).await?;
            response::json(&versions.iter().map(|version| version.version).collect::<Vec<_>>())
        }
        ["metadata"] => {
            let versions = artifacts.versions(&key(name)).await?;
            response::json(&versions.iter().map(described).collect::<Vec<_>>())
        }
        [version] => part(artifacts.load(&key(name), number(version)?).await?),
        [version, "metadata"] => {
            let (number, mut versions) = (number(version)?, artifacts.versions(&key(name)).await?);
            let found = match number {
                Some(number) => versions.into_iter().find(|version| version.version == number),
                None => versions.pop(),
            };
            match found {
                Some(version) => response::json(&described(&version)),
                None => Err(ApiError::not_found("Artifact version not found")),
            }
        }
        _ => part(artifacts.load(&key(&path), query.count("version")?).await?),
    }
}

pub(crate) async fn delete(
    State(shared): State<Shared>,
    Tail { session, path }: Tail,
) -> Result<Response, ApiError> {
    service(&shared)?.delete(&ArtifactKey::new(&session, path)).await?;
    response::json(&())
}

/// A session, and what follows `artifacts/`.
pub(crate) struct Tail {
    session: SessionKey,
    path: String,
}

impl FromRequestParts<Shared> for Tail {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        let OfSession(session) = OfSession::from_request_parts(parts, shared).await?;
        Ok(Self { session, path: param(parts, shared, "path").await? })
    }
}

fn service(shared: &Shared) -> Result<&Arc<dyn ArtifactService>, ApiError> {
    let missing = || ApiError::BadRequest("This server has no artifact service".to_owned());
    shared.artifacts.as_ref().ok_or_else(missing)
}

fn part(part: Option<Part>) -> Result<Response, ApiError> {
    match part {
        Some(part) => response::json(&part),
        None => Err(ApiError::not_found("Artifact not found")),
    }
}

/// A version's number; `None` is the newest.
fn number(text: &str) -> Result<Option<u64>, ApiError> {
    match text {
        "latest" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| ApiError::Unusable("Invalid version ID".to_owned())),
    }
}

fn described(version: &ArtifactVersion) -> Value {
    let mut description = json!({
        "version": version.version,
        "canonicalUri": version.canonical_uri,
        "customMetadata": version.custom_metadata,
        "createTime": version.create_time,
    });
    if let Some(mime_type) = &version.mime_type {
        description["mimeType"] = json!(mime_type);
    }
    description
}
