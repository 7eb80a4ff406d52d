//! What models over HTTP share: the client, its limits and its retries.

mod body;
mod credentials;
mod endpoint;
mod failure;
mod retry;
mod secret;

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use sessile_agent::ModelError;
use tokio::time::{Instant, timeout_at};

pub use credentials::{Credentials, TokenProvider};
pub use endpoint::{Endpoint, HttpOptions};
pub(crate) use failure::error_in_body;
use failure::{Failure, from_reqwest, from_status};

/// A model's interface over HTTP.
pub(crate) struct Http {
    /// The name of the model, for errors.
    model: String,
    endpoint: Endpoint,
    client: reqwest::Client,
}

impl Http {
    pub(crate) fn new(model: &str, endpoint: Endpoint) -> Result<Self, ModelError> {
        let configuration = |reason| ModelError::Configuration { model: model.to_owned(), reason };
        endpoint.check().map_err(configuration)?;
        let client = endpoint::client(&endpoint.options)
            .map_err(|error| configuration(format!("the HTTP client cannot be made: {error}")))?;
        Ok(Self { model: model.to_owned(), endpoint, client })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a JSON body and reads the whole answer.
    pub(crate) async fn whole(&self, path: &str, body: Bytes) -> Result<Bytes, ModelError> {
        let deadline = Instant::now() + self.endpoint.options.timeout;
        self.retrying(deadline, || async {
            let response = self.attempt(path, body.clone()).await?;
            let idle = self.endpoint.options.idle_timeout;
            let limit = self.endpoint.options.max_bytes;
            body::read(response, limit, idle).await.map_err(|error| error.into_failure(&self.model))
        })
        .await
    }

    /// Sends a JSON body and streams the data of the events in the response. The request is retried
    /// only until a response has begun.
    pub(crate) async fn events(
        &self,
        path: &str,
        body: Bytes,
    ) -> Result<BoxStream<'static, Result<String, ModelError>>, ModelError> {
        let deadline = Instant::now() + self.endpoint.options.timeout;
        let response = self.retrying(deadline, || self.attempt(path, body.clone())).await?;
        let timeouts = Timeouts { deadline, options: self.endpoint.options.clone() };
        let events = body::events(response, self.endpoint.options.max_bytes);
        let model = self.model.clone();
        Ok(stream::unfold(Some((events, model, timeouts)), |state| async {
            let (mut events, model, timeouts) = state?;
            let (until, after) = timeouts.next();
            match timeout_at(until, events.next()).await {
                Ok(Some(Ok(data))) => Some((Ok(data), Some((events, model, timeouts)))),
                Ok(Some(Err(error))) => Some((Err(error.into_failure(&model).error), None)),
                Ok(None) => None,
                Err(_) => Some((Err(ModelError::Timeout { model, after }), None)),
            }
        })
        .boxed())
    }

    /// Sends one request, and returns the response if its status is a success.
    async fn attempt(&self, path: &str, body: Bytes) -> Result<Response, Failure> {
        let (name, value) =
            self.endpoint.credentials.authorization(&self.model).await.map_err(Failure::last)?.unzip();
        let mut request =
            self.client.post(self.endpoint.url(path)).header(CONTENT_TYPE, "application/json").body(body);
        if let (Some(name), Some(value)) = (name, value) {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| from_reqwest(&self.model, error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(from_status(&self.model, &self.endpoint, response).await)
    }

    /// Retries until an attempt succeeds or fails for good, or until the timeout or the number of
    /// retries is reached.
    async fn retrying<T, F>(&self, deadline: Instant, attempt: impl Fn() -> F) -> Result<T, ModelError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut tried = 0;
        loop {
            let Ok(result) = timeout_at(deadline, attempt()).await else {
                let after = self.endpoint.options.timeout;
                return Err(ModelError::Timeout { model: self.model.clone(), after });
            };
            let failure = match result {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let Some(wait) = retry::wait(&self.endpoint.options, tried, failure.again, retry::random())
            else {
                return Err(failure.error);
            };
            if Instant::now() + wait >= deadline {
                return Err(failure.error);
            }
            tracing::warn!(model = %self.model, error = %failure.error, ?wait, "retrying the request to the model");
            (self.endpoint.sleep)(wait).await;
            tried += 1;
        }
    }
}

/// The deadlines of a stream: of its next piece, and of the whole.
struct Timeouts {
    deadline: Instant,
    options: HttpOptions,
}

impl Timeouts {
    fn next(&self) -> (Instant, Duration) {
        let idle = Instant::now() + self.options.idle_timeout;
        if idle < self.deadline {
            (idle, self.options.idle_timeout)
        } else {
            (self.deadline, self.options.timeout)
        }
    }
}
