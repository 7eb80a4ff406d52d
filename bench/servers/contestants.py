"""The servers that are compared, each in a process of its own, with the same agent: it says "ok" to everything."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

APP = "echo"


class Server:
    """A server on a store; `command` makes its command line, `prefix` is where its API begins."""

    def __init__(self, name, store, command, prefix=""):
        self.name, self.store, self.command, self.prefix = name, store, command, prefix
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="sessile-bench-"))
        self.process = None

    def __str__(self):
        return f"{self.name} on {self.store}"

    def start(self):
        """Starts it; returns the seconds until it answers."""
        command = self.command(self)
        with open(self.folder / "log", "ab") as log:
            began = time.perf_counter()
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
        while True:
            try:
                with urllib.request.urlopen(self.url("/health"), timeout=5) as answer:
                    answer.read()
                return time.perf_counter() - began
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None:
                    raise SystemExit(f"{self} ended: {(self.folder / 'log').read_text()[-2000:]}")
                time.sleep(0.0005)

    def stop(self):
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def clean(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{self.prefix}{path}"

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url(path), data, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()

    def memory(self):
        """Resident bytes of the process and its children."""
        pages = 0
        for process in [self.process.pid, *children(self.process.pid)]:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def children(process):
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def contestants(postgres, without):
    """All of them; those on PostgreSQL have a database each, beside the one that the URL names."""
    servers = []
    for store in ["memory", "SQLite", *(["PostgreSQL"] if postgres else [])]:
        for name, command, prefix in [
            ("Sessile", sessile, ""),
            ("google-adk", google_adk, ""),
            ("adk-server", adk_server, "/api"),
        ]:
            if name in without or (name, store) == ("adk-server", "PostgreSQL"):
                continue  # The goals compare adk-server on memory and SQLite.
            url = new_database(postgres, f"bench_{name[0]}_{os.getpid()}") if store == "PostgreSQL" else None
            servers.append(Server(name, store, lambda server, command=command, url=url: command(server, url), prefix))
    return servers


def new_database(url, name):
    subprocess.run(["psql", "-q", url, "-c", f'CREATE DATABASE "{name}"'], check=True)
    return url.rsplit("/", 1)[0] + f"/{name}"


def sessile(server, url):
    agents = folder_of_agent(server, {"root_agent.yaml": CONFIG, "script.yaml": SCRIPT})
    place = ["--port", str(server.port), "--store", url or local(server)]
    return [os.environ["BENCH_SESSILE"], "serve", agents, *place]


def google_adk(server, url):
    agents = folder_of_agent(server, {"__init__.py": "from . import agent\n", "agent.py": AGENT})
    store = (url or local(server)).replace("postgresql://", "postgresql+asyncpg://")
    place = ["--port", str(server.port), "--session_service_uri", store, "--artifact_service_uri", "memory://"]
    return [Path(os.environ["SESSILE_TEST_PYTHON"]).with_name("adk"), "api_server", *place, agents]


def adk_server(server, _):
    store = "memory" if server.store == "memory" else f"sqlite:{server.folder}/sessions.db"
    return [os.environ["BENCH_ADK_RUST"], "serve", store, str(server.port)]


def local(server):
    return "memory://" if server.store == "memory" else f"sqlite:///{server.folder}/sessions.db"


def folder_of_agent(server, files):
    agents = server.folder / "agents"
    (agents / APP).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (agents / APP / name).write_text(text)
    return agents


CONFIG = "name: echo\nmodel: scripted:script.yaml\n"
SCRIPT = "rules:\n  - then: { reply: ok }\n"

AGENT = '''
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Says(BaseLlm):
    model: str = "says"

    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="ok")]))


root_agent = LlmAgent(name="echo", model=Says())
'''
