//! Traces for an OpenTelemetry collector.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use crate::exit::Failure;

/// Sends traces until it is finished.
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Sends to a collector, if there is one; also returns the layer that records the spans.
    pub(super) fn to<S>(
        endpoint: Option<&str>,
    ) -> anyhow::Result<(Self, Option<impl Layer<S> + Send + Sync + use<S>>)>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let Some(endpoint) = endpoint else { return Ok((Self(None), None)) };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            let text = format!("--otlp-endpoint {endpoint:?} is not a URL; write http://localhost:4318");
            return Err(Failure::Usage(text).into());
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new()?)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(Duration::from_secs(10))
            .build()
            .context("cannot send traces")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("sessile").build())
            .build();
        // The exporter's own requests are not traced: each export would cause the next.
        let own = EnvFilter::default().add_directive(LevelFilter::INFO.into());
        let quiet = ["hyper=off", "reqwest=off", "h2=off", "opentelemetry=off"];
        let filter = quiet.iter().fold(own, |filter, directive| {
            filter.add_directive(directive.parse().expect("the directives in this file are right"))
        });
        let layer =
            tracing_opentelemetry::layer().with_tracer(provider.tracer("sessile")).with_filter(filter);
        Ok((Self(Some(provider)), Some(layer)))
    }

    /// Sends the remaining spans.
    pub(super) async fn finish(self) {
        let Some(provider) = self.0 else { return };
        let finished = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        match finished {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not sent"),
            Err(error) => tracing::warn!(%error, "the last traces were not sent"),
        }
    }
}

/// The HTTP client of the exporter. The exporter runs on a thread without a Tokio runtime, so
/// requests are spawned on ours.
#[derive(Debug)]
struct Client {
    http: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

impl Client {
    fn new() -> anyhow::Result<Self> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("cannot send traces")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .tls_backend_preconfigured(tls)
            .build();
        Ok(Self { http: http.context("cannot send traces")?, runtime: tokio::runtime::Handle::current() })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (http, request) = (self.http.clone(), reqwest::Request::try_from(request)?);
        let sent = self.runtime.spawn(async move {
            let response = http.execute(request).await?.error_for_status()?;
            let (status, body) = (response.status(), response.bytes().await?);
            let mut answer = Response::new(body);
            *answer.status_mut() = status;
            Ok::<_, reqwest::Error>(answer)
        });
        Ok(sent.await??)
    }
}
