use std::fmt;
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

/// An async function as a tool. The type of its argument declares the arguments for the model.
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
///
/// // Without arguments:
/// let clear = FunctionTool::new("clear_cart", "Empties the cart.", async |(): (), ctx: ToolContext| {
///     ctx.state().remove("cart");
///     Ok::<_, BoxError>("the cart is empty")
/// });
/// ```
///
/// A function that uses something from outside, such as a client or a pool, is made with
/// [`FunctionTool::with`].
pub struct FunctionTool<Args, Kind, F> {
    declaration: FunctionDeclaration,
    /// Whether the model gives arguments; not if the argument is `()`.
    takes_arguments: bool,
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
    /// A tool that calls this function. Its arguments are a type with [`JsonSchema`], or `()` if it
    /// has none.
    pub fn new(name: impl Into<String>, description: impl Into<String>, function: F) -> Self {
        let schema = schema_of::<Args>();
        let takes_arguments = schema.get("type").and_then(Value::as_str) != Some("null");
        let parameters =
            if takes_arguments { schema } else { json!({ "type": "object", "properties": {} }).into() };
        let declaration = FunctionDeclaration {
            name: name.into(),
            description: description.into(),
            parameters: Some(parameters),
        };
        let kind = PhantomData;
        Self { declaration, takes_arguments, long_running: false, question: None, function, kind }
    }

    /// Marks the tool as long-running, see [`Tool::is_long_running`]: a function that returns null
    /// has no result yet.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        self.long_running = true;
        self
    }

    /// Runs the function only after the user has confirmed this question.
    #[must_use]
    pub fn require_confirmation(mut self, question: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self
    }
}

impl<Args, Kind, S, F> FunctionTool<Args, Kind, Sharing<S, F>>
where
    Args: DeserializeOwned + JsonSchema,
    Sharing<S, F>: ToolFunction<Args, Kind>,
{
    /// A tool that calls this function with a shared value, such as a client or a connection pool.
    /// The value is cloned for each call: it is an `Arc`, or a type that is cheap to clone.
    ///
    /// An async closure that captures something cannot be a tool: its futures borrow from the
    /// closure, and the future of a tool call owns what it uses. So the value is an argument.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use sessile_agent::{FunctionTool, ToolContext};
    /// use sessile_session::BoxError;
    ///
    /// struct Weather;
    ///
    /// impl Weather {
    ///     async fn of(&self, city: &str) -> Result<String, BoxError> {
    ///         Ok(format!("sunny in {city}"))
    ///     }
    /// }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    /// }
    ///
    /// let weather = Arc::new(Weather);
    /// let tool = FunctionTool::with(
    ///     weather,
    ///     "weather",
    ///     "Tells the weather of a city.",
    ///     async |weather: Arc<Weather>, city: City, ctx: ToolContext| {
    ///         ctx.state().set("city", &city.name);
    ///         weather.of(&city.name).await
    ///     },
    /// );
    /// ```
    pub fn with(
        shared: S,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> FunctionTool<Args, Kind, Sharing<S, F>> {
        Self::new(name, description, Sharing { shared, function })
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
        let args = if self.takes_arguments { Value::Object(args) } else { Value::Null };
        let args = Args::deserialize(args).map_err(|error| ToolError::Arguments {
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
#[derive(Debug)]
pub struct WithContext(());

/// Marks functions that do not.
#[derive(Debug)]
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

/// A function together with the value that each of its calls gets a clone of, see
/// [`FunctionTool::with`].
pub struct Sharing<S, F> {
    shared: S,
    function: F,
}

impl<Args, S, F, Fut, T, E> ToolFunction<Args, WithContext> for Sharing<S, F>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Args, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<BoxError>,
{
    fn call(&self, args: Args, ctx: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> {
        let call = (self.function)(self.shared.clone(), args, ctx);
        Box::pin(async { to_json(call.await) })
    }
}

impl<Args, S, F, Fut, T, E> ToolFunction<Args, WithoutContext> for Sharing<S, F>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Args) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<BoxError>,
{
    fn call(&self, args: Args, _: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> {
        let call = (self.function)(self.shared.clone(), args);
        Box::pin(async { to_json(call.await) })
    }
}

fn to_json<T: Serialize, E: Into<BoxError>>(result: Result<T, E>) -> Result<Value, ToolError> {
    let value = result.map_err(|error| ToolError::Failed(error.into()))?;
    let json = SharedValue::from_serialize(&value)
        .map_err(|error| ToolError::Result { reason: error.to_string() })?;
    Ok(json.into_value())
}

impl<Args, Kind, F> fmt::Debug for FunctionTool<Args, Kind, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool").field("name", &self.declaration.name).finish_non_exhaustive()
    }
}

impl<S, F> fmt::Debug for Sharing<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}
