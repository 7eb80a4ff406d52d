//! Documents about the API, and what they are made from: the docs of routes, the models of bodies,
//! the OpenAPI document and the metrics. It is the lowest layer, and imports neither `http/` nor
//! `api/`.

pub(crate) mod counting_store;
pub(crate) mod metrics;
pub(crate) mod model;
pub(crate) mod openapi;
pub(crate) mod route_doc;
