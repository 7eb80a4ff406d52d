use base64::prelude::*;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::signature::KeyPair;
use serde_json::{Value, json};
use sessile_server::{Auth, JwtCheck, JwtKeys, Server, StaticTokens};
use sessile_session::{Clock, SessionService};

use crate::apps::{server, sessions};
use crate::client::Client;
use crate::runs::says;

const SECRET: &[u8] = b"a secret of at least thirty-two bytes";
const SESSION: &str = "/apps/echo/users/ada/sessions/s";

/// A clock that stands at the second 1000.
struct Second1000;

impl Clock for Second1000 {
    fn now(&self) -> f64 {
        1000.0
    }
}

fn hs256() -> JwtCheck {
    JwtCheck::new(JwtKeys::from_secret(SECRET).unwrap())
}

fn token(claims: Value) -> String {
    encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET)).unwrap()
}

pub(crate) fn guarded(sessions: SessionService) -> Server {
    server(sessions).with_auth(Auth::off().with_jwt(hs256())).with_clock(Second1000)
}

/// Tokens of the principals that tests know.
pub(crate) fn of(user: &str, scope: &str) -> String {
    token(json!({"sub": user, "exp": 2000, "scope": scope}))
}

pub(crate) fn expired() -> String {
    token(json!({"sub": "ada", "exp": 900}))
}

impl Client {
    pub(crate) fn bearing(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }
}

async fn status(check: JwtCheck, token: &str) -> u16 {
    let server = server(sessions()).with_auth(Auth::off().with_jwt(check)).with_clock(Second1000);
    let api = Client::new(server).bearing(token);
    api.get("/apps/echo/users/ada/sessions").await.status.as_u16()
}

#[tokio::test]
async fn a_token_must_be_signed_and_timely() {
    let fits = json!({"sub": "ada", "exp": 2000});
    assert_eq!(status(hs256(), &token(fits.clone())).await, 200);
    assert_eq!(status(hs256(), &token(json!({"sub": "ada", "exp": 980}))).await, 200, "within the leeway");
    assert_eq!(status(hs256(), &token(json!({"sub": "ada", "exp": 970}))).await, 401);
    assert_eq!(status(hs256(), &token(json!({"sub": "ada", "exp": 2000, "nbf": 1031}))).await, 401);
    assert_eq!(status(hs256(), &token(json!({"sub": "ada", "exp": 2000, "nbf": 1029}))).await, 200);
    assert_eq!(status(hs256(), &token(json!({"sub": "ada"}))).await, 401, "exp is required");
    assert_eq!(status(hs256(), &token(json!({"exp": 2000}))).await, 401, "sub is required");
    assert_eq!(status(hs256(), &token(json!({"sub": " ", "exp": 2000}))).await, 401);
    let other = EncodingKey::from_secret(b"another secret of thirty-two bytes or more");
    assert_eq!(status(hs256(), &encode(&Header::default(), &fits, &other).unwrap()).await, 401);
    let hs512 = encode(&Header::new(Algorithm::HS512), &fits, &EncodingKey::from_secret(SECRET)).unwrap();
    assert_eq!(status(hs256(), &hs512).await, 401, "a token does not choose its algorithm");
    let claims = BASE64_URL_SAFE_NO_PAD.encode(fits.to_string());
    let none = format!("{}.{claims}.", BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#));
    for bad in [none.as_str(), "", "x", "a.b.c"] {
        assert_eq!(status(hs256(), bad).await, 401, "{bad}");
    }
}

#[tokio::test]
async fn audience_and_issuer_are_checked_if_they_are_set() {
    let check = || hs256().with_audience("sessile").with_issuer("us");
    let claims = |aud: Value, iss: &str| token(json!({"sub": "ada", "exp": 2000, "aud": aud, "iss": iss}));
    assert_eq!(status(check(), &claims(json!("sessile"), "us")).await, 200);
    assert_eq!(status(check(), &claims(json!(["x", "sessile"]), "us")).await, 200);
    assert_eq!(status(check(), &claims(json!("other"), "us")).await, 401);
    assert_eq!(status(check(), &claims(json!("sessile"), "them")).await, 401);
    assert_eq!(status(check(), &token(json!({"sub": "ada", "exp": 2000}))).await, 401);
}

#[tokio::test]
async fn public_keys_verify_tokens_and_are_not_secrets() {
    let pem = include_bytes!("../keys/rsa.public.pem");
    let token = include_str!("../keys/rs256.jwt");
    let rs256 = || JwtCheck::new(JwtKeys::from_pem(pem).unwrap());
    assert_eq!(status(rs256(), token).await, 200);
    assert_eq!(status(rs256(), &token.replace('.', ".x")).await, 401);
    // The public key is no secret for HS256.
    let forged =
        encode(&Header::default(), &json!({"sub": "ada", "exp": 2000}), &EncodingKey::from_secret(pem));
    assert_eq!(status(rs256(), &forged.unwrap()).await, 401);

    let document = ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let pair = ring::signature::Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let public = pair.public_key().as_ref();
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::EdDSA) };
    let key = EncodingKey::from_ed_der(document.as_ref());
    let token = encode(&header, &json!({"sub": "ada", "exp": 2000}), &key).unwrap();
    let der = [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00], public].concat();
    let pem =
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64_STANDARD.encode(der));
    assert_eq!(status(JwtCheck::new(JwtKeys::from_pem(pem.as_bytes()).unwrap()), &token).await, 200);

    let jwk = |id: &str| json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": BASE64_URL_SAFE_NO_PAD.encode(public)});
    let secret =
        json!({"kty": "oct", "kid": "s", "alg": "HS256", "k": BASE64_URL_SAFE_NO_PAD.encode(SECRET)});
    let set = |id: &str| JwtKeys::from_jwks(&json!({"keys": [secret, jwk(id)]}).to_string()).unwrap();
    assert_eq!(status(JwtCheck::new(set("one")), &token).await, 200);
    assert_eq!(status(JwtCheck::new(set("two")), &token).await, 401);
    assert_eq!(
        status(JwtCheck::new(set("one")), &self::token(json!({"sub": "ada", "exp": 2000}))).await,
        200
    );
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    assert!(JwtKeys::from_secret(b"short").is_err());
    assert!(JwtKeys::from_pem(b"nonsense").is_err());
    assert!(JwtKeys::from_jwks("{}").is_err());
    assert!(JwtKeys::from_jwks(r#"{"keys":[]}"#).is_err());
    let secret = |bytes: &[u8]| json!({"kty": "oct", "kid": "s", "k": BASE64_URL_SAFE_NO_PAD.encode(bytes)});
    let set = |key: Value| JwtKeys::from_jwks(&json!({"keys": [key]}).to_string());
    let refused = set(secret(&[7; 31])).err().unwrap().to_string();
    assert_eq!(refused, "the key Some(\"s\") has 31 bytes; a secret for HS256 has at least 32 bytes");
    assert!(set(secret(&[7; 32])).is_ok());
    let mut for_encryption = secret(&[7; 32]);
    for_encryption["use"] = json!("enc");
    let refused = set(for_encryption).err().unwrap().to_string();
    assert_eq!(refused, "the JWKS has no key for HS256, RS256 or EdDSA");
    for tokens in ["", "[]", r#"[{"sha256":"xx","user":"a"}]"#, r#"[{"sha256":"","user":"a","typo":1}]"#] {
        assert!(StaticTokens::from_json(tokens).is_err(), "{tokens}");
    }
    let hash = "0".repeat(64);
    let entry =
        |user: &str, right: &str| json!([{"sha256": hash, "user": user, "rights": [right]}]).to_string();
    assert!(
        StaticTokens::from_json(&entry("a", "root")).err().unwrap().to_string().contains("there is no right")
    );
    assert!(StaticTokens::from_json(&entry(" ", "admin")).is_err());
}

#[tokio::test]
async fn fixed_tokens_are_known_by_their_hashes() {
    let hash = |token: &str| -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let list = json!([{"sha256": hash("ada's"), "user": "ada"},
                      {"sha256": hash("root's"), "user": "root", "rights": ["admin"]}]);
    let tokens = StaticTokens::from_json(&list.to_string()).unwrap();
    let auth = Auth::off().with_tokens(tokens).with_jwt(hs256());
    let api = Client::new(server(sessions()).with_auth(auth).with_clock(Second1000));
    let ada = "/apps/echo/users/ada/sessions";
    api.bearing("ada's").get(ada).await.ok();
    api.bearing("root's").get(ada).await.ok();
    api.bearing(&of("ada", "")).get(ada).await.ok();
    api.bearing("ada's ").get(ada).await.ok();
    assert_eq!(api.bearing("Ada's").get(ada).await.fails(401), "The token is not valid");
    api.with("authorization", "Basic YWRhJ3M=").get(ada).await.fails(401);
    let answer = api.get(ada).await;
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    answer.fails(401);
}

#[tokio::test]
async fn writing_application_state_needs_the_right_on_every_route() {
    let api = Client::new(guarded(sessions()));
    let (plain, writer) = (api.bearing(&of("ada", "")), api.bearing(&of("ada", "x sessile:write_app")));
    let sessions = "/apps/echo/users/ada/sessions";
    writer.post(SESSION, json!({"app:k": 1})).await.ok();
    let mut run = says("x");
    run["stateDelta"] = json!({"app:k": 2});
    let doors = [
        (sessions, "POST", json!({"state": {"app:k": 2}})),
        ("/apps/echo/users/ada/sessions/t", "POST", json!({"app:k": 2})),
        (SESSION, "PATCH", json!({"stateDelta": {"a": 1, "app:k": 2}})),
        (SESSION, "PATCH", json!({"stateRemove": ["app:k"]})),
        ("/apps/echo/state", "PATCH", json!({"stateDelta": {"k": 2}})),
        ("/apps/echo/state", "PATCH", json!({"stateRemove": ["k"]})),
        ("/run", "POST", run.clone()),
        ("/run_sse", "POST", run),
    ];
    for (path, method, body) in doors {
        let method = method.parse().unwrap();
        let answer = plain.send(method, path, Some(body.to_string())).await;
        let detail = answer.fails(403);
        assert!(detail.as_str().unwrap().contains("write_app"), "{path}: {detail}");
    }
    let session = plain.get(SESSION).await.ok();
    assert_eq!((&session["state"], &session["events"]), (&json!({"app:k": 1}), &json!([])));
    assert_eq!(plain.get(sessions).await.ok().as_array().unwrap().len(), 1);
    writer.patch(SESSION, json!({"stateDelta": {"app:k": 3}})).await.ok();
    writer.patch("/apps/echo/state", json!({"stateDelta": {"k": 4}})).await.ok();
    plain.post(&format!("{SESSION}/fork"), json!({})).await.ok();
    assert_eq!(plain.get("/apps/echo/state").await.ok(), json!({"k": 4}));
}

#[tokio::test]
async fn traces_show_the_runs_of_their_own_user_only() {
    let api = Client::new(guarded(sessions()));
    let (ada, bob) = (api.bearing(&of("ada", "")), api.bearing(&of("bob", "")));
    ada.post(SESSION, json!({})).await.ok();
    bob.post("/apps/echo/users/bob/sessions/s", json!({})).await.ok();
    let event = ada.post("/run", says("secret")).await.ok()[0]["id"].clone();
    let (session, event) = (
        "/dev/apps/echo/debug/trace/session/s",
        format!("/dev/apps/echo/debug/trace/{}", event.as_str().unwrap()),
    );
    assert_eq!(ada.get(session).await.ok().as_array().unwrap().len(), 3);
    ada.get(&event).await.ok();
    assert_eq!(bob.get(session).await.ok(), json!([]));
    assert_eq!(bob.get(&event).await.fails(404), "Trace not found");
    let admin = api.bearing(&of("root", "sessile:admin"));
    admin.get(&event).await.ok();
    assert_eq!(admin.get("/apps/echo/sessions").await.ok().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn events_are_appended_by_admins_only() {
    let api = Client::new(guarded(sessions()));
    let events = format!("{SESSION}/events");
    let (writer, admin) =
        (api.bearing(&of("ada", "sessile:write_app")), api.bearing(&of("eve", "sessile:admin")));
    writer.post(SESSION, json!({})).await.ok();
    let event = json!({"author": "echo", "content": {"parts": [{"functionCall": {"id": "x", "name": "f"}}]}});
    writer.post(&events, event.clone()).await.fails(403);
    assert_eq!(writer.get(SESSION).await.ok()["events"], json!([]));
    admin.post(&events, event).await.ok();
}

#[tokio::test]
async fn a_token_for_another_audience_is_refused() {
    let made_for = |audience: &str| token(json!({"sub": "ada", "exp": 2000, "aud": audience}));
    assert_eq!(status(hs256(), &made_for("elsewhere")).await, 401, "it is not for us, whoever we are");
    let named = hs256().with_audience("sessile");
    assert_eq!(status(named, &made_for("sessile")).await, 200);
}

#[tokio::test]
async fn a_watch_ends_when_its_token_expires() {
    let api = Client::new(guarded(sessions()));
    // It is believed for 30 seconds after it expires, of which a quarter of one is left.
    let ada = api.bearing(&token(json!({"sub": "ada", "exp": 970.25})));
    ada.post(SESSION, json!({})).await.ok();
    let watch = ada.get(&format!("{SESSION}/watch")).await;
    let frames = crate::extensions::frames(&watch.text);
    assert_eq!(frames.iter().map(|frame| frame.0.as_str()).collect::<Vec<_>>(), ["snapshot", "error"]);
    let text = "The token has expired; watch again with a new one, after the last id";
    assert_eq!(frames[1].2, json!({"detail": text}));
}
