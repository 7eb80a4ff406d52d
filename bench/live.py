"""Measures a live session of Sessile beside that of gemini-adk-rs 4.0.0, and says where it is ahead.

    bench/run live [--publish]

--publish writes the table into docs/performance.md.
"""

import argparse
import os
import re
import subprocess
from pathlib import Path

import page

ROUNDS = 41  # of bench/peers/src/measure.rs


def main():
    parser = argparse.ArgumentParser(prog="bench/run live")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    run = subprocess.run([os.environ["BENCH_PEERS"], "live"], check=True, capture_output=True, text=True)
    ratios = [float(ratio) for ratio in re.findall(r"= ([\d.]+)×", run.stdout)]
    ahead = sum(ratio > 1 for ratio in ratios)
    goal = f"The goal is to be ahead in each row: Sessile is in {ahead} of {len(ratios)}."
    text = "\n\n".join([page.about(ROUNDS, load), run.stdout.strip(), goal])
    print(text)
    (Path(os.environ["BENCH_OUT"]) / "live.md").write_text(text + "\n")
    if options.publish:
        page.publish("live", text)


if __name__ == "__main__":
    main()
