//! Removes the secrets of credentials from responses.
//!
//! Agents store credentials in events and state. A client that reads a session gets it without the
//! passwords, tokens and keys inside objects that look like a credential. Texts that cannot contain
//! a credential, which are nearly all, are sent unchanged. google-adk's internal notes in events
//! are removed too.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::bytes::Regex;
use serde::Serialize;
use serde_json::value::RawValue;

/// JSON without the secrets of credentials; everything else is kept byte by byte.
pub(crate) fn redacted(json: Vec<u8>) -> Vec<u8> {
    if !MARKS.is_match(&json) {
        return json;
    }
    match serde_json::from_slice::<&RawValue>(&json) {
        Ok(raw) => clean(raw, Region::Outside).get().as_bytes().to_vec(),
        Err(_) => json,
    }
}

/// A text with something to remove contains at least one of these. An escape could hide a name, so
/// a text with escapes is examined too.
static MARKS: LazyLock<Regex> = LazyLock::new(|| {
    let marks = concat!(
        "authType|auth_type|adk_request_credential|AuthCredential|auth_credential|",
        "requestedAuthConfigs\":\\{\"|requested_auth_configs\":\\{\"|__adk_internal_|\\\\u00"
    );
    Regex::new(marks).expect("the pattern is valid")
});

const AUTH_TYPES: [&str; 14] = [
    "apiKey",
    "API_KEY",
    "api_key",
    "http",
    "HTTP",
    "oauth2",
    "OAUTH2",
    "openIdConnect",
    "OPEN_ID_CONNECT",
    "open_id_connect",
    "serviceAccount",
    "SERVICE_ACCOUNT",
    "service_account",
    "Oauth2",
];

const SECRETS: [&str; 24] = [
    "password",
    "token",
    "additionalHeaders",
    "additional_headers",
    "clientSecret",
    "client_secret",
    "authResponseUri",
    "auth_response_uri",
    "authCode",
    "auth_code",
    "accessToken",
    "access_token",
    "refreshToken",
    "refresh_token",
    "idToken",
    "id_token",
    "codeVerifier",
    "code_verifier",
    "privateKeyId",
    "private_key_id",
    "privateKey",
    "private_key",
    "apiKey",
    "api_key",
];

const CARRIERS: [&str; 6] = [
    "requestedAuthConfigs",
    "requested_auth_configs",
    "rawAuthCredential",
    "raw_auth_credential",
    "exchangedAuthCredential",
    "exchanged_auth_credential",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    Outside,
    /// Inside an event's notes: google-adk's own are left out.
    Notes,
    /// Inside a credential: secrets are left out.
    Credential,
}

type Object = Vec<(String, Box<RawValue>)>;

fn clean(raw: &RawValue, region: Region) -> Box<RawValue> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => write(&items.into_iter().map(|item| clean(item, region)).collect::<Vec<_>>(), raw),
            Err(_) => raw.to_owned(),
        },
        Some(b'{') => match serde_json::from_str::<Entries<'_>>(text) {
            Ok(Entries(entries)) => write(&Written(object(entries, region)), raw),
            Err(_) => raw.to_owned(),
        },
        _ => raw.to_owned(),
    }
}

fn object(entries: Vec<(String, &RawValue)>, region: Region) -> Object {
    let texts: BTreeMap<&str, String> = entries
        .iter()
        .filter_map(|(key, raw)| Some((key.as_str(), serde_json::from_str(raw.get()).ok()?)))
        .collect();
    let is_credential = ["authType", "auth_type"]
        .iter()
        .any(|key| texts.get(key).is_some_and(|kind| AUTH_TYPES.contains(&kind.as_str())));
    let region = if is_credential { Region::Credential } else { region };
    let is_request = texts.get("name").is_some_and(|name| name == "adk_request_credential");
    let mut cleaned = Object::new();
    for (key, raw) in &entries {
        let is_hidden = match region {
            Region::Outside => false,
            Region::Notes => key.starts_with("__adk_internal_"),
            Region::Credential => SECRETS.contains(&key.as_str()),
        };
        if is_hidden {
            continue;
        }
        let inside = CARRIERS.contains(&key.as_str()) || (is_request && (key == "args" || key == "response"));
        let region = match region {
            _ if inside => Region::Credential,
            Region::Outside if key == "customMetadata" => Region::Notes,
            Region::Notes => Region::Outside,
            region => region,
        };
        let value = clean(raw, region);
        if region == Region::Notes && value.get() == "{}" && raw.get() != "{}" {
            continue;
        }
        cleaned.push((key.clone(), value));
    }
    cleaned
}

fn write(value: &impl Serialize, before: &RawValue) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| before.to_owned())
}

/// The entries of an object in their order.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Entries<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry::<String, &'de RawValue>()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

struct Written(Object);

impl Serialize for Written {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    fn clean(json: &str) -> String {
        String::from_utf8(redacted(json.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn what_looks_like_a_credential_loses_its_secrets_and_nothing_else() {
        let json =
            r#"{"state":{"c":{"authType":"oauth2","oauth2":{"clientId":"me","clientSecret":"s"},"n":1.0}}}"#;
        assert_eq!(
            clean(json),
            r#"{"state":{"c":{"authType":"oauth2","oauth2":{"clientId":"me"},"n":1.0}}}"#
        );
        let json = r#"{"requestedAuthConfigs":{"x":{"rawAuthCredential":{"accessToken":"s","u":123456789012345678901}}}}"#;
        let expected = r#"{"requestedAuthConfigs":{"x":{"rawAuthCredential":{"u":123456789012345678901}}}}"#;
        assert_eq!(clean(json), expected);
        let json = r#"{"name":"adk_request_credential","args":{"authConfig":{"token":"s","a":1}},"id":"1"}"#;
        assert_eq!(
            clean(json),
            r#"{"name":"adk_request_credential","args":{"authConfig":{"a":1}},"id":"1"}"#
        );
    }

    #[test]
    fn notes_of_google_adk_itself_are_not_sent() {
        let json = r#"{"customMetadata":{"__adk_internal_x":true,"mine":1},"id":"e"}"#;
        assert_eq!(clean(json), r#"{"customMetadata":{"mine":1},"id":"e"}"#);
        assert_eq!(clean(r#"{"customMetadata":{"__adk_internal_x":true},"id":"e"}"#), r#"{"id":"e"}"#);
        let state = r#"{"state":{"__adk_internal_x":1}}"#;
        assert_eq!(clean(state), state);
    }

    #[test]
    fn other_passwords_stay() {
        for json in [r#"{"state":{"password":"x"}}"#, r#"{"authType":"mine","password":"x"}"#] {
            assert_eq!(clean(json), json);
        }
    }
}
