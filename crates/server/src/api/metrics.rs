//! The metrics of the server, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::shared::Shared;
use crate::describe::counting_store::Counts;
use crate::describe::metrics::MetricsPage;
use crate::describe::route_doc::{Answer, Doc};
use crate::http::auth::Principal;
use crate::http::error::ApiError;

pub(crate) const METRICS: Doc = Doc::new(
    "server",
    "Metrics for Prometheus: requests, latencies, commits, conflicts, runs, pool.",
    Answer::Media("text/plain; version=0.0.4"),
)
.failing(&[403])
.admin();

pub(crate) async fn metrics(
    State(shared): State<Shared>,
    principal: Principal,
) -> Result<Response, ApiError> {
    principal.is_admin()?;
    let mut page = MetricsPage::default();
    shared.http.metrics.write(&mut page);
    page.single("sessile_runs", "gauge", "Runs in progress.", shared.http.lifecycle.runs());
    if let Some(counts) = &shared.counts {
        write_counts(counts, &mut page);
    }
    for gauge in shared.gauges.iter().flat_map(|gauges| gauges()) {
        page.single(&gauge.name, "gauge", &gauge.help, gauge.value);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0).into_response())
}

fn write_counts(counts: &Counts, page: &mut MetricsPage) {
    page.single("sessile_commits_total", "counter", "Changes that were committed.", counts.commits());
    page.single(
        "sessile_conflicts_total",
        "counter",
        "Changes refused because of a conflicting one.",
        counts.conflicts(),
    );
    page.single(
        "sessile_overwrites_total",
        "counter",
        "Events that overwrote a value which their writer had not seen.",
        counts.overwrites(),
    );
    page.single("sessile_store_errors_total", "counter", "Failures of the store.", counts.failures());
}
