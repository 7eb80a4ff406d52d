"""An agent of google-adk whose tool counts: it reads the state, adds one and sets it."""

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools import ToolContext
from google.genai import types


class Calls(BaseLlm):
    """Calls the tool at every message, then says "done"."""

    model: str = "calls"

    async def generate_content_async(self, llm_request, stream=False):
        if llm_request.contents[-1].parts[0].function_response:
            part = types.Part(text="done")
        else:
            part = types.Part.from_function_call(name="count", args={})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def count(tool_context: ToolContext) -> dict:
    """Counts."""
    tool_context.state["user:counter"] = tool_context.state.get("user:counter", 0) + 1
    return {"counted": True}


def runner(app, sessions):
    agent = LlmAgent(name="counter", model=Calls(), tools=[count], include_contents="none")
    return Runner(app_name=app, agent=agent, session_service=sessions)
