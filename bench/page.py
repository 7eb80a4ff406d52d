"""The page of results, docs/performance.md: each program writes into a place of its own there, between two marks."""

import datetime
import os
import platform
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
END = "<!-- to here -->"


def about(rounds, load, *notes):
    """When and where something was measured; `load` is the machine's before it began."""
    cores = os.cpu_count()
    facts = f"Run on {datetime.date.today()}, {cores} cores, {platform.machine()}, {rounds} interleaved rounds, medians."
    noise = f"**The machine was busy (load {load:.1f} on {cores} cores): these numbers are provisional.**"
    return " ".join([facts, *notes, *([noise] if load > cores / 2 else [])])


def publish(name, text):
    """Writes what `bench/run NAME` found into its place."""
    page, begin = ROOT / "docs/performance.md", f"<!-- bench/run {name} writes from here -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}")
