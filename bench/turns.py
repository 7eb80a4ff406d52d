#!/usr/bin/env python3
"""Measures one turn of an agent on Sessile, google-adk and ADK-Rust, in one run.

    bench/run turns [--rounds 5] [--turns 400]

A turn is a message, a model's call of a tool that writes state, the tool's answer and a reply. Sessions are in
memory and the models are functions. The rounds are interleaved; medians are printed as Markdown.
"""

import argparse
import os
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
HISTORIES = [0, 100, 1_000, 10_000]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=400)
    arguments = parser.parse_args()
    turns = str(arguments.turns)
    sessile, rust = os.environ["BENCH_SESSILE"], os.environ["BENCH_ADK_RUST"]
    python = [os.environ["SESSILE_TEST_PYTHON"], HERE / "google_adk_turn.py", str(max(20, arguments.turns // 10))]
    contestants = {f"Sessile, {history:,} events before": [sessile, turns, str(history)] for history in HISTORIES}
    contestants |= {"ADK-Rust 2.3 (adk-runner)": [rust, "turn", turns], "google-adk 2.13": python}
    seen = {name: [] for name in contestants}
    for _ in range(arguments.rounds):
        for name, command in contestants.items():
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seen[name].append(int(output.split()[-1]) / 1e3)
    medians = {name: statistics.median(values) for name, values in seen.items()}
    ours, longest = (medians[f"Sessile, {history:,} events before"] for history in (HISTORIES[0], HISTORIES[-1]))
    print(f"Medians of {arguments.rounds} interleaved rounds of {turns} turns (google-adk: fewer), in memory.\n")
    print("| | µs a turn | × Sessile |\n|---|--:|--:|")
    for name, value in medians.items():
        print(f"| {name} | {value:,.1f} | {value / ours:.1f} |")
    print("\n| goal | reached | |\n|---|--:|---|")
    google, adk_rust = medians["google-adk 2.13"] / ours, medians["ADK-Rust 2.3 (adk-runner)"] / ours
    goals = [
        ("at least 20 × google-adk", f"{google:.0f} ×", google >= 20),
        ("ahead of adk-runner", f"{adk_rust:.1f} ×", adk_rust > 1),
        ("flat as history grows, without contents", f"{longest / ours:.2f} × at 10,000 events", longest / ours <= 1.2),
    ]
    for goal, reached, hit in goals:
        print(f"| {goal} | {reached} | {'yes' if hit else '**missed**'} |")


if __name__ == "__main__":
    main()
