//! Parameters of the query, in both spellings.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sessile_session::{EventWindow, Version};

use super::error::ApiError;
use super::json::{Problem, flag};
use crate::describe::model::is_called;

/// The first and the last second that stores can compare: those of the years 1 to 9999.
const FIRST_TIME: f64 = -62_135_596_800.0;
const LAST_TIME: f64 = 253_402_300_799.0;

/// The parameters behind the question mark.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// A parameter as text; the first, if it is given more than once.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| is_called(name, key)).map(|(_, value)| value.as_str())
    }

    /// A whole number that is not negative.
    pub(crate) fn count<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let msg = "Input should be a valid integer, unable to parse string as an integer";
        self.parse(name, "int_parsing", msg, |text| text.parse().ok())
    }

    /// A finite number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        let parse = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        self.parse(name, "float_parsing", "Input should be a valid number", parse)
    }

    /// A boolean; false if it is left out.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        let msg = "Input should be a valid boolean, unable to interpret input";
        Ok(self.parse(name, "bool_parsing", msg, flag)?.unwrap_or(false))
    }

    /// The window of events to read.
    pub(crate) fn window(&self) -> Result<EventWindow, ApiError> {
        Ok(EventWindow {
            last: self.count("numRecentEvents")?,
            after_time: self.number("afterTimestamp")?.map(|time| time.clamp(FIRST_TIME, LAST_TIME)),
            after_version: self.count::<Version>("afterVersion")?,
            until_version: None,
        })
    }

    fn parse<T>(
        &self,
        name: &str,
        kind: &'static str,
        msg: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(vec![Problem::parameter(kind, "query", name, msg, text)].into()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(ApiError::BadRequest(format!("The query cannot be read: {error}"))),
        }
    }
}
