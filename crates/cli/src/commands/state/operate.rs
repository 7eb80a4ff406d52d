//! `add`, `append` and `union`: the store computes the new value from the stored one during the
//! commit, so that concurrent writers do not overwrite each other.

use anyhow::Context;
use clap::Args;
use sessile_session::SessionService;
use sessile_state::{Change, Operation, SharedValue};

use super::change::{Given, json};
use super::target::Changed;
use crate::args::OutputArgs;
use crate::exit::Failure;
use crate::output::Output;

/// The arguments of `state add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    changed: Changed,
    /// The number to add, as JSON.
    #[arg(value_name = "NUMBER", allow_hyphen_values = true)]
    number: String,
    /// Change nothing if the sum would be less than this.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    min: Option<String>,
    /// Change nothing if the sum would be more than this.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    max: Option<String>,
}

/// The arguments of `state append`.
#[derive(Debug, Args)]
pub(crate) struct Append {
    #[command(flatten)]
    changed: Changed,
    #[command(flatten)]
    items: Given,
}

/// The arguments of `state union`.
#[derive(Debug, Args)]
pub(crate) struct Union {
    #[command(flatten)]
    changed: Changed,
    #[command(flatten)]
    items: Given,
}

impl Add {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let bounds = [("add", Some(&self.number)), ("min", self.min.as_ref()), ("max", self.max.as_ref())];
        let mut fields = Vec::new();
        for (name, given) in bounds {
            if let Some(given) = given {
                fields.push(format!("\"{name}\":{}", json(given, "write a number, such as 1 or -0.5")?));
            }
        }
        operate(&self.changed, &format!("{{{}}}", fields.join(","))).await
    }
}

impl Append {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let operation = format!("{{\"append\":{}}}", items(&self.items.read()?));
        operate(&self.changed, &operation).await
    }
}

impl Union {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let given = self.items.read()?;
        let given = if given.is_object() { given.to_string() } else { items(&given) };
        operate(&self.changed, &format!("{{\"union\":{given}}}")).await
    }
}

/// A list as JSON; anything else is one item of a list.
fn items(given: &SharedValue) -> String {
    if given.is_array() { given.to_string() } else { format!("[{given}]") }
}

/// Commits an operation, given as JSON, and prints the new value.
async fn operate(changed: &Changed, operation: &str) -> anyhow::Result<()> {
    let Changed { owner, key, if_version, .. } = changed;
    let target = owner.target(key)?;
    let given = SharedValue::from_json(operation).context("cannot build the operation as JSON")?;
    let change = Change::Operate(Operation::from_json(&given).map_err(Failure::Usage)?.into());
    let write = async |service: &SessionService| target.write(service, key, change, *if_version).await;
    let value = changed.with_sessions(write).await?;
    let mut output = Output::new(&OutputArgs { json: true });
    if let Some(value) = value {
        output.json(&value)?;
    }
    output.finish()
}
