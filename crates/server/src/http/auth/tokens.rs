use std::fmt;

use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::AuthError;
use super::principal::{Principal, Rights};

/// Fixed tokens. Only their hashes are known to the server.
pub struct StaticTokens(Vec<Entry>);

struct Entry {
    hash: [u8; 32],
    principal: Principal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    sha256: String,
    user: String,
    #[serde(default)]
    rights: Vec<String>,
}

impl StaticTokens {
    /// Reads a JSON list of `{"sha256": "…", "user": "…", "rights": ["admin", "write_app"]}`. The
    /// hash is that of the token, in hexadecimal digits: `printf %s "$TOKEN" | sha256sum`.
    ///
    /// # Errors
    ///
    /// [`AuthError`] names the entry that cannot be used.
    pub fn from_json(text: &str) -> Result<Self, AuthError> {
        let lines: Vec<Line> = serde_json::from_str(text)
            .map_err(|error| AuthError(format!("the tokens cannot be read: {error}")))?;
        if lines.is_empty() {
            return Err(AuthError("the list of tokens is empty: nobody could do anything".to_owned()));
        }
        let entries = lines.into_iter().enumerate().map(|(number, line)| {
            entry(line).map_err(|reason| AuthError(format!("token {}: {reason}", number + 1)))
        });
        Ok(Self(entries.collect::<Result<_, _>>()?))
    }

    /// The caller that a token identifies. All hashes are compared, each in constant time.
    pub(super) fn principal(&self, token: &str) -> Option<Principal> {
        let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        let mut found = None;
        for entry in &self.0 {
            if bool::from(entry.hash.as_slice().ct_eq(digest.as_ref())) {
                found = Some(entry.principal.clone());
            }
        }
        found
    }
}

/// Counts the tokens, and does not print their hashes.
impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens").field("tokens", &self.0.len()).finish_non_exhaustive()
    }
}

fn entry(line: Line) -> Result<Entry, String> {
    let hash = bytes(&line.sha256).ok_or("sha256 is not 64 hexadecimal digits")?;
    if line.user.trim().is_empty() {
        return Err("its user is blank".to_owned());
    }
    let mut rights = Rights::default();
    for right in &line.rights {
        match right.as_str() {
            "admin" => rights.admin = true,
            "write_app" => rights.write_app = true,
            other => return Err(format!("there is no right {other:?}; the rights are admin and write_app")),
        }
    }
    Ok(Entry { hash, principal: Principal::new(line.user, rights) })
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}
