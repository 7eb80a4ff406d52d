//! `sessile db`: checking, migrating and sweeping a database.

mod check;
mod migrate;
mod sweep;

use clap::Subcommand;

use crate::store_url::StoreUrl;

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Check a database without changing it: its layout, its counts, and whether the state of every
    /// session agrees with its events.
    Check(check::Check),
    /// Create or migrate the tables; google-adk can still use them.
    Migrate(migrate::Migrate),
    /// Delete sessions that were not changed for some time.
    Sweep(sweep::Sweep),
}

pub(crate) async fn run(command: Db) -> anyhow::Result<()> {
    match command {
        Db::Check(command) => command.run().await,
        Db::Migrate(command) => command.run().await,
        Db::Sweep(command) => command.run().await,
    }
}

/// The layout of a database and its migrations.
struct Schema {
    layout: Option<&'static str>,
    migration: i64,
    latest: i64,
}

impl Schema {
    /// Reads the layout without changing the database.
    async fn of(store_url: &StoreUrl) -> anyhow::Result<Self> {
        match store_url {
            StoreUrl::Memory => {
                let text =
                    "memory:// keeps nothing; name a SQLite file or PostgreSQL with --store".to_owned();
                Err(crate::exit::Failure::Usage(text).into())
            }
            StoreUrl::Sqlite(options) => {
                store_url.must_exist()?;
                let schema = sessile_sqlite::SqliteSchema::of(options.clone()).await?;
                Ok(Self { layout: schema.layout, migration: schema.migration, latest: schema.latest })
            }
            StoreUrl::Postgres { options, .. } => {
                let schema = sessile_postgres::PostgresSchema::of(options).await?;
                Ok(Self { layout: schema.layout, migration: schema.migration, latest: schema.latest })
            }
        }
    }
}
