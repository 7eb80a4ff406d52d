use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sessile_agent::FunctionDeclaration;
use sessile_session::BoxError;

use super::{LiveTool, LiveToolContext, ToolResult};

pub(super) type BoxedFunction = Arc<dyn Fn(LiveToolContext) -> BoxFuture<'static, ToolResult> + Send + Sync>;

impl LiveTool {
    /// A tool that calls a function. The schema of its arguments is derived from their type.
    pub fn function<A, R, F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: Serialize,
        F: Fn(A, LiveToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let run = move |context: LiveToolContext| {
            let args = Value::Object(context.call().args.clone());
            let started = serde_json::from_value::<A>(args).map(|args| function(args, context));
            async move {
                let result = started.map_err(|error| format!("the arguments do not fit: {error}"))?.await?;
                Ok(serde_json::to_value(result)?)
            }
            .boxed()
        };
        let declaration = FunctionDeclaration {
            name: name.into(),
            description: description.into(),
            parameters: Some(schema::<A>().into()),
        };
        Self { declaration, function: Arc::new(run), timeout: Self::TIMEOUT, background: None }
    }
}

/// The JSON Schema of a type, without references to other schemas.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let generator =
        SchemaGenerator::new(schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        }));
    generator.into_root_schema_for::<T>().to_value()
}
