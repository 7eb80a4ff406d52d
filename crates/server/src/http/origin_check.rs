//! Which origins may send requests: protection against foreign web pages and DNS rebinding.
//!
//! A browser lets any page send requests to a server on this computer, and lets a rebound DNS name
//! pretend to be it. So a request with an `Origin` must come from this server's own pages or from
//! one that is allowed; and a server that listens on a loopback address answers only under a
//! loopback name.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, header};
use regex::Regex;

use super::error::ApiError;

/// Which origins and hosts are accepted.
#[derive(Default)]
pub(crate) struct OriginCheck {
    /// Whether the server listens on a loopback address, if it is known where it listens.
    on_loopback: Option<bool>,
    literal: Vec<String>,
    patterns: Vec<Regex>,
}

impl OriginCheck {
    /// The host that the server listens on.
    pub(crate) fn listens_on(&mut self, host: &str) {
        self.on_loopback = Some(is_loopback(host));
    }

    /// Whether it is known where the server listens.
    pub(crate) fn has_host(&self) -> bool {
        self.on_loopback.is_some()
    }

    /// Accepts these origins too; `*` is all of them, `regex:…` those that a pattern fits as a
    /// whole.
    pub(crate) fn allow(&mut self, origins: &[String]) -> Result<(), regex::Error> {
        for origin in origins {
            match origin.strip_prefix("regex:") {
                Some(pattern) => self.patterns.push(Regex::new(&format!("^(?:{pattern})$"))?),
                None => self.literal.push(origin.clone()),
            }
        }
        Ok(())
    }

    /// Whether any origin is allowed, so that responses need CORS headers.
    pub(crate) fn has_origins(&self) -> bool {
        !self.literal.is_empty() || !self.patterns.is_empty()
    }

    /// Whether an origin is one of the allowed ones.
    pub(crate) fn is_listed(&self, origin: &str) -> bool {
        self.literal.iter().any(|listed| listed == "*" || listed == origin)
            || self.patterns.iter().any(|pattern| pattern.is_match(origin))
    }

    /// Refuses requests of foreign pages.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if !self.is_host_allowed(headers) {
            return Err(ApiError::Forbidden("Forbidden: host not allowed".to_owned()));
        }
        match text(headers, &header::ORIGIN) {
            Some(origin) if !self.is_origin_allowed(origin, headers) => {
                Err(ApiError::Forbidden("Forbidden: origin not allowed".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn is_host_allowed(&self, headers: &HeaderMap) -> bool {
        if self.on_loopback != Some(true) || self.literal.iter().any(|listed| listed == "*") {
            return true;
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let Some(host) = hosts.next() else { return true };
        let Some(host) = host.to_str().ok().filter(|host| !host.contains(',')) else { return false };
        if hosts.next().is_some() {
            return false;
        }
        let host = host.trim();
        is_loopback(host)
            || self.literal.iter().filter_map(|origin| host_of(origin)).any(|listed| same(listed, host))
    }

    fn is_origin_allowed(&self, origin: &str, headers: &HeaderMap) -> bool {
        if self.is_listed(origin) {
            return true;
        }
        let on_loopback = self.on_loopback == Some(true);
        if !self.has_origins() && on_loopback && !host_of(origin).is_some_and(is_loopback) {
            return false;
        }
        own_origin(headers).is_some_and(|own| own == origin)
    }
}

/// The origin of this server's own pages, as its client sees it.
fn own_origin(headers: &HeaderMap) -> Option<String> {
    let forwarded = |name: &'static str| text(headers, &HeaderName::from_static(name));
    let host = forwarded("x-forwarded-host").or_else(|| text(headers, &header::HOST))?;
    let scheme = match forwarded("x-forwarded-proto").unwrap_or("http") {
        "ws" => "http",
        "wss" => "https",
        scheme => scheme,
    };
    Some(format!("{scheme}://{host}"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim)
}

/// The host and port of an origin.
fn host_of(origin: &str) -> Option<&str> {
    let (_, rest) = origin.split_once("://")?;
    rest.split('/').next().filter(|host| !host.is_empty())
}

fn same(listed: &str, host: &str) -> bool {
    bare(listed).eq_ignore_ascii_case(bare(host).trim_end_matches('.'))
}

/// Whether a host, with or without a port, is a loopback name or address.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = bare(host).trim_end_matches('.');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A host without its port; unchanged, if what follows the colon is not a port.
fn bare(host: &str) -> &str {
    let is_port = |text: &str| {
        text.strip_prefix(':')
            .is_some_and(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()))
    };
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return if rest.is_empty() || is_port(rest) { address } else { host };
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') && is_port(&host[name.len()..]) => name,
        _ => host,
    }
}
