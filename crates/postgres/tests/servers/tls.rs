//! Encrypted connections, with a real server and certificates made here.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use sessile_postgres::{PostgresOptions, PostgresStore, TlsIdentity, TlsMode, TlsOptions, TlsRoots};
use sessile_session::{CreateSession, EventWindow, SessionError, SessionService};
use tempfile::TempDir;

use crate::certificates::{Authority, Identity, self_signed};
use crate::cluster::Cluster;
use crate::impostor;

/// A server with TLS, whose certificate is for `localhost`, and files for its callers.
struct Server {
    cluster: Cluster,
    files: TempDir,
    certificate: String,
}

/// The `pg_hba.conf`: which users may connect, and how. `postgres` may from anywhere.
const RULES: &str = "
    local all all trust
    host all postgres 127.0.0.1/32 trust
    hostssl all only_tls 127.0.0.1/32 trust
    hostnossl all only_plain 127.0.0.1/32 trust
    hostssl all with_certificate 127.0.0.1/32 cert
    host all with_password 127.0.0.1/32 scram-sha-256
";

impl Server {
    /// The one that all tests share, as long as one of them runs.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("the server starts");
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    fn start() -> Self {
        let trusted = Authority::new("trusted");
        let server = Self::with(&trusted.server(&["localhost"]), &trusted.certificate);
        let stranger = Authority::new("stranger");
        server.file("root.pem", &trusted.certificate);
        server.file("stranger.pem", &stranger.certificate);
        for (name, identity) in
            [("user", trusted.user("with_certificate")), ("stray", stranger.user("with_certificate"))]
        {
            server.file(&format!("{name}.pem"), &identity.certificate);
            server.file(&format!("{name}.key"), &identity.key);
        }
        server.sql(
            "CREATE ROLE only_tls LOGIN; CREATE ROLE only_plain LOGIN; CREATE ROLE with_certificate LOGIN;
             CREATE ROLE with_password LOGIN PASSWORD 'open sesame';",
        );
        server
    }

    fn with(identity: &Identity, root: &str) -> Self {
        let cluster = Cluster::make();
        cluster.write("server.crt", &identity.certificate);
        cluster.write("server.key", &identity.key);
        cluster.write("root.crt", root);
        cluster.write("pg_hba.conf", RULES);
        cluster.write("postgresql.auto.conf", "ssl = on\nssl_ca_file = 'root.crt'\n");
        cluster.restart();
        let files = tempfile::tempdir().expect("a temporary folder is made");
        Self { cluster, files, certificate: identity.certificate.clone() }
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file is written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A URL with parameters, in which `{name}` is the path of a file.
    fn url(&self, user: &str, host: &str, parameters: &str) -> String {
        let folder = self.files.path().display().to_string().replace('/', "%2F");
        let parameters = parameters.replace('{', &format!("{folder}%2F")).replace('}', "");
        format!("{}?pool_timeout=20&{parameters}", self.cluster.url_of(user, host))
    }

    fn sql(&self, statements: &str) {
        let (url, statements) = (self.url("postgres", "127.0.0.1", ""), statements.to_owned());
        let run = async move {
            let pool = PostgresOptions::from_url(&url).expect("a URL").pool().expect("a pool");
            pool.get()
                .await
                .expect("a connection")
                .batch_execute(&statements)
                .await
                .expect("the statements run");
        };
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(run);
        })
        .join()
        .expect("the statements run");
    }
}

/// Whether a connection made with this URL is encrypted.
async fn encrypted(url: &str) -> bool {
    let pool = PostgresOptions::from_url(url).expect("the URL is understood").pool().expect("a pool is made");
    let client = pool.get().await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
    let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    client.query_one(query, &[]).await.expect("the server knows").get(0)
}

/// Why the server cannot be used with this URL.
async fn refusal(url: &str) -> String {
    match PostgresStore::connect_url(url).await {
        Err(SessionError::Unusable { reason }) => reason,
        Err(other) => panic!("{url}: another error: {other:?}"),
        Ok(_) => panic!("{url}: the database is used"),
    }
}

#[tokio::test]
async fn every_mode_encrypts_as_it_says() {
    let server = Server::shared();
    for (parameters, expected) in [
        ("sslmode=disable", false),
        ("sslmode=allow", false),
        ("", true),
        ("sslmode=prefer", true),
        ("sslmode=require", true),
        ("ssl=require", true),
        ("sslmode=require&sslrootcert={root.pem}", true),
        ("sslmode=verify-ca&sslrootcert={root.pem}", true),
        ("sslmode=verify-full&sslrootcert={root.pem}", true),
        ("ssl=verify-full&sslrootcert={root.pem}", true),
    ] {
        let url = server.url("postgres", "localhost", parameters);
        assert_eq!(encrypted(&url).await, expected, "{parameters}");
    }
}

#[tokio::test]
async fn sessions_are_kept_over_an_encrypted_connection() {
    let server = Server::shared();
    server.sql("CREATE SCHEMA kept");
    let url = server.url(
        "postgres",
        "localhost",
        "sslmode=verify-full&sslrootcert={root.pem}&options=-csearch_path%3Dkept",
    );
    let service = SessionService::new(PostgresStore::connect_url(&url).await.unwrap());
    let made = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    assert!(service.get(made.key(), EventWindow::ALL).await.unwrap().is_some());
}

#[tokio::test]
async fn options_say_the_same_as_a_url() {
    let server = Server::shared();
    let config = server.cluster.url_of("with_certificate", "localhost").parse().unwrap();
    let mut options = PostgresOptions::new(config);
    options.tls = TlsOptions {
        mode: TlsMode::VerifyFull,
        roots: TlsRoots::File(server.path("root.pem")),
        identity: Some(TlsIdentity { certificate: server.path("user.pem"), key: server.path("user.key") }),
    };
    let parameters = "sslmode=verify-full&sslrootcert={root.pem}&sslcert={user.pem}&sslkey={user.key}";
    let url = server.url("with_certificate", "localhost", parameters);
    assert_eq!(PostgresOptions::from_url(&url).unwrap().tls, options.tls);
    server.sql("CREATE SCHEMA with_certificate AUTHORIZATION with_certificate");
    PostgresStore::with_pool(options.pool().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_certificate_from_an_untrusted_issuer_is_refused() {
    let server = Server::shared();
    for mode in ["require", "verify-ca", "verify-full"] {
        let parameters = format!("sslmode={mode}&sslrootcert={{stranger.pem}}");
        let reason = refusal(&server.url("postgres", "localhost", &parameters)).await;
        assert!(reason.contains("no certificate in sslrootcert signed"), "{mode}: {reason}");
    }
    let prefer = server.url("postgres", "localhost", "sslmode=prefer&sslrootcert={stranger.pem}");
    assert!(!encrypted(&prefer).await, "prefer goes on in plain, as libpq does");
    let reason =
        refusal(&server.url("only_tls", "localhost", "sslmode=prefer&sslrootcert={stranger.pem}")).await;
    assert!(reason.contains("no certificate in sslrootcert signed"), "{reason}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_only_by_verify_full() {
    let server = Server::shared();
    let reason =
        refusal(&server.url("postgres", "127.0.0.1", "sslmode=verify-full&sslrootcert={root.pem}")).await;
    assert!(reason.contains("for another host") && reason.contains("sslmode=verify-ca"), "{reason}");
    assert!(
        encrypted(&server.url("postgres", "127.0.0.1", "sslmode=verify-ca&sslrootcert={root.pem}")).await
    );
}

#[tokio::test]
async fn an_impostor_with_the_right_certificate_and_another_key_is_refused() {
    let server = Server::shared();
    let own = self_signed(&["localhost"], 2099);
    for parameters in ["sslmode=require", "sslmode=verify-full&sslrootcert={root.pem}"] {
        let port = impostor::start(&server.certificate, &own);
        let url = server.url("postgres", "localhost", parameters);
        let (_, after) = url.split_once("localhost:").unwrap();
        let url = format!("postgresql://postgres@localhost:{port}{}", &after[after.find('/').unwrap()..]);
        let reason = refusal(&url).await;
        assert!(reason.contains("this may not be the right server"), "{reason}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_used_unencrypted_only_if_the_mode_allows_it() {
    let server = Server::shared();
    let plain = Cluster::start();
    let url = |mode: &str| {
        let url = server.url("postgres", "127.0.0.1", &format!("sslmode={mode}&sslrootcert={{root.pem}}"));
        let (_, parameters) = url.split_once('?').unwrap();
        format!("{}?{parameters}", plain.url())
    };
    for mode in ["disable", "allow", "prefer"] {
        assert!(!encrypted(&url(mode)).await, "{mode}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let reason = refusal(&url(mode)).await;
        assert!(reason.contains("turn on `ssl` at the server, or use sslmode=prefer"), "{mode}: {reason}");
    }
}

#[tokio::test]
async fn a_server_that_requires_tls_gets_it() {
    let server = Server::shared();
    let reason = refusal(&server.url("only_tls", "localhost", "sslmode=disable")).await;
    assert!(reason.contains("pg_hba.conf") && reason.contains("sslmode=require"), "{reason}");
    for mode in ["allow", "prefer", "require"] {
        assert!(encrypted(&server.url("only_tls", "localhost", &format!("sslmode={mode}"))).await, "{mode}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_tls_is_used_unencrypted_only_if_the_mode_allows_it() {
    let server = Server::shared();
    for mode in ["disable", "allow", "prefer"] {
        assert!(
            !encrypted(&server.url("only_plain", "localhost", &format!("sslmode={mode}"))).await,
            "{mode}"
        );
    }
    let reason = refusal(&server.url("only_plain", "localhost", "sslmode=require")).await;
    assert!(reason.contains("pg_hba.conf"), "{reason}");
}

#[tokio::test]
async fn a_server_that_requires_a_certificate_gets_it() {
    let server = Server::shared();
    let url = |parameters: &str| server.url("with_certificate", "localhost", parameters);
    assert!(encrypted(&url("sslmode=require&sslcert={user.pem}&sslkey={user.key}")).await);
    let reason = refusal(&url("sslmode=require")).await;
    assert!(reason.contains("certificate") && reason.contains("sslcert and sslkey"), "{reason}");
    let reason = refusal(&url("sslmode=require&sslcert={stray.pem}&sslkey={stray.key}")).await;
    assert!(reason.contains("does not accept our certificate"), "{reason}");
    let reason = refusal(&url("sslmode=require&sslcert={user.pem}&sslkey={stray.key}")).await;
    assert!(reason.contains("do not belong together"), "{reason}");
}

#[tokio::test]
async fn a_password_is_bound_to_the_encrypted_connection() {
    let server = Server::shared();
    let url = |password: &str, parameters: &str| {
        server.url(&format!("with_password:{password}"), "localhost", parameters)
    };
    assert!(encrypted(&url("open%20sesame", "sslmode=require&channel_binding=require")).await);
    let reason = refusal(&url("open%20sesame", "sslmode=disable&channel_binding=require")).await;
    assert!(reason.contains("channel"), "{reason}");
    let reason = refusal(&url("wrong", "sslmode=require")).await;
    assert!(reason.contains("look at user and password"), "{reason}");
}

#[tokio::test]
async fn a_certificate_that_signs_itself_can_be_trusted_by_name_until_it_expires() {
    for (last_year, is_valid) in [(2099, true), (2021, false)] {
        let identity = self_signed(&["localhost"], last_year);
        let server = Server::with(&identity, &identity.certificate);
        server.file("own.pem", &identity.certificate);
        let url = |host: &str, mode: &str| {
            server.url("postgres", host, &format!("sslmode={mode}&sslrootcert={{own.pem}}"))
        };
        if is_valid {
            assert!(encrypted(&url("localhost", "verify-full")).await);
            assert!(encrypted(&url("127.0.0.1", "verify-ca")).await);
            let reason = refusal(&url("127.0.0.1", "verify-full")).await;
            assert!(reason.contains("for another host"), "{reason}");
        } else {
            for mode in ["verify-full", "verify-ca"] {
                let reason = refusal(&url("localhost", mode)).await;
                assert!(reason.contains("renew it"), "{reason}");
            }
        }
    }
}

#[tokio::test]
async fn a_local_socket_needs_no_tls() {
    let server = Server::shared();
    let folder = server.cluster.folder().display().to_string().replace('/', "%2F");
    assert!(!encrypted(&server.url("postgres", &folder, "sslmode=verify-full&sslrootcert={root.pem}")).await);
}

/// The test runs itself again in a process whose environment names other roots of the operating
/// system, because they are read from an environment variable.
#[tokio::test]
async fn the_roots_of_the_operating_system_are_trusted_if_asked_for() {
    const INSIDE: &str = "SESSILE_TEST_SYSTEM_ROOTS";
    if let Ok(url) = std::env::var(INSIDE) {
        return assert!(encrypted(&url).await);
    }
    let server = Server::shared();
    let url = server.url("postgres", "localhost", "sslrootcert=system");
    for (roots, is_trusted) in [("root.pem", true), ("stranger.pem", false)] {
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tls::the_roots_of_the_operating_system_are_trusted_if_asked_for"])
            .env(INSIDE, &url)
            .env("SSL_CERT_FILE", server.path(roots))
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap();
        assert_eq!(again.status.success(), is_trusted, "{roots}: {again:?}");
    }
}

#[tokio::test]
async fn contradictory_or_incomplete_options_are_refused_by_name() {
    let server = Server::shared();
    server.file("empty.pem", "");
    for (parameters, expected) in [
        ("sslmode=always", "sslmode=always is unknown; it is one of disable, allow, prefer"),
        ("ssl=true", "sslmode=true is unknown"),
        ("ssl=require&sslmode=prefer", "sslmode and ssl differ"),
        ("sslmode=verify-full", "need sslrootcert"),
        ("sslmode=verify-ca", "need sslrootcert"),
        ("sslmode=require&sslrootcert=system", "use it with sslmode=verify-full"),
        ("sslmode=require&sslrootcert={nowhere.pem}", "nowhere.pem cannot be read"),
        ("sslmode=require&sslrootcert={empty.pem}", "empty.pem holds no certificate"),
        ("sslmode=require&sslrootcert=", "sslrootcert names no file"),
        ("sslmode=require&sslcert={user.pem}", "give sslkey too"),
        ("sslmode=require&sslkey={user.key}", "give sslcert too"),
        ("sslmode=require&sslcert={nowhere.pem}&sslkey={user.key}", "sslcert="),
        ("sslmode=require&sslcert={user.pem}&sslkey={nowhere.key}", "sslkey="),
        ("sslmode=require&sslcert={user.pem}&sslkey={user.pem}", "holds no private key"),
        ("sslpassword=x", "sslpassword is not supported"),
        ("sslcrl=x", "sslcrl"),
    ] {
        let reason = refusal(&server.url("postgres", "localhost", parameters)).await;
        assert!(reason.contains(expected), "{parameters}: {reason}");
    }
}
