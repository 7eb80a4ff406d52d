use std::marker::PhantomData;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sessile_session::BoxError;
use sessile_state::SharedValue;

use super::Tool;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::json_schema::schema_of;
use crate::model::FunctionDeclaration;

/// An async function as a tool. Its argument says which arguments the model may give.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use sessile_agent::{FunctionTool, ToolContext};
/// use sessile_session::BoxError;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Item {
///     /// What to put into the cart.
///     name: String,
/// }
///
/// let add = FunctionTool::new("add_to_cart", "Puts an item into the cart.", async |item: Item, ctx: ToolContext| {
///     let cart = ctx.state().try_modify("cart", Vec::new(), |mut cart: Vec<String>| {
///         cart.push(item.name);
///         cart
///     })?;
///     Ok::<_, BoxError>(cart.len())
/// });
///
/// // Without a context, and as a plain function:
/// async fn shout(item: Item) -> Result<String, BoxError> {
///     Ok(item.name.to_uppercase())
/// }
/// let shout = FunctionTool::new("shout", "Says it loudly.", shout);
/// ```
pub struct FunctionTool<Args, Kind, F> {
    declaration: FunctionDeclaration,
    long_running: bool,
    /// What the user is asked before each call.
    question: Option<String>,
    function: F,
    kind: PhantomData<fn(Args) -> Kind>,
}

impl<Args, Kind, F> FunctionTool<Args, Kind, F>
where
    Args: DeserializeOwned + JsonSchema,
    F: ToolFunction<Args, Kind>,
{
    /// A tool that calls this function.
    pub fn new(name: impl Into<String>, description: impl Into<String>, function: F) -> Self {
        let declaration = FunctionDeclaration {
            name: name.into(),
            description: description.into(),
            parameters: Some(schema_of::<Args>()),
        };
        Self { declaration, long_running: false, question: None, function, kind: PhantomData }
    }

    /// Whose result may come later, see [`Tool::is_long_running`]. A function that returns null has
    /// no result yet.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        self.long_running = true;
        self
    }

    /// That runs only after the user said yes to this question.
    #[must_use]
    pub fn require_confirmation(mut self, question: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self
    }
}

#[async_trait]
impl<Args, Kind, F> Tool for FunctionTool<Args, Kind, F>
where
    Args: DeserializeOwned + JsonSchema + Send,
    F: ToolFunction<Args, Kind>,
{
    fn name(&self) -> &str {
        &self.declaration.name
    }

    fn description(&self) -> &str {
        &self.declaration.description
    }

    fn declaration(&self) -> Option<FunctionDeclaration> {
        Some(self.declaration.clone())
    }

    fn is_long_running(&self) -> bool {
        self.long_running
    }

    async fn call(&self, args: Map<String, Value>, ctx: &ToolContext) -> Result<Option<Value>, ToolError> {
        let args = Args::deserialize(Value::Object(args)).map_err(|error| ToolError::Arguments {
            tool: self.declaration.name.clone(),
            reason: error.to_string(),
        })?;
        if let Some(question) = &self.question {
            match ctx.confirmation() {
                None => {
                    ctx.request_confirmation(question, None);
                    return Ok(Some(json!({ "error": "the user has to confirm this call first" })));
                }
                Some(answer) if answer.confirmed != Some(true) => {
                    return Ok(Some(json!({ "error": "the user does not want this call" })));
                }
                Some(_) => {}
            }
        }
        match self.function.call(args, ctx.clone()).await? {
            Value::Null if self.long_running => Ok(None),
            result => Ok(Some(result)),
        }
    }
}

/// A function that can be a tool: `async fn(Args) -> Result<T, E>` or
/// `async fn(Args, ToolContext) -> Result<T, E>`.
pub trait ToolFunction<Args, Kind>: Send + Sync + 'static {
    /// Calls it.
    fn call(&self, args: Args, ctx: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>>;
}

/// Marks functions that take a [`ToolContext`].
pub struct WithContext(());

/// Marks functions that do not.
pub struct WithoutContext(());

impl<Args, F, Fut, T, E> ToolFunction<Args, WithContext> for F
where
    F: Fn(Args, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<BoxError>,
{
    fn call(&self, args: Args, ctx: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> {
        let call = self(args, ctx);
        Box::pin(async { to_json(call.await) })
    }
}

impl<Args, F, Fut, T, E> ToolFunction<Args, WithoutContext> for F
where
    F: Fn(Args) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<BoxError>,
{
    fn call(&self, args: Args, _: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> {
        let call = self(args);
        Box::pin(async { to_json(call.await) })
    }
}

fn to_json<T: Serialize, E: Into<BoxError>>(result: Result<T, E>) -> Result<Value, ToolError> {
    let value = result.map_err(|error| ToolError::Failed(error.into()))?;
    let json = SharedValue::from_serialize(&value)
        .map_err(|error| ToolError::Result { reason: error.to_string() })?;
    Ok(json.into_value())
}
