"""Measures Sessile's server beside google-adk's and ADK-Rust's, with wrk on loopback, in one run.

    bench/run http [--rounds 3] [--seconds 4] [--connections 16] [--without NAME] [--publish]

Servers stay up for the whole run; each workload goes to each of them in turn, round after round. --publish writes the medians
and the goals into docs/performance.md.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import goal
import page
from contestants import contestants
from load import WORKLOADS, Load, can
from report import Results, goals, table_of_requests


def main():
    parser = argparse.ArgumentParser(prog="bench/run http")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="how long each workload lasts")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--without", action="append", default=[], help="a server to leave out, such as adk-server")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    servers = contestants(os.environ.get("SESSILE_TEST_POSTGRES"), options.without)
    try:
        results = measure(servers, options)
    finally:
        for server in servers:
            server.clean()
    how = f"wrk with {options.connections} connections, {options.seconds} s each; the server and wrk share the cores."
    text = "\n\n".join([page.about(options.rounds, load, how), goal.table(list(goals(results))), table_of_requests(results)])
    print(text)
    (Path(os.environ["BENCH_OUT"]) / "http.md").write_text(text + "\n")
    if options.publish:
        page.publish("http", text)


def measure(servers, options):
    results, loads = Results(servers), []
    for server in servers:
        results.starts[server] = statistics.median(restart(server) for _ in range(options.rounds))
        time.sleep(1)
        results.idle[server] = server.memory()
        load = Load(server, options.connections)
        load.fill(max(1, options.rounds * options.seconds // 3))
        loads.append(load)
        print(f"{server} is up", file=sys.stderr)
    for round in range(options.rounds):
        for workload in WORKLOADS:
            for load in loads:
                if can(load.server, workload):
                    result = load.measure(workload, options.seconds)
                    results.of.setdefault((workload.name, load.server), []).append(result)
        print(f"round {round + 1} of {options.rounds}", file=sys.stderr)
    return results


def restart(server):
    server.stop()
    return server.start()


if __name__ == "__main__":
    main()
