"""The measurements. Rounds are interleaved, so that what disturbs the machine disturbs every contestant alike."""

import json
import sqlite3
import statistics
import subprocess
import time
import uuid
from collections import defaultdict

from contestants import ADK_SESSION, FLOOR_MANY, FLOOR_ONE, GOOGLE_ADK, SESSILE, Store

TASKS = 64
LENGTHS = [10, 100, 1_000, 10_000, 100_000]
# Peers are measured up to here: reading or filling more takes them minutes.
LONGEST_OF_PEERS = 10_000
EVERYBODY = [*SESSILE.values(), *ADK_SESSION.values(), *GOOGLE_ADK]


def say(text):
    print(f"· {text}", flush=True)


def open_all(contestants, place):
    """A new store and a process on it for each."""
    stores = {c: Store(c, place) for c in contestants}
    return stores, {c: store.start() for c, store in stores.items()}


def close_all(processes):
    for process in processes.values():
        process.close()


def appends(place, rounds):
    """Events a second, by one writer and by many."""
    counts = {"memory": (2000, 100), "SQLite": (200, 40), "PostgreSQL": (150, 20)}
    slow = {"memory": (200, 5), "SQLite": (30, 2), "PostgreSQL": (30, 3)}
    _, processes = open_all([*EVERYBODY, FLOOR_ONE, FLOOR_MANY], place)
    one, many, errors = defaultdict(list), defaultdict(list), defaultdict(int)
    floor = PgBench(place)
    for process in processes.values():
        process.ask("create", **{"from": 0, "to": TASKS})
    for number in range(rounds + 1):  # the first round warms up
        say(f"appends, round {number} of {rounds}")
        for c, process in processes.items():
            count, each = (slow if c.library == "google-adk" else counts)[c.store]
            if c == FLOOR_MANY:
                answer = process.ask("append", session=0, count=TASKS * each)
                many[c].append(TASKS * each / answer["seconds"])
                continue
            one[c].append(count / process.ask("append", session=0, count=count)["seconds"])
            if c != FLOOR_ONE:
                answer = process.ask("append_many", tasks=TASKS, each=each)
                many[c].append((TASKS * each - answer["errors"]) / answer["seconds"])
                errors[c] += answer["errors"]
        one["pgbench"].append(floor.per_second(1))
        many["pgbench"].append(floor.per_second(16))
    close_all(processes)
    median = lambda series: {c: statistics.median(values[1:]) for c, values in series.items()}
    return median(one), median(many), errors


# What an event changes: keys of the session only; one key of the application, set or added to by
# all tasks.
CHANGES = ("own", "set", "add")


def changes(place, rounds):
    """Events a second by what they change, by one writer (session keys only) and by many; None where it cannot be said."""
    counts = {"memory": (2000, 100), "SQLite": (200, 40), "PostgreSQL": (150, 20)}
    slow = {"memory": (200, 5), "SQLite": (30, 2), "PostgreSQL": (30, 3)}
    _, processes = open_all(EVERYBODY, place)
    one, many, errors = defaultdict(list), defaultdict(list), defaultdict(int)
    for process in processes.values():
        process.ask("create", **{"from": 0, "to": TASKS})
    for number in range(rounds + 1):  # the first round warms up
        say(f"kinds of changes, round {number} of {rounds}")
        for c, process in processes.items():
            count, each = (slow if c.library == "google-adk" else counts)[c.store]
            one[c].append(count / process.ask("append", session=0, count=count, changes="own")["seconds"])
            for kind in CHANGES:
                answer = process.ask("append_many", tasks=TASKS, each=each, changes=kind)
                if "cannot" in answer:
                    continue
                many[c, kind].append((TASKS * each - answer["errors"]) / answer["seconds"])
                errors[c, kind] += answer["errors"]
    close_all(processes)
    median = lambda series: {key: statistics.median(values[1:]) for key, values in series.items()}
    return median(one), median(many), errors


def transactions(place, each=20):
    """Many tasks read, compute and write one key, each from its own session: how long one takes, and what is counted."""
    result = {}
    for c in EVERYBODY:
        say(f"transactions of {c} on {c.store}")
        with Store(c, place).start() as process:
            process.ask("create", **{"from": 0, "to": TASKS})
            few = 3 if c.library == "google-adk" else each
            answer = process.ask("increment_many", tasks=TASKS, each=few)
            value = process.ask("counter", session=0)["value"]
        asked = TASKS * few
        result[c] = {**answer, "value": value, "asked": asked, "rate": asked / answer["seconds"]}
    return result


class PgBench:
    """The floor of PostgreSQL: the same rows written by pgbench, in google-adk's tables without Sessile's additions."""

    SCRIPT = """
\\set n random(1, 1000000000)
BEGIN;
INSERT INTO events VALUES (gen_random_uuid()::text, 'bench', 'user', 's' || :client_id::text, 'e-' || :n::text, now(),
    jsonb_build_object('author', 'agent', 'content', repeat('x', 560), 'n', :n::int));
UPDATE sessions SET state = state || jsonb_build_object('step', :n::int, 'note', 'a short text'), update_time = now()
 WHERE app_name = 'bench' AND user_id = 'user' AND id = 's' || :client_id::text;
UPDATE user_states SET state = state || jsonb_build_object('last', :n::int), update_time = now()
 WHERE app_name = 'bench' AND user_id = 'user';
UPDATE app_states SET state = state || jsonb_build_object('hot', :n::int), update_time = now() WHERE app_name = 'bench';
END;
"""
    SESSIONS = """
INSERT INTO app_states VALUES ('bench', '{}', now());
INSERT INTO user_states VALUES ('bench', 'user', '{}', now());
INSERT INTO sessions SELECT 'bench', 'user', 's' || n, '{}', now(), now() FROM generate_series(0, 63) n;
"""

    def __init__(self, place):
        from contestants import ROOT

        self.url = place.database()
        place.psql(self.url, (ROOT / "crates/postgres/migrations/0001_adk.sql").read_text() + self.SESSIONS)
        self.script = place.folder / "pgbench.sql"
        self.script.write_text(self.SCRIPT)

    def per_second(self, clients):
        command = ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", "2", "-f", self.script]
        out = subprocess.run([*command, self.url], text=True, check=True, capture_output=True).stdout
        line = next(line for line in out.splitlines() if line.startswith("tps"))
        return float(line.split("=")[1].split()[0])


def histories(place, rounds, lengths):
    """Seconds of an append, of reading the last 20 events and of reading all, by the length of the history."""
    stores, processes = open_all(EVERYBODY, place)
    result = {kind: defaultdict(lambda: defaultdict(list)) for kind in ("append", "last", "all")}
    for c, process in processes.items():
        say(f"filling {c} on {c.store}")
        process.ask("create", **{"from": 0, "to": len(lengths)})
        for session, length in enumerate(lengths_of(c, lengths)):
            fill(stores[c], process, session, length)
    for number in range(rounds):
        say(f"histories, round {number + 1} of {rounds}")
        for c, process in processes.items():
            quick = c.library == "sessile"
            for session, length in enumerate(lengths_of(c, lengths)):
                few = 3 if quick else 1
                asked = {
                    "append": lambda: process.ask("append", session=session, count=100 if quick else 15),
                    "last": lambda: process.ask("get", session=session, last=20, count=30 if quick else 5),
                    "all": lambda: process.ask("get", session=session, count=20 if length <= 1_000 else few),
                }
                for kind, ask in asked.items():
                    result[kind][c][length].append(ask()["median"])
    close_all(processes)
    medians = {
        kind: {c: {n: statistics.median(v) for n, v in by.items()} for c, by in all_of.items()}
        for kind, all_of in result.items()
    }
    return stores, medians


def lengths_of(c, lengths):
    return [n for n in lengths if c.library == "sessile" or n <= LONGEST_OF_PEERS]


def fill(store, process, session, length):
    """Through the contestant itself, but for google-adk's databases, which would take long: by SQL."""
    c = store.contestant
    if c.library != "google-adk" or c.store == "memory":
        # Many at once make adk-session fail on SQLite, and slow.
        tasks = 1 if (c.library, c.store) == ("adk-session", "SQLite") else TASKS
        process.ask("fill", session=session, tasks=tasks, **{"from": 0, "to": length})
        return
    name, time = f"s{session}", 1_700_000_000
    stored = lambda n, id: json.dumps({
        "content": {"parts": [{"text": "x" * 220}], "role": "model"}, "invocation_id": f"e-{n}", "author": "agent",
        "actions": {"state_delta": {"step": n, "note": "a short text", "user:last": n, "app:hot": n},
                    "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}},
        "node_info": {"path": ""}, "id": id, "timestamp": time + n / 1e3,
    })
    if c.store == "PostgreSQL":
        template = stored(0, "").replace("'", "''")
        store.place.psql(store.where, f"""
            INSERT INTO events SELECT id, 'bench', 'user', '{name}', 'e-' || n, at,
                '{template}'::jsonb || jsonb_build_object('id', id, 'timestamp', {time} + n / 1000.0)
            FROM (SELECT n, gen_random_uuid()::text AS id, to_timestamp({time} + n / 1000.0) AT TIME ZONE 'UTC' AS at
                    FROM generate_series(0, {length - 1}) n) made""")
        return
    column = "? * 1.0" if c.service == "Sqlite" else "strftime('%Y-%m-%d %H:%M:%f', ?, 'unixepoch') || '000'"
    with sqlite3.connect(store.where, timeout=60) as connection:
        connection.executemany(
            f"INSERT INTO events VALUES (?, 'bench', 'user', '{name}', ?, {column}, ?)",
            ((id, f"e-{n}", time + n / 1e3, stored(n, id)) for n in range(length) for id in [str(uuid.uuid4())]),
        )
    connection.close()


def holding(stores, lengths):
    """Memory that reading the longest session takes, in a new process, beside the size of its JSON."""
    result = {}
    for c, store in stores.items():
        if c.store != "memory":
            say(f"memory of {c} on {c.store}")
            longest = lengths_of(c, lengths)
            with store.start() as process:
                result[c] = process.ask("hold", session=len(longest) - 1)
    return result


def lists(place, rounds, most):
    """Seconds of a page of 50 out of 1 000 sessions and out of very many; peers out of 1 000 only."""
    few = 1_000
    contestants = [c for c in EVERYBODY if c.store != "memory"]
    processes = {}
    for c in contestants:
        for size in [few, most] if c.library == "sessile" else [few]:
            say(f"making {size} sessions for {c} on {c.store}")
            store = Store(c, place)
            processes[c, size] = store.start()
            if c.library == "sessile":
                make_sessions(store, size)
            else:
                processes[c, size].ask("create", **{"from": 0, "to": size})
    times = defaultdict(list)
    for _ in range(rounds):
        for (c, size), process in processes.items():
            count = 3 if c.library == "google-adk" else 20
            times[c, size].append(process.ask("list", size=50, count=count)["median"])
    close_all(processes)
    return {key: statistics.median(values) for key, values in times.items()}


def make_sessions(store, size):
    columns = "app_name, user_id, id, state, create_time, update_time, sessile_initial"
    if store.contestant.store == "PostgreSQL":
        store.place.psql(store.where, f"""
            INSERT INTO sessions ({columns}) SELECT 'bench', 'user', 's' || n, '{{"step": 1}}',
                timestamp '2026-01-01' + n * interval '1 second', timestamp '2026-01-01' + n * interval '1 second', '{{}}'
            FROM generate_series(1, {size}) n; VACUUM ANALYZE sessions""".replace("; VACUUM", ";\nVACUUM"))
        return
    with sqlite3.connect(store.where, timeout=60) as connection:
        connection.execute(f"""
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {size})
            INSERT INTO sessions ({columns})
            SELECT 'bench', 'user', 's' || n, '{{"step": 1}}', 1.7e9 + n, 1.7e9 + n, '{{}}' FROM numbers""")
    connection.close()


def counters(place, do, processes=8, each=200):
    """What a counter says after that many increments by several processes, from different sessions.

    `do` is `increment`, the way to read, compute and write that a library offers, or `add`, an operation of the store;
    `tool_set` and `tool_add` do the same in a tool of an agent that the library's own runner runs.
    """
    result = {}
    for c in EVERYBODY:
        if c.store == "memory":
            continue
        if do in ("add", "tool_add") and c.library != "sessile":
            continue  # peers have no operations
        say(f"counting with {c} on {c.store} by {do}")
        store = Store(c, place)
        with store.start() as first:
            first.ask("create", **{"from": 0, "to": processes})
        crowd = [store.start() for _ in range(processes)]
        start = time.perf_counter()
        for session, process in enumerate(crowd):
            process.send(do, session=session, count=each)
        answers = [process.read() for process in crowd]
        seconds = time.perf_counter() - start
        value = crowd[0].ask("counter", session=0)["value"]
        result[c] = {
            "value": value,
            "errors": sum(answer["errors"] for answer in answers),
            "reported": sum(answer.get("reported", 0) for answer in answers),
            "rate": processes * each / seconds,
        }
        for process in crowd:
            process.close()
    return result
