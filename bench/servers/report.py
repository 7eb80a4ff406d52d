"""Tables of what was measured, and the goals."""

import statistics

import goal
from load import WORKLOADS


class Results:
    """What was measured of every server: results of wrk by workload, seconds to start, idle memory."""

    def __init__(self, servers):
        self.servers = servers
        self.of = {}
        self.starts, self.idle = {}, {}

    def stores(self):
        return list(dict.fromkeys(server.store for server in self.servers))

    def find(self, name, store):
        return next((server for server in self.servers if (server.name, server.store) == (name, store)), None)

    def has(self, workload, server):
        return (workload.name, server) in self.of

    def rate(self, workload, server):
        return statistics.median(r["requests"] / r["microseconds"] * 1e6 for r in self.of[workload.name, server])

    def seconds(self, workload, server, field):
        return statistics.median(r[field] for r in self.of[workload.name, server]) / 1e6

    def failed(self, workload, server):
        return sum(r["failed"] for r in self.of[workload.name, server])


def goals(results):
    for workload in WORKLOADS:
        for store in results.stores():
            yield from goals_of_requests(results, workload, store)
    for store in results.stores():
        ours, google = results.find("Sessile", store), results.find("google-adk", store)
        if google:
            starts, idle = results.starts, results.idle
            fewer = lambda ours, peer: peer / ours
            yield goal.at_least(
                f"start to first answer, {store}", starts[ours], starts[google], "google-adk", 50, goal.time, fewer
            )
            yield goal.at_least(f"memory when idle, {store}", idle[ours], idle[google], "google-adk", 5, goal.size, fewer)


def goals_of_requests(results, workload, store):
    what = f"{workload.name}, {store}"
    ours, google, rust = (results.find(name, store) for name in ("Sessile", "google-adk", "adk-server"))
    rate = results.rate(workload, ours)
    google = google if google and results.has(workload, google) else None
    if google:
        yield goal.at_least(what, rate, results.rate(workload, google), "google-adk", 50)
    if rust and results.has(workload, rust):
        other = results.rate(workload, rust)
        failed = results.failed(workload, rust)
        name = f"adk-server ({failed} failed)" if failed else "adk-server"
        yield goal.Goal(
            what, goal.rate(rate), f"{name}: {goal.rate(other)}", "> 1×", goal.times(rate / other), rate > other
        )
    if google:
        p99, p50 = results.seconds(workload, ours, "p99"), results.seconds(workload, google, "p50")
        yield goal.at_most(f"{what}: p99 against p50", p99, p50, "google-adk's p50", 1)


def table_of_requests(results):
    lines = ["| requests a second | " + " | ".join(map(str, results.servers)) + " |", "|---|" + "--:|" * len(results.servers)]
    for workload in WORKLOADS:
        cells = [cell(results, workload, server) for server in results.servers]
        lines.append(f"| {workload.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(results, workload, server):
    if not results.has(workload, server):
        return "–"
    failed = results.failed(workload, server)
    rate = goal.count(results.rate(workload, server))
    return f"{rate} ({failed} failed)" if failed else rate
