use std::fmt;

use base64::prelude::*;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use super::AuthError;
use super::principal::{Principal, Rights};

/// How JSON Web Tokens are verified.
#[derive(Debug)]
pub struct JwtCheck {
    keys: JwtKeys,
    audience: Option<String>,
    issuer: Option<String>,
    leeway: u64,
}

/// Keys that verify tokens. Each is for one algorithm, so that a token cannot choose how it is
/// verified.
pub struct JwtKeys(Vec<Key>);

struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: f64,
    nbf: Option<f64>,
    /// Separated by spaces; `sessile:admin` and `sessile:write_app` are rights.
    #[serde(default)]
    scope: String,
}

impl JwtCheck {
    /// Tokens signed by one of these keys. Their `sub` is the user.
    pub fn new(keys: JwtKeys) -> Self {
        Self { keys, audience: None, issuer: None, leeway: 30 }
    }

    /// Only tokens for this audience.
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Only tokens by this issuer.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// With clocks that differ by up to this many seconds; 30 if it is not set.
    #[must_use]
    pub fn with_leeway(mut self, seconds: u64) -> Self {
        self.leeway = seconds;
        self
    }

    /// The caller that a token identifies, or why it is refused.
    pub(super) fn principal(&self, token: &str, now: f64) -> Result<Principal, String> {
        let header = jsonwebtoken::decode_header(token).map_err(|error| error.to_string())?;
        let fits = |key: &&Key| {
            key.algorithm == header.alg && (header.kid.is_none() || key.id.is_none() || key.id == header.kid)
        };
        let mut reason = "no key fits".to_owned();
        for key in self.keys.0.iter().filter(fits) {
            match jsonwebtoken::decode::<Claims>(token, &key.key, &self.validation(key.algorithm)) {
                Ok(token) => return self.accepted(token.claims, now),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(reason)
    }

    /// The checks of the signature, the audience and the issuer. Times are checked in `accepted`,
    /// with the server's clock.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        // Without a configured audience, a token with an audience is for another service and
        // refused.
        validation.validate_aud = true;
        let mut required = vec!["exp", "sub"];
        if let Some(audience) = &self.audience {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        validation
    }

    #[expect(clippy::cast_precision_loss, reason = "a leeway is a few seconds")]
    fn accepted(&self, claims: Claims, now: f64) -> Result<Principal, String> {
        let leeway = self.leeway as f64;
        if claims.exp + leeway <= now {
            return Err("it has expired".to_owned());
        }
        if claims.nbf.is_some_and(|from| from - leeway > now) {
            return Err("it is not valid yet".to_owned());
        }
        if claims.sub.trim().is_empty() {
            return Err("its subject is blank".to_owned());
        }
        let has = |right: &str| claims.scope.split(' ').any(|word| word == right);
        let rights = Rights { admin: has("sessile:admin"), write_app: has("sessile:write_app") };
        Ok(Principal::new(claims.sub, rights).until(claims.exp + leeway))
    }
}

impl JwtKeys {
    /// A secret for HS256; white space at its end is ignored, so that it can be the content of a
    /// file.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if it is shorter than 32 bytes.
    pub fn from_secret(secret: &[u8]) -> Result<Self, AuthError> {
        let secret = secret.trim_ascii_end();
        if secret.len() < SHORTEST_SECRET {
            return Err(AuthError(format!("a secret for HS256 has at least {SHORTEST_SECRET} bytes")));
        }
        Ok(Self(vec![Key { id: None, algorithm: Algorithm::HS256, key: DecodingKey::from_secret(secret) }]))
    }

    /// A public key in PEM, for RS256 or EdDSA.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if it is neither.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthError> {
        if pem.windows(7).any(|word| word == b"PRIVATE") {
            return Err(AuthError("this is a private key; the server needs the public key only".to_owned()));
        }
        let (algorithm, key) = match (DecodingKey::from_rsa_pem(pem), DecodingKey::from_ed_pem(pem)) {
            (Ok(key), _) => (Algorithm::RS256, key),
            (_, Ok(key)) => (Algorithm::EdDSA, key),
            (Err(error), _) => return Err(AuthError(format!("the key is neither RSA nor Ed25519: {error}"))),
        };
        Ok(Self(vec![Key { id: None, algorithm, key }]))
    }

    /// A set of keys as a JWKS document; keys for other uses or algorithms are left out.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if it is not one, no key of it can be used, or a secret for HS256 is shorter
    /// than 32 bytes.
    pub fn from_jwks(text: &str) -> Result<Self, AuthError> {
        let set: JwkSet = serde_json::from_str(text)
            .map_err(|error| AuthError(format!("the JWKS cannot be read: {error}")))?;
        let mut keys = Vec::new();
        for jwk in &set.keys {
            let Some(algorithm) = algorithm(jwk) else { continue };
            check_secret(jwk)?;
            let key = DecodingKey::from_jwk(jwk).map_err(|error| {
                AuthError(format!("the key {:?} cannot be used: {error}", jwk.common.key_id))
            })?;
            keys.push(Key { id: jwk.common.key_id.clone(), algorithm, key });
        }
        if keys.is_empty() {
            return Err(AuthError("the JWKS has no key for HS256, RS256 or EdDSA".to_owned()));
        }
        Ok(Self(keys))
    }
}

/// Names the algorithms, and not the keys: the key of HS256 is a secret.
impl fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<Algorithm> = self.0.iter().map(|key| key.algorithm).collect();
        f.debug_struct("JwtKeys").field("algorithms", &algorithms).finish_non_exhaustive()
    }
}

/// The shortest secret that is accepted for HS256, in bytes: shorter ones can be guessed.
const SHORTEST_SECRET: usize = 32;

/// Refuses a secret that could be guessed.
fn check_secret(jwk: &Jwk) -> Result<(), AuthError> {
    let AlgorithmParameters::OctetKey(secret) = &jwk.algorithm else { return Ok(()) };
    let id = &jwk.common.key_id;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(secret.value.trim_end_matches('='));
    let bytes = bytes.map_err(|error| AuthError(format!("the key {id:?} cannot be used: {error}")))?;
    if bytes.len() < SHORTEST_SECRET {
        return Err(AuthError(format!(
            "the key {id:?} has {} bytes; a secret for HS256 has at least {SHORTEST_SECRET} bytes",
            bytes.len()
        )));
    }
    Ok(())
}

/// The one algorithm that a key checks.
fn algorithm(jwk: &Jwk) -> Option<Algorithm> {
    if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let own = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        _ => return None,
    };
    match &jwk.common.key_algorithm {
        Some(named) if named.to_string() != format!("{own:?}") => None,
        _ => Some(own),
    }
}
