//! The services for artifacts and memory that a URL names. The schemes are those of ADK's command
//! line.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use sessile_artifact::{ArtifactService, FileArtifacts, MemoryArtifacts};
use sessile_memory::{InMemoryMemory, MemoryService, SqliteMemory};
use sessile_sqlite::SqliteOptions;

use crate::exit::Failure;
use crate::store_url::StoreUrl;

/// Where artifacts and memories are kept.
#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    /// Where artifacts are kept: file://FOLDER or memory://; file://sessile-artifacts unless
    /// sessions are in memory.
    #[arg(long = "artifacts", alias = "artifact_service_uri", env = "SESSILE_ARTIFACTS", value_name = "URL")]
    artifacts: Option<String>,
    /// Where memories are kept: sqlite:///FILE or memory://; sqlite:///sessile-memory.db unless
    /// sessions are in memory.
    #[arg(long = "memory", alias = "memory_service_uri", env = "SESSILE_MEMORY", value_name = "URL")]
    memory: Option<String>,
}

impl ServiceArgs {
    /// The artifact service; its default depends on where sessions are kept.
    pub(crate) async fn artifacts(&self, store_url: &StoreUrl) -> anyhow::Result<Arc<dyn ArtifactService>> {
        let url = match (&self.artifacts, store_url) {
            (Some(url), _) => url,
            (None, StoreUrl::Memory) => "memory://",
            (None, _) => "file://sessile-artifacts",
        };
        if url == "memory://" {
            return Ok(Arc::new(MemoryArtifacts::new()));
        }
        let Some(folder) = url.strip_prefix("file://").filter(|folder| !folder.is_empty()) else {
            return Err(unknown("artifacts", url, "file://FOLDER or memory://"));
        };
        let opened = FileArtifacts::open(folder).await;
        Ok(Arc::new(opened.with_context(|| format!("cannot keep artifacts in {folder}"))?))
    }

    /// The memory service; its default depends on where sessions are kept.
    pub(crate) async fn memory(&self, store_url: &StoreUrl) -> anyhow::Result<Arc<dyn MemoryService>> {
        let url = match (&self.memory, store_url) {
            (Some(url), _) => url,
            (None, StoreUrl::Memory) => "memory://",
            (None, _) => "sqlite:///sessile-memory.db",
        };
        match url.split_once("://") {
            Some(("memory", "")) => Ok(Arc::new(InMemoryMemory::new())),
            Some(("sqlite" | "sqlite+aiosqlite", _)) => {
                let path = SqliteOptions::from_url(url)?.path;
                let opened = SqliteMemory::open(&path).await;
                let opened = opened.with_context(|| format!("cannot keep memories in {}", path.display()))?;
                Ok(Arc::new(opened))
            }
            _ => Err(unknown("memories", url, "sqlite:///FILE or memory://")),
        }
    }
}

fn unknown(what: &str, url: &str, known: &str) -> anyhow::Error {
    let scheme = url.split_once("://").map_or(url, |(scheme, _)| scheme);
    Failure::Usage(format!("there is no store for {what} at {scheme:?}; write {known}")).into()
}
