"""google-adk's services, driven by JSON lines, for the tests of interoperation.

    python adk.py sqlite    FILE     SqliteSessionService
    python adk.py database  URL      DatabaseSessionService
    python adk.py artifacts FOLDER   FileArtifactService
    python adk.py memory    FILE     SqliteMemoryService

Every line of the input is a command: an object with its name in `do`, and its arguments. Every
line of the output is the answer. A command that raises answers `error` and `message`; the next
command finds the service as it was. To add a command, add a method to the class of its service.
"""

import asyncio
import json
import sys

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions


def open_service(kind, location):
    # Imported here, because each brings dependencies that the others do not wait for.
    if kind == "sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return Sessions(SqliteSessionService(location))
    if kind == "database":
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return Sessions(DatabaseSessionService(location))
    if kind == "artifacts":
        from google.adk.artifacts.file_artifact_service import FileArtifactService

        return Artifacts(FileArtifactService(location))
    if kind == "memory":
        from google.adk.memory._sqlite_memory_service import SqliteMemoryService

        return Memory(SqliteMemoryService(location))
    raise SystemExit(f"there is no service {kind!r}: write sqlite, database, artifacts or memory")


def wire(model):
    """A model as google-adk's server would send it."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def is_worth_retrying(error):
    """Whether another writer was in the way: it committed first, or holds the file's lock."""
    return isinstance(error, StaleSessionError) or "database is locked" in str(error)


class Sessions:
    def __init__(self, service):
        self.service = service
        self.held = {}

    async def fetch(self, app, user, id):
        return await self.service.get_session(app_name=app, user_id=user, session_id=id)

    async def create(self, app, user, id, state=None):
        return wire(await self.service.create_session(app_name=app, user_id=user, session_id=id, state=state))

    async def get(self, app, user, id):
        session = await self.fetch(app, user, id)
        return {"session": session and wire(session)}

    async def hold(self, app, user, id, name):
        """Keeps a session object as it is now, for an `append` later."""
        self.held[name] = await self.fetch(app, user, id)
        return {}

    async def append(self, app, user, id, event, held=None):
        session = self.held[held] if held else await self.fetch(app, user, id)
        return wire(await self.service.append_event(session, Event.model_validate_json(json.dumps(event))))

    async def list(self, app, user=None):
        found = await self.service.list_sessions(app_name=app, user_id=user)
        return {"sessions": [wire(session) for session in found.sessions]}

    async def delete(self, app, user, id):
        await self.service.delete_session(app_name=app, user_id=user, session_id=id)
        return {}

    async def make_old_tables(self):
        """Makes the tables of the old format, with pickled events, which the service then uses."""
        from google.adk.sessions.schemas import v0

        async with self.service.db_engine.begin() as connection:
            await connection.run_sync(v0.Base.metadata.create_all)
        return {}

    async def user_state(self, app, user):
        return {"state": await self.service.get_user_state(app_name=app, user_id=user)}

    async def replay(self, app, user, id):
        """What google-adk's own service in memory makes of the stored events, one after the other."""
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        memory = InMemorySessionService()
        session = await memory.create_session(app_name=app, user_id=user, session_id=id)
        for event in (await self.fetch(app, user, id)).events:
            await memory.append_event(session, event)
        folded = await memory.get_session(app_name=app, user_id=user, session_id=id)
        return {"state": folded.state}

    async def create_loop(self, app, user, count, key_prefix):
        """Creates `count` sessions, each setting a key of its own for the user and the application."""
        retries = 0
        for n in range(count):
            name = f"{key_prefix}{n}"
            while True:
                try:
                    await self.create(app, user, name, {f"app:{name}": n, f"user:{name}": n})
                except Exception as error:
                    if not is_worth_retrying(error):
                        raise
                    retries += 1
                    await asyncio.sleep(0.001)
                else:
                    break
        return {"retries": retries}

    async def loop(self, app, user, id, count, key_prefix):
        """Appends `count` events, each setting a key of its own in all three scopes."""
        ids, retries = [], 0
        for n in range(count):
            name = f"{key_prefix}{n}"
            delta = {name: n, f"app:{name}": n, f"user:{name}": n}
            while True:
                session = await self.fetch(app, user, id)
                event = Event(author="python", invocation_id="loop", actions=EventActions(state_delta=delta))
                try:
                    await self.service.append_event(session, event)
                except Exception as error:
                    if not is_worth_retrying(error):
                        raise
                    retries += 1
                    await asyncio.sleep(0.001)
                else:
                    ids.append(event.id)
                    break
        return {"appended": len(ids), "ids": ids, "retries": retries}


class Artifacts:
    def __init__(self, service):
        self.service = service

    def place(self, app, user, id, name):
        return {"app_name": app, "user_id": user, "session_id": id, "filename": name}

    async def save(self, app, user, id, name, part, metadata=None):
        place = self.place(app, user, id, name)
        version = await self.service.save_artifact(**place, artifact=part, custom_metadata=metadata)
        return {"version": version}

    async def load(self, app, user, id, name, version=None):
        part = await self.service.load_artifact(**self.place(app, user, id, name), version=version)
        return {"part": part and wire(part)}

    async def names(self, app, user, id):
        return {"names": await self.service.list_artifact_keys(app_name=app, user_id=user, session_id=id)}

    async def versions(self, app, user, id, name):
        versions = await self.service.list_artifact_versions(**self.place(app, user, id, name))
        return {"versions": [wire(version) for version in versions]}

    async def delete(self, app, user, id, name):
        await self.service.delete_artifact(**self.place(app, user, id, name))
        return {}

    async def loop(self, app, user, id, name, count):
        """Saves `count` versions, each with a text of its own."""
        place = self.place(app, user, id, name)
        return {
            "versions": [
                await self.service.save_artifact(**place, artifact={"text": f"python {n}"}) for n in range(count)
            ]
        }


class Memory:
    def __init__(self, service):
        self.service = service

    async def add(self, app, user, id, events):
        events = [Event.model_validate_json(json.dumps(event)) for event in events]
        await self.service.add_events_to_memory(app_name=app, user_id=user, session_id=id, events=events)
        return {}

    async def search(self, app, user, query):
        found = await self.service.search_memory(app_name=app, user_id=user, query=query)
        return {"memories": [wire(memory) for memory in found.memories]}


async def main(kind, location):
    commands = open_service(kind, location)
    for line in sys.stdin:
        arguments = json.loads(line)
        try:
            answer = await getattr(commands, arguments.pop("do"))(**arguments)
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


asyncio.run(main(*sys.argv[1:]))
