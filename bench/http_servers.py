#!/usr/bin/env python3
"""Measures Sessile's server beside google-adk's and ADK-Rust's, with wrk on loopback, in one run.

    bench/run http [--rounds 3] [--seconds 4] [--connections 16] [--without NAME] [--output FILE]

Servers stay up for the whole run; each workload goes to each of them in turn, round after round, and the
medians are printed as Markdown, with the goals below them.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

APP, USER = "echo", "ada"
SESSIONS = 64  # that PATCH goes to
RUNS = 1000  # that runs go to, so that no history grows long
LISTED = 50

LUA = """
local requests = 0
wrk.method = "%(method)s"
wrk.headers["content-type"] = "application/json"
request = function()
  requests = requests + 1
  local n = requests %% %(places)d
  local path = string.gsub("%(path)s", "{n}", tostring(n))
  local body = %(body)s
  if body then body = string.gsub(body, "{n}", tostring(n)) end
  return wrk.format(nil, path, nil, body)
end
done = function(summary, latency, rate)
  local errors = summary.errors
  io.write(string.format('RESULT {"requests": %%d, "microseconds": %%d, "p50": %%f, "p99": %%f, "failed": %%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, name, store, command, prefix=""):
        self.name, self.store, self.command, self.prefix = name, store, command, prefix
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="sessile-bench-"))
        self.process = None

    def start(self):
        """Starts it; returns the seconds until it answers."""
        command = self.command(self)
        log = open(self.folder / "log", "ab")
        began = time.perf_counter()
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
        while True:
            try:
                with urllib.request.urlopen(self.url("/health"), timeout=5) as answer:
                    answer.read()
                return time.perf_counter() - began
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None:
                    raise SystemExit(f"{self.name} ended: {(self.folder / 'log').read_text()[-2000:]}")
                time.sleep(0.0005)

    def stop(self):
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

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

    def fill(self):
        """Makes the sessions that the workloads go to."""
        self.ask("POST", place("twenty"))
        for _ in range(10):
            self.ask("POST", "/run", run_body("twenty"))
        for n in range(SESSIONS):
            self.ask("POST", place(f"patch-{n}"))
        for n in range(RUNS):
            self.ask("POST", place(f"run-{n}"))
        for n in range(LISTED):
            self.ask("POST", f"/apps/{APP}/users/lists/sessions/s-{n}", {"k": n})


def children(process):
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


def place(session):
    return f"/apps/{APP}/users/{USER}/sessions/{session}"


def run_body(session):
    message = {"role": "user", "parts": [{"text": "hello"}]}
    return {"appName": APP, "userId": USER, "sessionId": session, "newMessage": message}


# name, method, path, body, how many sessions it goes to, the servers that can do it
WORKLOADS = [
    ("GET of a session with 20 events", "GET", place("twenty"), None, 1),
    ("list of 50 sessions", "GET", f"/apps/{APP}/users/lists/sessions", None, 1),
    ("PATCH of 2 keys", "PATCH", place("patch-{n}"), {"stateDelta": {"step": "{n}", "user:seen": "{n}"}}, SESSIONS),
    ("create", "POST", f"/apps/{APP}/users/new/sessions", {"state": {"step": 1}}, 1),
    ("/run_sse, scripted model", "POST", "/run_sse", run_body("run-{n}"), RUNS),
]


def measure(server, workload, arguments):
    name, method, path, body, places = workload
    text = "nil" if body is None else json.dumps(json.dumps(body))
    script = server.folder / "workload.lua"
    script.write_text(LUA % {"method": method, "path": server.prefix + path, "body": text, "places": places})
    command = ["wrk", "-t1", f"-c{arguments.connections}", f"-d{arguments.seconds}s", "--timeout", "30s", "-s", script]
    output = subprocess.run([*command, server.url("")], capture_output=True, text=True, check=True).stdout
    result = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return json.loads(result.removeprefix("RESULT "))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def sessile(store):
    def command(server):
        url = {"memory": "memory://", "SQLite": f"sqlite:///{server.folder}/sessions.db"}.get(store, store)
        agents = server.folder / "agents" / APP
        agents.mkdir(parents=True, exist_ok=True)
        (agents / "root_agent.yaml").write_text("name: echo\nmodel: scripted:script.yaml\n")
        (agents / "script.yaml").write_text(SCRIPT)
        return [os.environ["BENCH_SESSILE"], "serve", server.folder / "agents", "--port", str(server.port), "--store", url]

    return command


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


def google_adk(store):
    def command(server):
        url = {"memory": "memory://", "SQLite": f"sqlite:///{server.folder}/sessions.db"}.get(store, store)
        agents = server.folder / "agents" / APP
        agents.mkdir(parents=True, exist_ok=True)
        (agents / "__init__.py").write_text("from . import agent\n")
        (agents / "agent.py").write_text(AGENT)
        adk = Path(os.environ["SESSILE_TEST_PYTHON"]).with_name("adk")
        port = ["--port", str(server.port), "--session_service_uri", url.replace("postgresql://", "postgresql+asyncpg://")]
        return [adk, "api_server", *port, "--artifact_service_uri", "memory://", server.folder / "agents"]

    return command


def adk_rust(store):
    def command(server):
        target = {"memory": "memory", "SQLite": f"sqlite:{server.folder}/sessions.db"}[store]
        return [os.environ["BENCH_ADK_RUST"], "serve", target, str(server.port)]

    return command


def new_database(url, name):
    """A database of its own beside the one that the URL names."""
    subprocess.run(["psql", "-q", url, "-c", f'CREATE DATABASE "{name}"'], check=True)
    return url.rsplit("/", 1)[0] + f"/{name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--without", action="append", default=[], help="a server to leave out, such as adk-server")
    parser.add_argument("--output", type=Path, help="where the Markdown goes, beside standard output")
    arguments = parser.parse_args()
    servers = [
        Server("Sessile", "memory", sessile("memory")),
        Server("google-adk", "memory", google_adk("memory")),
        Server("adk-server", "memory", adk_rust("memory"), "/api"),
        Server("Sessile", "SQLite", sessile("SQLite")),
        Server("google-adk", "SQLite", google_adk("SQLite")),
        Server("adk-server", "SQLite", adk_rust("SQLite"), "/api"),
    ]
    postgres = os.environ.get("SESSILE_TEST_POSTGRES")
    if postgres:
        mark = f"{os.getpid()}"
        servers += [
            Server("Sessile", "PostgreSQL", sessile(new_database(postgres, f"bench_http_{mark}_a"))),
            Server("google-adk", "PostgreSQL", google_adk(new_database(postgres, f"bench_http_{mark}_b"))),
        ]
    servers = [server for server in servers if server.name not in arguments.without]
    try:
        text = run(servers, arguments)
    finally:
        for server in servers:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


def run(servers, arguments):
    starts, idle = {}, {}
    for server in servers:
        seconds = []
        for _ in range(arguments.rounds):
            server.stop()
            seconds.append(server.start())
        time.sleep(1)
        starts[server], idle[server] = statistics.median(seconds), server.memory()
        server.fill()
        print(f"{server.name} on {server.store} is up", file=sys.stderr)

    results = {}
    for round in range(arguments.rounds):
        for workload in WORKLOADS:
            for server in servers:
                if server.name == "adk-server" and workload[1] == "PATCH":
                    continue  # It has no such endpoint.
                result = measure(server, workload, arguments)
                if result["failed"]:
                    print(f"{server.name} on {server.store} failed {result['failed']} of {workload[0]}", file=sys.stderr)
                results.setdefault((workload[0], server), []).append(result)
        print(f"round {round + 1} of {arguments.rounds}", file=sys.stderr)
    return report(servers, starts, idle, results, arguments)


def report(servers, starts, idle, results, arguments):
    def median(workload, server, field):
        return statistics.median(result[field] for result in results[workload, server])

    def rate(workload, server):
        return statistics.median(r["requests"] / r["microseconds"] * 1e6 for r in results[workload, server])

    def find(name, store):
        return next((server for server in servers if (server.name, server.store) == (name, store)), None)

    stores = list(dict.fromkeys(server.store for server in servers))
    lines = [
        f"{arguments.connections} connections, {arguments.seconds} s each, medians of {arguments.rounds} interleaved rounds.",
        "",
        "| request | store | Sessile/s | google-adk/s | adk-server/s | × google-adk | × adk-server | p50 ms | p99 ms | google-adk p50 ms | failed |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    goals = []
    for workload, *_ in WORKLOADS:
        for store in stores:
            ours, python, rust = (find(name, store) for name in ("Sessile", "google-adk", "adk-server"))
            rust = rust if rust and (workload, rust) in results else None
            mine, theirs = rate(workload, ours), rate(workload, python)
            other = rate(workload, rust) if rust else None
            p50, p99 = (median(workload, ours, field) / 1e3 for field in ("p50", "p99"))
            python_p50 = median(workload, python, "p50") / 1e3
            failed = sum(result["failed"] for result in results[workload, ours])
            cells = [
                workload, store, f"{mine:,.0f}", f"{theirs:,.0f}", f"{other:,.0f}" if other else "–",
                f"{mine / theirs:.0f}", f"{mine / other:.1f}" if other else "–",
                f"{p50:.2f}", f"{p99:.2f}", f"{python_p50:.1f}", str(failed),
            ]
            lines.append("| " + " | ".join(cells) + " |")
            goals.append((f"{workload}, {store}: at least 50 × google-adk", f"{mine / theirs:.0f} ×", mine / theirs >= 50))
            if other:
                goals.append((f"{workload}, {store}: ahead of adk-server", f"{mine / other:.1f} ×", mine > other))
            goals.append(
                (f"{workload}, {store}: p99 no worse than google-adk's p50", f"{p99:.2f} against {python_p50:.1f} ms", p99 <= python_p50)
            )
    lines += ["", "| | " + " | ".join(f"{s.name}, {s.store}" for s in servers) + " |", "|---|" + "--:|" * len(servers)]
    lines.append("| start to first answer, ms | " + " | ".join(f"{starts[s] * 1e3:,.0f}" for s in servers) + " |")
    lines.append("| memory when idle, MB | " + " | ".join(f"{idle[s] / 1e6:,.0f}" for s in servers) + " |")
    for store in stores:
        ours, python = find("Sessile", store), find("google-adk", store)
        start, memory = starts[python] / starts[ours], idle[python] / idle[ours]
        goals.append((f"start, {store}: under 1/50 of google-adk", f"1/{start:.0f}", start > 50))
        goals.append((f"idle memory, {store}: under 1/5 of google-adk", f"1/{memory:.1f}", memory > 5))
    lines += ["", "| goal | reached | |", "|---|--:|---|"]
    lines += [f"| {goal} | {reached} | {'yes' if hit else '**missed**'} |" for goal, reached, hit in goals]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
