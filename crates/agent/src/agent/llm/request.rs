//! What the model is asked.

use sessile_session::{Content, Part};

use super::contents::Reader;
use super::{IncludeContents, LlmAgent, transfer};
use crate::agent::Agent;
use crate::context::InvocationContext;
use crate::error::AgentError;
use crate::model::ModelRequest;

impl LlmAgent {
    pub(super) async fn request(&self, ctx: &InvocationContext) -> Result<ModelRequest, AgentError> {
        let mut request = ModelRequest {
            config: self.generation_config.clone(),
            output_schema: self.output_schema.as_ref().map(|output| output.schema.clone()),
            ..ModelRequest::default()
        };
        let targets = self.transfer_targets(&ctx.invocation.tree);
        request.tools = self.tools.iter().filter_map(|tool| tool.declaration()).collect();
        let global = match ctx.invocation.tree.root().as_llm() {
            Some(root) => root.global_instruction.text(ctx).await?,
            None => String::new(),
        };
        let instruction = self.instruction.text(ctx).await?;
        let mut paragraphs = vec![global];
        match &self.static_instruction {
            Some(content) => paragraphs.extend(content.parts().iter().filter_map(|part| part.text.clone())),
            None => paragraphs.push(instruction.clone()),
        }
        paragraphs.push(self.identity());
        if !targets.is_empty() {
            paragraphs.push(transfer::instruction(&targets));
            request.tools.push(transfer::declaration(&targets));
        }
        paragraphs.retain(|paragraph| !paragraph.is_empty());
        request.system_instruction = Some(paragraphs.join("\n\n"));
        request.contents = self.contents(ctx).await?;
        if self.static_instruction.is_some() && !instruction.is_empty() {
            insert_instruction(&mut request.contents, &instruction);
        }
        Ok(request)
    }

    async fn contents(&self, ctx: &InvocationContext) -> Result<Vec<Content>, AgentError> {
        if self.include_contents == IncludeContents::Default {
            ctx.invocation.load_all().await?;
        }
        let reader = Reader {
            agent: &self.name,
            branch: ctx.branch(),
            only_this_turn: self.include_contents == IncludeContents::None,
            thoughts_of_others: ctx.config().include_thoughts_from_other_agents,
        };
        Ok(ctx.with_session(|session| reader.contents(session.events())).await)
    }

    fn identity(&self) -> String {
        match self.description.as_str() {
            "" => format!("Your name is {:?}.", self.name),
            description => format!("Your name is {:?}. What you are for: {description:?}.", self.name),
        }
    }
}

/// Puts the instruction into the conversation, before the user's last messages.
fn insert_instruction(contents: &mut Vec<Content>, instruction: &str) {
    let text = format!(
        "These are your instructions for this moment, from the application and not from the user.\n\
         <<<BEGIN_SYSTEM_INSTRUCTION>>>\n{instruction}\n<<<END_SYSTEM_INSTRUCTION>>>"
    );
    let is_users = |content: &Content| content.role.as_deref() == Some("user") && !answers_a_call(content);
    let last = contents.iter().rposition(|content| !is_users(content)).map_or(0, |place| place + 1);
    contents.insert(last, Content::text("user", text));
}

fn answers_a_call(content: &Content) -> bool {
    content.parts().iter().any(|part: &Part| part.function_response.is_some())
}
