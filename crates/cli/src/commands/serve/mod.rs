//! `sessile serve`: agents and sessions over the HTTP API of ADK.

mod access;
mod adk;
mod history;
mod limits;
mod logs;
mod otlp;
mod shutdown;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use sessile_server::{App, Apps, Auth, Counts, Server};
use sessile_session::{OnOverwrite, SessionService};
use tokio::net::TcpListener;

use crate::agents::{Application, Services, with_schemas};
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::services::ServiceArgs;
use crate::stderr::say;
use crate::store_url::{Need, StoreUrl, closed};

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The folder with a folder for each application (root_agent.yaml in it), or that of one
    /// application; two samples if it is left out.
    #[arg(value_name = "AGENTS_DIR")]
    agents: Option<PathBuf>,
    /// The address to listen on; any other than a loopback address needs authentication.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
    /// Create the session of a run if it does not exist.
    #[arg(long, alias = "auto_create_session")]
    auto_create_session: bool,
    /// The application of requests that name none; that of a folder with one application, if it is
    /// left out.
    #[arg(long, env = "ADK_DEFAULT_APP_NAME", value_name = "APP")]
    default_app: Option<String>,
    /// At most this many model calls in a run; 0 is unlimited.
    #[arg(long, alias = "max_llm_calls", env = "ADK_MAX_LLM_CALLS", value_name = "COUNT")]
    #[arg(default_value_t = 500, allow_negative_numbers = true)]
    max_llm_calls: i64,
    /// What happens when an agent's tool or callback sets a value that another session changed
    /// since it was read: the event reports it (`report`), or the write is refused (`refuse`).
    /// Agents can override it.
    #[arg(long, value_name = "ANSWER", default_value = "report")]
    on_overwrite: OnOverwrite,
    /// Serve the files of Google's web UI from this folder (`google/adk/cli/browser` of the
    /// google-adk package).
    #[arg(long, value_name = "FOLDER")]
    adk_web: Option<PathBuf>,
    /// How many days changes of `user:` and `app:` state are kept; 0 keeps them for ever. The
    /// newest change of each user and application always stays.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    history_days: u32,
    /// Seconds that requests and runs have to finish when the server is stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u32,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    access: access::AccessArgs,
    #[command(flatten)]
    limits: limits::LimitArgs,
    #[command(flatten)]
    logs: logs::LogArgs,
    #[command(flatten)]
    adk: adk::AdkArgs,
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.adk.check()?;
        let auth = self.access.auth()?;
        let address = self.address().await?;
        self.access.check(address.ip(), auth.is_on())?;
        let adk_web = self.adk_web.as_ref().map(readable).transpose()?;
        let telemetry = self.logs.start()?;
        let store_url = StoreUrl::parse(&self.store.store)?;
        let (store, gauges) = store_url.open_measured(Need::Any).await?;
        let (store, counts) = Counts::around(store);
        // Agents commit through this service too, so the limit applies to them.
        let sessions = SessionService::over(store)
            .with_max_scope_bytes(self.limits.limits().state)
            .with_on_overwrite(self.on_overwrite)
            .with_history_kept(history::kept(self.history_days));
        let trimming = history::trim_every_hour(sessions.clone());
        let served = match with_schemas(sessions.clone(), self.agents.as_deref()) {
            Ok(checked) => self.server(&store_url, &checked, auth, address).await,
            Err(error) => Err(error),
        };
        let done = match served {
            Ok((listener, server)) => {
                let mut server = server.with_counts(counts).with_gauges(gauges);
                if let Some(folder) = adk_web {
                    server = server.with_adk_web(folder);
                }
                sessile_server::serve(listener, server, shutdown::requested()).await.context("cannot serve")
            }
            Err(error) => Err(error),
        };
        trimming.abort();
        let done = closed(&sessions, done).await;
        telemetry.finish().await;
        done
    }

    /// Builds the server, starts to listen, and prints a short guide.
    async fn server(
        &self,
        store_url: &StoreUrl,
        sessions: &SessionService,
        auth: Auth,
        address: SocketAddr,
    ) -> anyhow::Result<(TcpListener, Server)> {
        let services = Services {
            sessions: sessions.clone(),
            artifacts: self.services.artifacts(store_url).await?,
            memory: self.services.memory(store_url).await?,
            auto_create: self.auto_create_session,
        };
        let applications = services.load(self.agents.as_deref())?;
        let listener = listen(address).await?;
        let address = listener.local_addr().context("cannot find out the address")?;
        let names = names(&applications)?;
        let guide =
            Guide { address, store_url, names: &names, token: auth.is_on(), json: self.logs.is_json() };
        let mut server = Server::new(sessions.clone(), self.apps(applications))
            .with_artifacts(services.artifacts)
            .with_memory(services.memory)
            .with_auth(auth)
            .with_limits(self.limits.limits())
            .with_max_llm_calls(u32::try_from(self.max_llm_calls.max(0)).unwrap_or(u32::MAX))
            .with_grace(std::time::Duration::from_secs(self.grace.into()))
            .with_origins(&self.access.allow_origins)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(app) = self.default_app(&names) {
            server = server.with_default_app(app);
        }
        guide.print();
        Ok((listener, server))
    }

    /// The address to listen on.
    async fn address(&self) -> anyhow::Result<SocketAddr> {
        let (host, port) = (self.host.as_str(), self.port);
        let found = tokio::net::lookup_host((host, port)).await.ok().and_then(|mut found| found.next());
        found.ok_or_else(|| {
            let text =
                format!("{host:?} is not an address of this computer; write 127.0.0.1, or 0.0.0.0 for all");
            Failure::Usage(text).into()
        })
    }

    /// The application of requests that name none: the configured one, or the only one of the
    /// folder.
    fn default_app(&self, names: &[String]) -> Option<String> {
        let only = || names.first().filter(|_| self.agents.is_some() && names.len() == 1).cloned();
        self.default_app.clone().or_else(only)
    }

    fn apps(&self, applications: Vec<Application>) -> Apps {
        let mut apps = Apps::new();
        if let Some(folder) = &self.agents {
            apps = apps.with_folder(folder);
        }
        for application in applications {
            apps = match application.runner {
                Ok(runner) => apps.with(App::new(runner).with_language(application.language)),
                Err(reason) => apps.with_failed(application.name, reason),
            };
        }
        apps
    }
}

/// The names of the applications that can run; the others are printed with the reason.
fn names(applications: &[Application]) -> anyhow::Result<Vec<String>> {
    for application in applications {
        if let Err(reason) = &application.runner {
            say(format_args!("{} cannot be used: {reason}", application.name));
        }
    }
    let usable = applications.iter().filter(|application| application.runner.is_ok());
    let names: Vec<String> = usable.map(|application| application.name.clone()).collect();
    match names.is_empty() {
        true => Err(Failure::Usage("no application can be used; see above".to_owned()).into()),
        false => Ok(names),
    }
}

fn readable(folder: &PathBuf) -> anyhow::Result<PathBuf> {
    std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    Ok(folder.clone())
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::Conflict(format!(
            "port {} is taken; stop what listens there, or choose another with --port (0 takes a free one)",
            address.port()
        ))
        .into(),
        std::io::ErrorKind::PermissionDenied => {
            Failure::Usage(format!("port {} needs more privileges; choose one above 1023", address.port()))
                .into()
        }
        _ => anyhow::Error::from(error).context(format!("cannot listen on {address}")),
    })
}

/// What is printed when the server is ready.
struct Guide<'a> {
    address: SocketAddr,
    store_url: &'a StoreUrl,
    names: &'a [String],
    /// Whether callers need a token.
    token: bool,
    /// Whether to print JSON.
    json: bool,
}

impl Guide<'_> {
    fn print(&self) {
        let url = format!("http://{}", reachable(self.address));
        if self.json {
            let store = self.store_url.to_string();
            let line = json!({"level": "INFO", "message": "serving", "url": url, "apps": self.names, "store": store});
            return say(format_args!("{line}"));
        }
        say(format_args!(
            "Sessile serves {} on {url}, with sessions in {}",
            self.names.join(", "),
            self.store_url
        ));
        say(format_args!("Every endpoint is described on {url}/docs"));
        let Some(app) = self.names.first() else { return };
        let token = if self.token { " -H \"Authorization: Bearer $TOKEN\"" } else { "" };
        let json = "-H 'content-type: application/json'";
        say(format_args!("Try:"));
        say(format_args!("  curl{token} -X POST {url}/apps/{app}/users/user/sessions/s1"));
        say(format_args!(
            "  curl{token} -N {url}/run_sse {json} -d '{{\"appName\":\"{app}\",\"userId\":\"user\",\
             \"sessionId\":\"s1\",\"newMessage\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"my name is Ada\"}}]}}}}'"
        ));
        say(format_args!("  curl{token} {url}/apps/{app}/users/user/sessions/s1"));
        say(format_args!("Ctrl-C stops the server; what was acknowledged stays."));
    }
}

/// An address that a client on this computer can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => ([127, 0, 0, 1], address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (std::net::Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}
