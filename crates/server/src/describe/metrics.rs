//! Metrics for Prometheus.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};

use super::route_doc::Route;

/// A metric from outside, such as how many connections of a pool are in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Its name, such as `sessile_pool_in_use`.
    pub name: String,
    /// Its description.
    pub help: String,
    /// Its current value.
    pub value: f64,
}

/// The source of the metrics from outside.
pub(crate) type Gauges = Arc<dyn Fn() -> Vec<Gauge> + Send + Sync>;

/// The route of requests that match none: unknown paths, and the files of the web UI.
pub(crate) const UNMATCHED: &str = "unknown";

/// The upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The requests so far, by route and method.
#[derive(Default)]
pub(crate) struct Metrics {
    routes: HashMap<String, Vec<(Method, Requests)>>,
    others: Requests,
}

#[derive(Default)]
struct Requests {
    statuses: Mutex<BTreeMap<u16, u64>>,
    /// How many requests took at most each bound and longer than the one before; the last counts
    /// those that took longer than all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Requests {
    /// How many took at most the bound at this index; at the last index, all.
    fn within(&self, index: usize) -> u64 {
        self.buckets[..=index].iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }
}

impl Metrics {
    /// Counters of zero for these routes.
    pub(crate) fn new(routes: &[Route]) -> Self {
        let mut metrics = Self::default();
        for route in routes {
            let methods = metrics.routes.entry(route.served.clone()).or_default();
            if methods.iter().all(|(method, _)| *method != route.method) {
                methods.push((route.method.clone(), Requests::default()));
            }
        }
        metrics
    }

    /// Counts an answered request.
    pub(crate) fn count(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let methods = self.routes.get(route).map_or(&[][..], Vec::as_slice);
        let known = methods.iter().find(|(other, _)| other == method);
        let requests = known.map_or(&self.others, |(_, requests)| requests);
        *lock(&requests.statuses).entry(status.as_u16()).or_default() += 1;
        let seconds = took.as_secs_f64();
        let index = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        requests.buckets[index].fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        requests.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// Writes what was counted.
    pub(crate) fn write(&self, text: &mut MetricsPage) {
        let known = self.routes.iter().flat_map(|(route, methods)| {
            methods.iter().map(move |(method, requests)| ((method.as_str(), route.as_str()), requests))
        });
        let mut routes: Vec<_> = known.chain([(("any", UNMATCHED), &self.others)]).collect();
        routes.retain(|(_, requests)| requests.within(BOUNDS.len()) > 0);
        routes.sort_by_key(|(key, _)| *key);
        text.family("sessile_http_requests_total", "counter", "Requests that got a response.");
        for ((method, route), requests) in &routes {
            for (status, count) in lock(&requests.statuses).iter() {
                let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
                text.line("sessile_http_requests_total", &labels, *count);
            }
        }
        let name = "sessile_http_request_seconds";
        text.family(name, "histogram", "How long requests took, until the head of the response.");
        for ((method, route), requests) in &routes {
            let count = |index: usize| requests.within(index);
            for (index, bound) in BOUNDS.iter().enumerate() {
                let labels = format!("{{method=\"{method}\",route=\"{route}\",le=\"{bound}\"}}");
                text.line(&format!("{name}_bucket"), &labels, count(index));
            }
            let labels = format!("{{method=\"{method}\",route=\"{route}\",le=\"+Inf\"}}");
            text.line(&format!("{name}_bucket"), &labels, count(BOUNDS.len()));
            let labels = format!("{{method=\"{method}\",route=\"{route}\"}}");
            let sum = Duration::from_micros(requests.microseconds.load(Ordering::Relaxed)).as_secs_f64();
            text.line(&format!("{name}_sum"), &labels, sum);
            text.line(&format!("{name}_count"), &labels, count(BOUNDS.len()));
        }
    }
}

/// A page in the text format of Prometheus.
#[derive(Default)]
pub(crate) struct MetricsPage(pub(crate) String);

impl MetricsPage {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!("{name}{labels} {value}\n"));
    }

    /// A metric with one value.
    pub(crate) fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.line(name, "", value);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
