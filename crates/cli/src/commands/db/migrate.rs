use clap::Args;
use serde_json::json;
use sessile_session::SessionService;

use super::Schema;
use crate::args::{OutputArgs, StoreArgs};
use crate::output::Output;
use crate::store_url::{Need, StoreUrl, closed};

/// The arguments of `db migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Migrate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store_url = StoreUrl::parse(&self.store.store)?;
        let before = match &store_url {
            StoreUrl::Sqlite(options) if !options.path.exists() => 0,
            _ => Schema::of(&store_url).await?.migration,
        };
        let service = SessionService::over(store_url.open(Need::Any).await?);
        let after = Schema::of(&store_url).await;
        let after = closed(&service, after).await?;
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => {
                output.json(&json!({"before": before, "after": after.migration, "layout": after.layout}))?
            }
            false if before == after.migration => {
                output.line(&format!("{store_url} was up to date (migration {before})"))?;
            }
            false => {
                output.line(&format!("{store_url} is at migration {} now, from {before}", after.migration))?
            }
        }
        output.finish()
    }
}
