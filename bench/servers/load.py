"""What is asked of the servers, with wrk."""

import json
import subprocess
from dataclasses import dataclass

from contestants import APP

USER = "ada"
LISTED = 50


@dataclass(frozen=True)
class Workload:
    """A request that is repeated; `{n}` in its path and body is a number."""

    name: str
    method: str
    path: str
    body: object = None
    # Whether it goes to all sessions that were made for it in turn; otherwise always to the same
    # place.
    in_turn: bool = False
    # Whether the endpoint is one that Sessile adds.
    only_sessile: bool = False


def place(session):
    return f"/apps/{APP}/users/{USER}/sessions/{session}"


def run_body(session):
    message = {"role": "user", "parts": [{"text": "hello"}]}
    return {"appName": APP, "userId": USER, "sessionId": session, "newMessage": message}


DELTA = {"stateDelta": {"step": "{n}", "user:seen": "{n}"}}
# An event of an agent that runs elsewhere.
EVENT = {
    "author": "agent",
    "content": {"role": "model", "parts": [{"text": "x" * 220}]},
    "actions": {"stateDelta": {"step": "{n}", "note": "a short text"}},
}
COUNT = {"author": "agent", "actions": {"stateOps": {"app:counter": {"add": 1}}}}
WORKLOADS = [
    # On SQLite this row notices when statements are prepared again for every read: without the
    # setting QPSG it takes about twice the time. An append does not notice, because it reads
    # nothing.
    Workload("GET of a session with 20 events", "GET", place("twenty")),
    Workload("list of 50 sessions", "GET", f"/apps/{APP}/users/lists/sessions"),
    Workload("PATCH of 2 keys", "PATCH", place("patch-{n}"), DELTA, in_turn=True),
    Workload("append of an event", "POST", place("event-{n}") + "/events", EVENT, in_turn=True, only_sessile=True),
    Workload("add to one app: counter", "POST", place("count-{n}") + "/events", COUNT, in_turn=True, only_sessile=True),
    Workload("create", "POST", f"/apps/{APP}/users/new/sessions", {"state": {"step": 1}}),
    Workload("/run_sse, scripted model", "POST", "/run_sse", run_body("run-{n}"), in_turn=True),
]


def can(server, workload):
    """Whether a server has the endpoint."""
    if workload.only_sessile:
        return server.name == "Sessile"
    return server.name != "adk-server" or workload.method != "PATCH"


class Load:
    """Sends requests to a server, and knows how many sessions it made there."""

    def __init__(self, server, connections):
        self.server, self.connections = server, connections
        self.places = {}

    def fill(self, seconds):
        """Makes the sessions that the workloads go to. Those that grow are as many as the server makes in this time: a server
        that answers more requests spreads them over more sessions, and histories stay equally short everywhere."""
        self.server.ask("POST", place("twenty"), {})
        for _ in range(10):
            self.server.ask("POST", "/run_sse", run_body("twenty"))
        for n in range(LISTED):
            self.server.ask("POST", f"/apps/{APP}/users/lists/sessions/s-{n}", {"k": n})
        for workload in WORKLOADS:
            if workload.in_turn and can(self.server, workload):
                name = workload.name
                session = place("run-{n}") if workload.path == "/run_sse" else workload.path.removesuffix("/events")
                made = self.wrk(Workload(name, "POST", session, {}), seconds, range(MOST))["requests"]
                # wrk makes its first requests to look at them, and does not wait for the last ones,
                # of which some are far back.
                self.places[name] = range(SKIPPED, max(SKIPPED + 1, min(made, MOST) // 2))

    def measure(self, workload, seconds):
        """What wrk counted: requests, microseconds, p50, p99, failed."""
        return self.wrk(workload, seconds, self.places.get(workload.name, range(1)))

    def wrk(self, workload, seconds, places):
        script = self.server.folder / "workload.lua"
        body = "nil" if workload.body is None else json.dumps(json.dumps(workload.body))
        path = self.server.prefix + workload.path
        script.write_text(LUA % {"method": workload.method, "path": path, "body": body, "first": places.start, "after": places.stop})
        command = ["wrk", "-t1", f"-c{self.connections}", f"-d{seconds}s", "--timeout", "30s", "-s", script]
        output = subprocess.run([*command, self.server.url("")], capture_output=True, text=True, check=True).stdout
        result = next(line for line in output.splitlines() if line.startswith("RESULT "))
        return json.loads(result.removeprefix("RESULT "))


SKIPPED, MOST = 16, 100_000

# Every request is made once, before the clock starts: wrk shares the cores with the server.
LUA = """
local requests, turn = {}, %(first)d
init = function(args)
  for n = %(first)d, %(after)d - 1 do
    local body = %(body)s
    if body then body = string.gsub(body, "{n}", tostring(n)) end
    local path = string.gsub("%(path)s", "{n}", tostring(n))
    requests[n] = wrk.format("%(method)s", path, {["content-type"] = "application/json"}, body)
  end
end
request = function()
  local request = requests[turn]
  turn = turn + 1
  if turn == %(after)d then turn = %(first)d end
  return request
end
done = function(summary, latency, rate)
  local errors = summary.errors
  io.write(string.format('RESULT {"requests": %%d, "microseconds": %%d, "p50": %%f, "p99": %%f, "failed": %%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""
