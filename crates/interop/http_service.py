"""A session service of google-adk that keeps its sessions on a server, and google-adk's runner on top of it.

Started with the server's address and the number of turns; prints what happened as one JSON object.
"""

import asyncio
import json
import sys

import httpx
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from google.adk.tools import ToolContext
from google.genai import types


class HttpSessionService(BaseSessionService):
    """Speaks the REST API only: sessions by its endpoints, events by the endpoint for appending."""

    def __init__(self, address):
        self.client = httpx.AsyncClient(base_url=address, timeout=60)

    def place(self, app_name, user_id):
        return f"/apps/{app_name}/users/{user_id}/sessions"

    async def create_session(self, *, app_name, user_id, state=None, session_id=None):
        body = {"state": state or {}, "sessionId": session_id}
        answer = await self.client.post(self.place(app_name, user_id), json=body)
        answer.raise_for_status()
        return Session.model_validate(answer.json())

    async def get_session(self, *, app_name, user_id, session_id, config: GetSessionConfig | None = None):
        window = {}
        if config and config.num_recent_events is not None:
            window["numRecentEvents"] = config.num_recent_events
        answer = await self.client.get(f"{self.place(app_name, user_id)}/{session_id}", params=window)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return Session.model_validate(answer.json())

    async def list_sessions(self, *, app_name, user_id=None):
        answer = await self.client.get(self.place(app_name, user_id))
        answer.raise_for_status()
        return ListSessionsResponse(sessions=[Session.model_validate(session) for session in answer.json()])

    async def delete_session(self, *, app_name, user_id, session_id):
        (await self.client.delete(f"{self.place(app_name, user_id)}/{session_id}")).raise_for_status()

    async def append_event(self, session, event: Event):
        if event.partial:
            return event
        body = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        place = f"{self.place(session.app_name, session.user_id)}/{session.id}/events"
        answer = await self.client.post(place, json=body)
        answer.raise_for_status()
        return await super().append_event(session=session, event=event)


class Counter(BaseLlm):
    """Calls the tool at every message, then says what it answered."""

    model: str = "counter"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[0]
        if last.function_response:
            text = f"counted to {last.function_response.response['count']}"
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))
        else:
            call = types.Part.from_function_call(name="count", args={})
            yield LlmResponse(content=types.Content(role="model", parts=[call]))


def count(tool_context: ToolContext) -> dict:
    """Counts."""
    number = tool_context.state.get("user:count", 0) + 1
    tool_context.state["user:count"] = number
    tool_context.state["temp:scratch"] = number
    return {"count": number}


async def main(address, turns):
    service = HttpSessionService(address)
    agent = LlmAgent(name="counter", model=Counter(), tools=[count], output_key="said")
    runner = Runner(app_name="count", agent=agent, session_service=service)
    session = await service.create_session(app_name="count", user_id="ada", state={"app:motd": "hi", "step": 0})
    for turn in range(turns):
        message = types.Content(role="user", parts=[types.Part(text=f"turn {turn}")])
        async for _ in runner.run_async(
            user_id="ada", session_id=session.id, new_message=message, state_delta={"step": turn}
        ):
            pass
    read = await service.get_session(app_name="count", user_id="ada", session_id=session.id)
    last = await service.get_session(
        app_name="count", user_id="ada", session_id=session.id, config=GetSessionConfig(num_recent_events=1)
    )
    other = await service.create_session(app_name="count", user_id="ada")
    listed = await service.list_sessions(app_name="count", user_id="ada")
    await service.delete_session(app_name="count", user_id="ada", session_id=other.id)
    gone = await service.get_session(app_name="count", user_id="ada", session_id=other.id)
    print(
        json.dumps(
            {
                "id": session.id,
                "state": read.state,
                "events": len(read.events),
                "last": [part.text for event in last.events for part in event.content.parts],
                "other": other.state,
                "listed": len(listed.sessions),
                "gone": gone is None,
            }
        )
    )


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
