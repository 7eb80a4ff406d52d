"""An agent that says what it was told, on a model that is a function."""

from typing import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Echo(BaseLlm):
    model: str = "echo"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = [part.text for part in llm_request.contents[-1].parts if part.text]
        text = "you said: " + " ".join(said)
        content = types.Content(role="model", parts=[types.Part(text=text)])
        yield LlmResponse(content=content, finish_reason=types.FinishReason.STOP)


root_agent = LlmAgent(name="echo", description="Says it again.", model=Echo(), output_key="last_reply", instruction="Echo.")
