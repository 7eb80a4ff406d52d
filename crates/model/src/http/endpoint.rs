use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::{Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use sessile_session::{BoxError, Clock, SystemClock};

use super::credentials::{Credentials, TokenProvider};

/// Where a model is, the credentials to use, and the timeouts and retries.
///
/// ```
/// use sessile_model::{Credentials, Endpoint};
///
/// let google = Endpoint::gemini("my key");
/// let local = Endpoint::openai("unused").with_base_url("http://localhost:11434/v1").with_credentials(Credentials::none());
/// ```
#[derive(Clone)]
pub struct Endpoint {
    base_url: String,
    /// The part of the URL between the base and the paths of the interface.
    prefix: String,
    pub(super) credentials: Credentials,
    pub(super) options: HttpOptions,
    pub(super) sleep: Sleep,
    pub(super) clock: Arc<dyn Clock>,
}

pub(super) type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// Timeouts, retries and limits of the requests to a model. Begin with the defaults and set the
/// fields that differ.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The timeout of connecting.
    pub connect_timeout: Duration,
    /// The timeout of the whole request: all attempts, and the response to its last byte.
    pub timeout: Duration,
    /// How long a response that has begun may pause.
    pub idle_timeout: Duration,
    /// How often a request is sent again after 408, 429, 5xx or a failed connection.
    pub retries: u32,
    /// The longest wait before the first retry. It doubles with each retry, and the actual wait is
    /// a random part of it (jitter).
    pub first_wait: Duration,
    /// The upper limit of all waits. If the server asks for a longer one, there is no retry.
    pub longest_wait: Duration,
    /// The largest response that is read, in bytes.
    pub max_bytes: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            retries: 4,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            max_bytes: 64 << 20,
        }
    }
}

impl Endpoint {
    /// Google's Gemini, with a key of AI Studio.
    pub fn gemini(key: impl Into<String>) -> Self {
        Self::new("https://generativelanguage.googleapis.com", Credentials::google_key(key))
            .with_prefix("/v1beta".to_owned())
    }

    /// Google's models in a project of Google Cloud; `location` is a region or `global`.
    pub fn vertex(project: &str, location: &str, tokens: Arc<dyn TokenProvider>) -> Self {
        let host = match location {
            "global" => "https://aiplatform.googleapis.com".to_owned(),
            region => format!("https://{region}-aiplatform.googleapis.com"),
        };
        Self::new(host, Credentials::tokens(tokens))
            .with_prefix(format!("/v1beta1/projects/{project}/locations/{location}/publishers/google"))
    }

    /// OpenAI, or a compatible server at another base URL.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new("https://api.openai.com/v1", Credentials::bearer(key))
    }

    /// Any other address.
    pub fn new(base_url: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            base_url: base_url.into(),
            prefix: String::new(),
            credentials,
            options: HttpOptions::default(),
            sleep: Arc::new(|wait| Box::pin(tokio::time::sleep(wait))),
            clock: Arc::new(SystemClock),
        }
    }

    fn with_prefix(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// With another address of the same interface.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), ..self }
    }

    /// With other credentials.
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// With other limits and timeouts.
    pub fn with_options(self, options: HttpOptions) -> Self {
        Self { options, ..self }
    }

    /// With another way to wait between attempts than `tokio::time::sleep`, for tests.
    pub fn with_sleep(
        self,
        sleep: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { sleep: Arc::new(sleep), ..self }
    }

    /// With another clock, which is needed for a `Retry-After` that is a date.
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.base_url.trim_end_matches('/'), self.prefix)
    }

    /// The URL without the user name and password that it may contain.
    fn shown_url(&self) -> String {
        match Url::parse(&self.url("")) {
            Ok(url) if url.username().is_empty() && url.password().is_none() => url.to_string(),
            Ok(url) => format!("{}://[secret]@{}", url.scheme(), url.host_str().unwrap_or("")),
            Err(_) => "[unreadable]".to_owned(),
        }
    }

    /// Checks that it can be used; the error says why not.
    pub(super) fn check(&self) -> Result<(), String> {
        let url =
            Url::parse(&self.url("")).map_err(|error| format!("the base URL cannot be read: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the base URL begins with {}://, not http:// or https://", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the base URL holds a user name or password; give them as credentials".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the base URL has a query or fragment".to_owned());
        }
        self.credentials.check()
    }
}

/// Redirects are not followed: they would carry the key to another host.
pub(super) fn client(options: &HttpOptions) -> Result<reqwest::Client, BoxError> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("sessile/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(options.connect_timeout)
        .build()?;
    Ok(client)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.shown_url())
            .field("credentials", &self.credentials)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
