"""google-adk as a contestant: the Python twin of bench/contestant.

    google_adk.py memory | sqlite:FILE | database:URL
"""

import asyncio
import json
import random
import statistics
import sys
import time

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

APP, USER = "bench", "user"


def open_service(url):
    if url == "memory":
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        return InMemorySessionService()
    kind, rest = url.split(":", 1)
    if kind == "sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return SqliteSessionService(rest)
    from google.adk.sessions.database_session_service import DatabaseSessionService

    return DatabaseSessionService(rest)


def event(n, changes="all"):
    """Event number `n`; `None` if google-adk cannot say such a change: it has no operations."""
    own = {"step": n, "note": "a short text"}
    delta = {"all": {**own, "user:last": n, "app:hot": n}, "own": own, "set": {"app:set": n}}.get(changes)
    if delta is None:
        return None
    content = types.Content(role="model", parts=[types.Part(text="x" * 220)])
    return Event(author="agent", invocation_id=f"e-{n}", content=content, actions=EventActions(state_delta=delta))


class Contestant:
    def __init__(self, service):
        self.service = service
        # Sessions in hand, as an agent has them: an append needs one.
        self.sessions = {}

    async def get(self, name, last=None):
        config = None if last is None else GetSessionConfig(num_recent_events=last)
        return await self.service.get_session(app_name=APP, user_id=USER, session_id=name, config=config)

    async def in_hand(self, name):
        if name not in self.sessions:
            self.sessions[name] = await self.get(name, 0)
        return self.sessions[name]

    async def append(self, name, made):
        session = await self.in_hand(name)
        try:
            await self.service.append_event(session, made)
        except Exception:
            self.sessions.pop(name, None)
            raise
        # The list of events in hand would grow without end; only the store is measured.
        session.events.clear()

    async def perform(self, request):
        name, count = f"s{request.get('session', 0)}", request.get("count", 0)
        match request["do"]:
            case "create":
                for number in range(request["from"], request["to"]):
                    await self.service.create_session(app_name=APP, user_id=USER, session_id=f"s{number}")
                return {}
            case "append" | "append_many" if event(0, request.get("changes", "all")) is None:
                return {"cannot": True}
            case "append":
                events = iter([event(n, request.get("changes", "all")) for n in range(count)])
                start = time.perf_counter()
                median = await self.median(count, lambda: self.append(name, next(events)))
                return {"seconds": time.perf_counter() - start, "median": median}
            case "append_many":
                return await self.append_many(request["tasks"], request["each"], request.get("changes", "all"))
            case "fill":
                # Only asked of the memory service; its append looks at every event, so filling with
                # it takes long.
                held = self.service.sessions[APP][USER][name].events
                held.extend(event(n) for n in range(request["from"], request["to"]))
                return {}
            case "get":
                session = await self.get(name, request.get("last"))
                median = await self.median(count, lambda: self.get(name, request.get("last")))
                return {"median": median, "events": len(session.events)}
            case "list":
                list_all = lambda: self.service.list_sessions(app_name=APP, user_id=USER)
                return {"median": await self.median(count, list_all), "sessions": len((await list_all()).sessions)}
            case "hold":
                return await self.hold(name)
            case "increment":
                errors = 0
                for _ in range(count):
                    errors += not await self.increment(name)
                return {"errors": errors}
            case "add" | "tool_add":
                return {"cannot": True}
            case "tool_set":
                return await self.run_tools(name, count)
            case "increment_many":
                return await self.increment_many(request["tasks"], request["each"])
            case "counter":
                return {"value": (await self.get(name, 0)).state.get("user:counter", 0)}
            case other:
                return {"failure": f"there is no operation {other!r}"}

    async def median(self, count, call):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)
        return statistics.median(times) if times else 0

    async def append_many(self, tasks, each, changes):
        made = [[event(task * each + n, changes) for n in range(each)] for task in range(tasks)]
        for task in range(tasks):
            await self.in_hand(f"s{task}")

        async def run(task):
            errors = 0
            for one in made[task]:
                try:
                    await self.append(f"s{task}", one)
                except Exception:
                    errors += 1
            return errors

        start = time.perf_counter()
        errors = sum(await asyncio.gather(*(run(task) for task in range(tasks))))
        return {"seconds": time.perf_counter() - start, "errors": errors}

    async def increment_many(self, tasks, each):
        times, errors = [], 0

        async def run(task):
            nonlocal errors
            for _ in range(each):
                start = time.perf_counter()
                errors += not await self.increment(f"s{task}")
                times.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(run(task) for task in range(tasks)))
        seconds = time.perf_counter() - start
        times.sort()
        at = lambda part: times[int(len(times) * part)]
        return {"seconds": seconds, "errors": errors, "p50": at(0.5), "p99": at(0.99)}

    async def increment(self, name):
        """Reads, adds one, appends; again when the session in hand is stale, as its documentation says."""
        for _ in range(100):
            session = await self.get(name, 0)
            delta = {"user:counter": session.state.get("user:counter", 0) + 1}
            made = Event(author="agent", invocation_id="e-counter", actions=EventActions(state_delta=delta))
            try:
                await self.service.append_event(session, made)
                return True
            except Exception:
                await asyncio.sleep(random.random() / 100)
        return False

    async def run_tools(self, name, count):
        """Runs an agent whose tool counts as google-adk's documentation teaches: it reads the state and sets it."""
        from counting import runner

        errors, runs = 0, runner(APP, self.service)
        for _ in range(count):
            message = types.Content(role="user", parts=[types.Part(text="count")])
            try:
                async for _ in runs.run_async(user_id=USER, session_id=name, new_message=message):
                    pass
            except Exception:
                errors += 1
        return {"errors": errors, "reported": 0}

    async def hold(self, name):
        await self.get(name, 1)
        before = resident()["VmRSS"]
        session = await self.get(name)
        after = resident()
        text = session.model_dump_json(by_alias=True, exclude_none=True)
        return {
            "events": len(session.events),
            "held": after["VmRSS"] - before,
            "peak": after["VmHWM"] - before,
            "json": len(text.encode()),
        }


def resident():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")}


async def main():
    contestant = Contestant(open_service(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            answer = await contestant.perform(json.loads(line))
        except Exception as error:
            answer = {"failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
