#!/usr/bin/env python3
"""google-adk's cost of one turn: a message, a call of a tool that writes state, its answer, a reply.

    bench/google_adk_turn.py TURNS

Prints the median of the turns' nanoseconds. Sessions are in memory and the model is a function, so that only
google-adk itself is measured.
"""

import asyncio
import statistics
import sys
import time

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import ToolContext
from google.genai import types


class Calls(BaseLlm):
    model: str = "calls"

    async def generate_content_async(self, llm_request, stream=False):
        if llm_request.contents[-1].parts[0].function_response:
            part = types.Part(text="done")
        else:
            part = types.Part.from_function_call(name="count", args={})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def count(tool_context: ToolContext) -> dict:
    """Counts."""
    tool_context.state["count"] = 1
    return {"count": 1}


async def main(turns):
    sessions = InMemorySessionService()
    agent = LlmAgent(name="counter", model=Calls(), tools=[count], include_contents="none")
    runner = Runner(app_name="count", agent=agent, session_service=sessions)
    await sessions.create_session(app_name="count", user_id="ada", session_id="s")
    nanoseconds = []
    for _ in range(turns):
        message = types.Content(role="user", parts=[types.Part(text="count")])
        began = time.perf_counter_ns()
        events = [event async for event in runner.run_async(user_id="ada", session_id="s", new_message=message)]
        nanoseconds.append(time.perf_counter_ns() - began)
        assert len(events) == 3, events
    print(int(statistics.median(nanoseconds)))


asyncio.run(main(int(sys.argv[1])))
