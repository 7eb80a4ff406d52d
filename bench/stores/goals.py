"""The goals of the stores."""

from contestants import ADK_SESSION, FLOOR_MANY, FLOOR_ONE, GOOGLE_ADK, SESSILE
from goal import Goal, at_least, at_most, count, time, times


def google(store):
    return [c for c in GOOGLE_ADK if c.store == store]


def of_appends(one, many, errors):
    sqlite, postgres = "SQLite", "PostgreSQL"
    yield at_least("append, one writer, SQLite", one[SESSILE[sqlite]], one[FLOOR_ONE], "rusqlite by hand", 0.8)
    yield at_least("append, one writer, PostgreSQL", one[SESSILE[postgres]], one["pgbench"], "pgbench", 0.8)
    for peer in [*google("memory"), ADK_SESSION["memory"]]:
        yield at_least("append, one writer, memory", one[SESSILE["memory"]], one[peer], str(peer), 2)
    yield at_least(
        "append, 64 tasks, SQLite", many[SESSILE[sqlite]], many[FLOOR_MANY], "rusqlite, 64 in a commit", 0.8
    )
    for store in (sqlite, postgres):
        for peer in google(store):
            yield at_least(f"append, 64 tasks, {store}", many[SESSILE[store]], many[peer], str(peer), 50)
        yield at_least(
            f"append, 64 tasks, {store}", many[SESSILE[store]], many[ADK_SESSION[store]], "adk-session", 5
        )
    yield at_least(
        "append, 64 tasks, PostgreSQL", many[SESSILE[postgres]], many["pgbench"], "pgbench, 16 clients", 1
    )
    lost = {str(c) + " on " + c.store: count for c, count in errors.items() if count and c.library != "sessile"}
    ours = sum(count for c, count in errors.items() if c.library == "sessile")
    others = ", ".join(f"{name}: {count}" for name, count in lost.items()) or "peers: 0"
    yield Goal("appends that failed, 64 tasks", str(ours), others, "0", str(ours), ours == 0)


def of_counters(counters):
    peers = ", ".join(
        f"{c} on {c.store}: {one['value']}" for c, one in counters.items() if c.library != "sessile"
    )
    for store in ("SQLite", "PostgreSQL"):
        value = counters[SESSILE[store]]["value"]
        yield Goal(f"8 processes × 200 increments, {store}", str(value), peers, "1600", str(value), value == 1600)


def of_histories(medians, lengths):
    append, last, whole = medians["append"], medians["last"], medians["all"]
    for store, c in SESSILE.items():
        costs = [append[c][n] for n in lengths]
        fewest = append[c][lengths[0]]
        ratio = max(costs) / fewest
        shown = ", ".join(time(cost) for cost in costs)
        beside = "at " + ", ".join(count(n) for n in lengths) + " events"
        yield Goal(f"append against history, {store}", shown, beside, "≤ 1.2×", times(ratio), ratio <= 1.2)
    slower = lambda ours, peer: peer / ours
    n = 10_000
    for store, c in SESSILE.items():
        ours = whole[c][n]
        for peer in google(store):
            yield at_least(f"get of 10 000 events, {store}", ours, whole[peer][n], str(peer), 20, time, slower)
        peer = whole[ADK_SESSION[store]][n]
        goal = 100 if store == "memory" else 3
        yield at_least(f"get of 10 000 events, {store}", ours, peer, "adk-session", goal, time, slower)
    most = lengths[-1]
    for store, c in SESSILE.items():
        what = f"last 20 of {count(most)} events, {store}"
        yield at_most(what, last[c][most], last[c][100], "last 20 of 100", 1.5)


def of_lists(lists, most):
    for store in ("SQLite", "PostgreSQL"):
        c = SESSILE[store]
        peers = ", ".join(f"{p} {time(t)}" for (p, _), t in lists.items() if p.library != "sessile" and p.store == store)
        goal = at_most(
            f"page of 50 of {count(most)} sessions, {store}", lists[c, most], lists[c, 1_000], "of 1 000", 2
        )
        goal.peer += f" (peers, of 1 000: {peers})"
        yield goal


def of_memory(held):
    for store in ("SQLite", "PostgreSQL"):
        ours = held[SESSILE[store]]
        ratio = ours["peak"] / ours["json"]
        peers = ", ".join(
            f"{c}: {one['peak'] / one['json']:.1f}×" for c, one in held.items()
            if c.library != "sessile" and c.store == store
        )
        size = f"{ours['peak'] / 1e6:.0f} MB for {ours['json'] / 1e6:.0f} MB of JSON, {ours['events']} events"
        yield Goal(f"memory of reading a session, {store}", size, peers, "≤ 3×", times(ratio), ratio <= 3)
