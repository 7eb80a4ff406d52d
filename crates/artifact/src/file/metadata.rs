use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sessile_session::Part;
use sessile_state::SharedValue;

/// The file that describes a version. The fields are google-adk's, except for the last, which it
/// ignores.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    /// The name under which it was saved.
    #[serde(default)]
    pub(super) file_name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<String>,
    /// The type of its bytes; a text has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<String>,
    /// Written for google-adk; here, the path of a version follows from the layout.
    #[serde(default)]
    pub(super) canonical_uri: String,
    #[serde(default)]
    pub(super) version: u64,
    #[serde(default)]
    pub(super) create_time: Option<f64>,
    #[serde(default)]
    pub(super) custom_metadata: BTreeMap<String, SharedValue>,
    /// The other fields of the part, such as the URI of a file or the signature of a thought.
    #[serde(default, rename = "sessilePart", skip_serializing_if = "Option::is_none")]
    pub(super) rest: Option<Part>,
}
