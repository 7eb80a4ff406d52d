//! Logs on standard error, and traces for a collector.

use clap::{Args, ValueEnum};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::otlp::Telemetry;
use crate::exit::Failure;
use crate::stderr::colours_on;

/// What is logged, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs and traces")]
pub(crate) struct LogArgs {
    /// What to log: error, warn, info, debug or trace, or a filter such as
    /// sessile_server=debug,info.
    #[arg(long, alias = "log_level", env = "SESSILE_LOG", value_name = "LEVEL", default_value = "info")]
    log_level: String,
    /// The same as --log-level debug.
    #[arg(long, short)]
    verbose: bool,
    /// Lines for people, or one JSON object on each line.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
    /// Send traces to this OpenTelemetry collector, over HTTP: `http://localhost:4318`
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogArgs {
    pub(super) fn is_json(&self) -> bool {
        self.log_format == Format::Json
    }

    /// Starts logging, and sending traces if a collector is configured.
    pub(super) fn start(&self) -> anyhow::Result<Telemetry> {
        let level = match (self.verbose, self.log_level.to_ascii_lowercase().as_str()) {
            (true, _) => "debug".to_owned(),
            (false, "warning") => "warn".to_owned(),
            (false, "critical") => "error".to_owned(),
            (false, _) => self.log_level.to_ascii_lowercase(),
        };
        let filter = EnvFilter::try_new(&level).map_err(|error| {
            Failure::Usage(format!("--log-level {level:?} is not valid ({error}); write info or debug"))
        })?;
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match self.log_format {
            Format::Text => lines.with_ansi(colours_on(&std::io::stderr())).with_filter(filter).boxed(),
            Format::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
        };
        let (telemetry, traces) = Telemetry::to(self.otlp_endpoint.as_deref())?;
        Registry::default().with(lines).with(traces).init();
        Ok(telemetry)
    }
}
