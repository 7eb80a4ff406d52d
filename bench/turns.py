#!/usr/bin/env python3
"""Measures one turn of an agent on Sessile, google-adk and ADK-Rust, in one run.

    bench/run turns [--rounds 5] [--turns 400] [--publish]

A turn is a message, a model's call of a tool that writes state, the tool's answer and a reply. Sessions are in
memory and the models are functions. The rounds are interleaved; medians are printed as Markdown, and --publish
writes them into docs/performance.md.
"""

import argparse
import os
import statistics
import subprocess
from pathlib import Path

import goal
import page

HERE = Path(__file__).resolve().parent
HISTORIES = [0, 100, 1_000, 10_000]
RUST, GOOGLE = "adk-runner 2.3", "google-adk 2.13"


def main():
    parser = argparse.ArgumentParser(prog="bench/run turns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    seconds = measure(options)
    text = "\n\n".join([page.about(options.rounds, load, spread(seconds)), goal.table(goals(seconds)), table(seconds)])
    print(text)
    if options.publish:
        page.publish("turns", text)


def ours(history):
    return f"Sessile, {goal.count(history)} events before"


def measure(options):
    """Seconds of a turn in each round, by contestant."""
    turns = str(options.turns)
    sessile, rust = os.environ["BENCH_SESSILE"], os.environ["BENCH_ADK_RUST"]
    python = [os.environ["SESSILE_TEST_PYTHON"], HERE / "google_adk_turn.py", str(max(20, options.turns // 10))]
    contestants = {ours(history): [sessile, turns, str(history)] for history in HISTORIES}
    contestants |= {RUST: [rust, "turn", turns], GOOGLE: python}
    seconds = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, command in contestants.items():
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds[name].append(int(output.split()[-1]) / 1e9)
    return seconds


def spread(seconds):
    """How far apart the rounds lay."""
    between = lambda name: f"{goal.time(min(seconds[name]))} to {goal.time(max(seconds[name]))}"
    return f"The rounds took {between(ours(0))} (Sessile), {between(RUST)} ({RUST}) and {between(GOOGLE)} ({GOOGLE})."


def goals(seconds):
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    turn, slower = medians[ours(0)], lambda ours, peer: peer / ours
    ahead = goal.at_least("one turn", turn, medians[RUST], RUST, 1, goal.time, slower)
    longest = HISTORIES[-1]
    flat = f"one turn after {goal.count(longest)} events, no contents included"
    return [
        goal.at_least("one turn", turn, medians[GOOGLE], GOOGLE, 20, goal.time, slower),
        ahead,
        goal.at_most(flat, medians[ours(longest)], turn, "in a new session", 1.2),
    ]


def table(seconds):
    lines = ["| | a turn | |", "|---|--:|--:|"]
    first = statistics.median(seconds[ours(0)])
    for name, values in seconds.items():
        median = statistics.median(values)
        lines.append(f"| {name} | {goal.time(median)} | {goal.times(median / first)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
