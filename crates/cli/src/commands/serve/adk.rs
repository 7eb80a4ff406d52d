//! Options of `adk api_server` that Sessile does not support: refused with a reason, not ignored.

use clap::Args;

use crate::exit::Failure;

/// Options of `adk api_server` that are not supported.
#[derive(Debug, Args)]
pub(crate) struct AdkArgs {
    #[arg(long = "with_ui", hide = true)]
    with_ui: bool,
    #[arg(long = "reload_agents", hide = true)]
    reload_agents: bool,
    #[arg(long = "reload", hide = true)]
    reload: bool,
    #[arg(long = "no-reload", hide = true, conflicts_with = "reload")]
    no_reload: bool,
    #[arg(long = "a2a", hide = true)]
    a2a: bool,
    #[arg(long = "trace_to_cloud", hide = true)]
    trace_to_cloud: bool,
    #[arg(long = "otel_to_cloud", hide = true)]
    otel_to_cloud: bool,
    #[arg(long = "express_mode", hide = true)]
    express_mode: bool,
    #[arg(long = "use_local_storage", hide = true)]
    use_local_storage: bool,
    #[arg(long = "no_use_local_storage", hide = true)]
    no_use_local_storage: bool,
    #[arg(long = "enable_features", hide = true)]
    enable_features: Option<String>,
    #[arg(long = "disable_features", hide = true)]
    disable_features: Option<String>,
    #[arg(long = "eval_storage_uri", hide = true)]
    eval_storage_uri: Option<String>,
    #[arg(long = "extra_plugins", hide = true)]
    extra_plugins: Option<String>,
    #[arg(long = "url_prefix", hide = true)]
    url_prefix: Option<String>,
    #[arg(long = "avatar_config", hide = true)]
    avatar_config: Option<String>,
    #[arg(long = "trigger_sources", hide = true)]
    trigger_sources: Option<String>,
    #[arg(long = "trigger_oidc_audience", hide = true)]
    trigger_oidc_audience: Option<String>,
    #[arg(long = "trigger_oidc_service_accounts", hide = true)]
    trigger_oidc_service_accounts: Option<String>,
    #[arg(long = "gemini_enterprise_app_name", hide = true)]
    gemini_enterprise_app_name: Option<String>,
}

impl AdkArgs {
    /// Refuses unsupported options. `--no-reload` is accepted: it asks for the only behaviour there
    /// is.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let store = "sessions are in the working directory unless --store says otherwise";
        let cloud = "use --otlp-endpoint with a collector that forwards to the cloud";
        let refused = [
            (self.with_ui, "--with_ui", "name the folder of the web UI's files with --adk-web"),
            (
                self.reload_agents,
                "--reload_agents",
                "restart the server after changing an agent; sessions stay",
            ),
            (self.reload, "--reload", "restart the server after changing an agent; sessions stay"),
            (self.a2a, "--a2a", "the A2A protocol is not served"),
            (self.trace_to_cloud, "--trace_to_cloud", cloud),
            (self.otel_to_cloud, "--otel_to_cloud", cloud),
            (self.express_mode, "--express_mode", "Gemini Enterprise is not served"),
            (self.use_local_storage, "--use_local_storage", store),
            (self.no_use_local_storage, "--no_use_local_storage", store),
            (self.enable_features.is_some(), "--enable_features", "there are no optional features"),
            (self.disable_features.is_some(), "--disable_features", "there are no optional features"),
            (self.eval_storage_uri.is_some(), "--eval_storage_uri", "evaluations are not kept"),
            (self.extra_plugins.is_some(), "--extra_plugins", "Python plugins cannot be loaded"),
            (self.url_prefix.is_some(), "--url_prefix", "let the proxy strip the prefix"),
            (self.avatar_config.is_some(), "--avatar_config", "live video is not served"),
            (self.trigger_sources.is_some(), "--trigger_sources", "triggers are not served"),
            (self.trigger_oidc_audience.is_some(), "--trigger_oidc_audience", "triggers are not served"),
            (
                self.trigger_oidc_service_accounts.is_some(),
                "--trigger_oidc_service_accounts",
                "triggers are not served",
            ),
            (
                self.gemini_enterprise_app_name.is_some(),
                "--gemini_enterprise_app_name",
                "Gemini Enterprise is not served",
            ),
        ];
        match refused.into_iter().find(|(given, _, _)| *given) {
            Some((_, option, reason)) => {
                Err(Failure::Usage(format!("{option} of `adk api_server` is not supported: {reason}")).into())
            }
            None => Ok(()),
        }
    }
}
