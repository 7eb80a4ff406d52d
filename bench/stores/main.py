"""Measures every store of Sessile beside its peers and the floors, and says which goals are reached.

    bench/run stores [--rounds N] [--quick] [--publish]

--quick keeps histories and lists short, to try the programs; --publish writes the tables and plots into docs/.
"""

import argparse
import os
import tempfile
from pathlib import Path

import goal
import goals
import measure
import page
from contestants import Place
from plot import plot

IMAGES = """![Cost of an append against the length of the history](performance-append.svg)

![Cost of reading a whole session against its length](performance-get.svg)"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run stores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    lengths = measure.LENGTHS[:4] if options.quick else measure.LENGTHS
    most = 20_000 if options.quick else 1_000_000
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        place = Place(
            folder=Path(folder),
            postgres=os.environ["SESSILE_TEST_POSTGRES"],
            python=os.environ["SESSILE_TEST_PYTHON"],
            sessile=os.environ["BENCH_SESSILE"],
            adk_session=os.environ["BENCH_ADK_SESSION"],
        )
        try:
            one, many, errors = measure.appends(place, options.rounds)
            own_one, changes, refused = measure.changes(place, options.rounds)
            transactions = measure.transactions(place)
            counters = measure.counters(place, "increment")
            added = measure.counters(place, "add")
            tools = {do: measure.counters(place, do) for do in ("tool_set", "tool_add")}
            stores, medians = measure.histories(place, options.rounds, lengths)
            held = measure.holding(stores, lengths)
            lists = measure.lists(place, options.rounds, most)
        finally:
            place.clean()
    rows = [
        *goals.of_appends(one, many, errors),
        *goals.of_changes(own_one, changes, one, many),
        *goals.of_transactions(transactions),
        *goals.of_counters(counters, added),
        *goals.of_tools(tools["tool_set"], tools["tool_add"]),
        *goals.of_histories(medians, lengths),
        *goals.of_lists(lists, most),
        *goals.of_memory(held),
    ]
    tables = [
        table_of_appends(one, many),
        table_of_changes(own_one, changes, refused, transactions),
        table_of_histories(medians),
    ]
    text = "\n\n".join([about(options, busy), goal.table(rows), *tables])
    plots = {
        "append.svg": plot("Cost of an append", "events in the session before it", medians["append"]),
        "get.svg": plot("Cost of reading a whole session", "events in the session", medians["all"]),
    }
    print(f"\n{text}")
    write(Path(os.environ["BENCH_OUT"]), text, plots)
    if options.publish:
        publish(text, plots)


def about(options, busy):
    return page.about(options.rounds, busy, *(["Short histories and lists (`--quick`)."] if options.quick else []))


def table_of_appends(one, many):
    lines = ["| appends a second | one writer | 64 tasks |", "|---|---|---|"]
    for c in dict.fromkeys([*one, *many]):
        name = "pgbench (1 and 16 clients)" if c == "pgbench" else f"{c}, {c.store}"
        lines.append(f"| {name} | {goal.rate(one[c]) if c in one else ''} | {goal.rate(many[c]) if c in many else ''} |")
    return "\n".join(lines)


CHANGES = """An event changes only session keys, or only one key of the application, which 64 tasks set or add to. The last column is 64
tasks that each read, compute and write one key of their user from a session of their own, and how many of these increments the
counter has in the end. `cannot`: google-adk and adk-session have no operations; all that they can do with a counter is the last
column, where adk-session notices no overwrite, and google-adk only one in the same session (its memory service runs one task at a
time)."""


def table_of_changes(own_one, many, errors, transactions):
    lines = [
        CHANGES, "", "| a second | session keys, one writer | session keys, 64 tasks | set one `app:` key | add to it "
        "| increment one key: p50, p99, counted |", "|---|---|---|---|---|---|",
    ]
    for c, one in own_one.items():
        cell = lambda kind: "cannot" if (c, kind) not in many else goal.rate(many[c, kind]) + failed(errors[c, kind])
        done = transactions[c]
        times = f"{goal.rate(done['rate'])}: {goal.time(done['p50'])}, {goal.time(done['p99'])}"
        counted = f"{done['value']} of {done['asked']}"
        cells = [goal.rate(one), cell("own"), cell("set"), cell("add"), f"{times}, {counted}"]
        lines.append(f"| {c}, {c.store} | {' | '.join(cells)} |")
    return "\n".join(lines)


def failed(count):
    return f" ({count} failed)" if count else ""


def table_of_histories(medians):
    lines = ["| at this many events | append | last 20 | all |", "|---|---|---|---|"]
    for c, by_length in medians["append"].items():
        for n in by_length:
            costs = " | ".join(goal.time(medians[kind][c][n]) for kind in ("append", "last", "all"))
            lines.append(f"| {c}, {c.store}: {goal.count(n)} | {costs} |")
    return "\n".join(lines)


def write(folder, text, plots):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stores.md").write_text(text + "\n")
    for name, svg in plots.items():
        (folder / name).write_text(svg)


def publish(text, plots):
    page.publish("stores", f"{text}\n\n{IMAGES}")
    for name, svg in plots.items():
        (page.ROOT / "docs" / f"performance-{name}").write_text(svg)


if __name__ == "__main__":
    main()
