//! Tools: functions that models may call.

mod function;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

pub use function::{FunctionTool, Sharing, ToolFunction, WithContext, WithoutContext};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::model::FunctionDeclaration;

/// Something that a model may call. Most tools are functions: see [`FunctionTool`].
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, unique among an agent's tools.
    fn name(&self) -> &str;

    /// What it does, and when to call it.
    fn description(&self) -> &str;

    /// Its declaration for models; `None` hides it from them.
    fn declaration(&self) -> Option<FunctionDeclaration>;

    /// Whether its result may come later, in a message of the user with a function response for the
    /// same call. Such a tool returns `None`, or an interim result.
    fn is_long_running(&self) -> bool {
        false
    }

    /// Calls the tool. A result that is not an object is given to the model as `{"result": …}`.
    ///
    /// # Errors
    ///
    /// The model reads the error and may try again; the changes of the tool are dropped.
    async fn call(&self, args: Map<String, Value>, ctx: &ToolContext) -> Result<Option<Value>, ToolError>;
}

/// A shared tool is a tool.
#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn description(&self) -> &str {
        (**self).description()
    }

    fn declaration(&self) -> Option<FunctionDeclaration> {
        (**self).declaration()
    }

    fn is_long_running(&self) -> bool {
        (**self).is_long_running()
    }

    async fn call(&self, args: Map<String, Value>, ctx: &ToolContext) -> Result<Option<Value>, ToolError> {
        (**self).call(args, ctx).await
    }
}
