//! Mistakes that are known before anything runs.

use std::sync::{Arc, OnceLock};

use sessile_agent::{
    Agent, AgentError, FunctionTool, InvocationContext, LlmAgent, LoopAgent, ParallelAgent, Runner,
    SequentialAgent,
};
use sessile_session::BoxError;

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[test]
fn every_problem_of_an_agent_is_named() {
    let tool = |name: &str| FunctionTool::new(name, "", async |_: Nothing| Ok::<_, BoxError>(()));
    let below = |name: &str| LlmAgent::builder(name).model(Says("x")).build().unwrap();
    let built = LlmAgent::builder("user")
        .tool(tool("a"))
        .tool(tool("a"))
        .tool(tool(""))
        .tool(tool("transfer_to_agent"))
        .sub_agent(below("twin"))
        .sub_agent(below("twin"))
        .output_key(" ")
        .build();

    let Err(error) = built else { panic!("it is built") };

    let text = error.to_string();
    for problem in
        ["`user`", "two tools are named `a`", "no name", "`transfer_to_agent`", "named `twin`", "output key"]
    {
        assert!(text.contains(problem), "{problem} is missing in: {text}");
    }
    assert_eq!(error.problems().len(), 6);
}

#[test]
fn names_that_no_agent_can_have_are_refused() {
    for name in ["", " ", "user", "two words", "1st", "a.b", "a-b"] {
        assert!(LlmAgent::builder(name).build().is_err(), "{name:?}");
        assert!(SequentialAgent::new(name, Vec::<LlmAgent>::new()).is_err(), "{name:?}");
    }
    for name in ["a", "_a1", "größe"] {
        assert!(LlmAgent::builder(name).build().is_ok(), "{name:?}");
    }
}

#[tokio::test]
async fn a_runner_wants_a_tree_with_models() {
    let sessions = sessions().await;
    let shared: Arc<dyn Agent> = Arc::new(LlmAgent::builder("shared").model(Says("x")).build().unwrap());
    assert!(ParallelAgent::new("par", [shared.clone(), shared.clone()]).is_err(), "one agent in two places");
    assert!(LoopAgent::new("shared", [shared], 1).is_err(), "a name used above and below");

    let without = LlmAgent::builder("without").build().unwrap();
    let error = Runner::builder("app", without, sessions.clone()).build().expect_err("it has no model");
    assert!(error.to_string().contains("`without` has no model"), "{error}");

    let below = LlmAgent::builder("below").build().unwrap();
    let above = LlmAgent::builder("above").model(Says("x")).sub_agent(below).build().unwrap();
    assert!(
        Runner::builder("app", above, sessions.clone()).build().is_ok(),
        "it has the model of the agent above"
    );

    let fine = LlmAgent::builder("fine").model(Says("x")).build().unwrap();
    let error = Runner::builder(" ", fine, sessions).build().expect_err("the app has no name");
    assert!(error.to_string().contains("app name"), "{error}");
}

/// An agent that can be put below itself.
#[derive(Default)]
struct Snake {
    below: OnceLock<Vec<Arc<dyn Agent>>>,
}

#[async_trait::async_trait]
impl Agent for Snake {
    fn name(&self) -> &str {
        "snake"
    }

    fn sub_agents(&self) -> &[Arc<dyn Agent>] {
        self.below.get().map_or(&[], Vec::as_slice)
    }

    async fn run(&self, _: &InvocationContext) -> Result<(), AgentError> {
        Ok(())
    }
}

#[tokio::test]
async fn an_agent_below_itself_is_refused() {
    let snake = Arc::new(Snake::default());
    let between = SequentialAgent::new("between", [snake.clone()]).unwrap();
    assert!(snake.below.set(vec![Arc::new(between)]).is_ok());

    let error = Runner::builder("app", snake.clone(), sessions().await).build().expect_err("it is a cycle");

    assert!(error.to_string().contains("`snake`"), "{error}");
    assert!(SequentialAgent::new("outer", [snake]).is_err());
}
