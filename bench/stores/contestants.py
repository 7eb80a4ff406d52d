"""Who takes part, and how each is started."""

import json
import os
import subprocess
import uuid
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Place:
    """Where databases are made and programs are found."""

    folder: Path
    postgres: str  # the URL of a database on a server where databases can be made
    python: str
    sessile: str
    adk_session: str
    names: list = field(default_factory=list)

    def file(self):
        return str(self.folder / f"{uuid.uuid4().hex}.db")

    def database(self, template=None):
        name = f"bench_{uuid.uuid4().hex}"
        self.psql(self.postgres, f"CREATE DATABASE {name}")
        self.names.append(name)
        return self.postgres.rsplit("/", 1)[0] + "/" + name

    def psql(self, url, sql):
        command = ["psql", "-q", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", url]
        return subprocess.run(command, input=sql, text=True, check=True, capture_output=True).stdout.strip()

    def clean(self):
        for name in self.names:
            self.psql(self.postgres, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@dataclass(frozen=True)
class Contestant:
    library: str  # sessile, google-adk, adk-session or floor
    store: str  # memory, SQLite or PostgreSQL
    service: str = ""  # which of google-adk's services

    def __str__(self):
        return " ".join(filter(None, [self.library, self.service]))


SESSILE = {store: Contestant("sessile", store) for store in ("memory", "SQLite", "PostgreSQL")}
ADK_SESSION = {store: Contestant("adk-session", store) for store in ("memory", "SQLite", "PostgreSQL")}
GOOGLE_ADK = [
    Contestant("google-adk", "memory", "InMemory"),
    Contestant("google-adk", "SQLite", "Sqlite"),
    Contestant("google-adk", "SQLite", "Database"),
    Contestant("google-adk", "PostgreSQL", "Database"),
]
FLOOR_ONE = Contestant("floor", "SQLite", "one")
FLOOR_MANY = Contestant("floor", "SQLite", "many")


class Store:
    """A new store of a contestant; processes can be started on it."""

    def __init__(self, contestant, place):
        self.contestant, self.place = contestant, place
        self.where = {
            "memory": lambda: "memory",
            "SQLite": place.file,
            "PostgreSQL": place.database,
        }[contestant.store]()
        self.new = True

    def start(self):
        c, where, environment = self.contestant, self.where, dict(os.environ)
        if self.new:
            environment["MIGRATE"] = "1"
            self.new = False
        if c.library == "sessile":
            command = [self.place.sessile, f"sqlite:///{where}" if c.store == "SQLite" else where]
        elif c.library == "floor":
            command = [self.place.sessile, f"floor:{64 if c.service == 'many' else 1}:{where}"]
        elif c.library == "adk-session":
            command = [self.place.adk_session, f"sqlite://{where}?mode=rwc" if c.store == "SQLite" else where]
        else:
            url = {
                ("memory", "InMemory"): "memory",
                ("SQLite", "Sqlite"): f"sqlite:{where}",
                ("SQLite", "Database"): f"database:sqlite+aiosqlite:///{where}",
                ("PostgreSQL", "Database"): "database:" + where.replace("postgresql://", "postgresql+asyncpg://"),
            }[c.store, c.service]
            command = [self.place.python, str(ROOT / "bench/stores/google_adk.py"), url]
        return Process(command, environment, str(c))


class Process:
    """A contestant's process: requests go in, answers come out."""

    def __init__(self, command, environment, name):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.read()

    def ask(self, do, **request):
        self.send(do, **request)
        return self.read()

    def send(self, do, **request):
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended: {self.process.stderr.read()[-2000:]}")
        answer = json.loads(line)
        if "failure" in answer:
            raise RuntimeError(f"{self.name}: {answer['failure']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
