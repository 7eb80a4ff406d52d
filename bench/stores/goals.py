"""The goals of the stores."""

from contestants import ADK_SESSION, FLOOR_MANY, FLOOR_ONE, GOOGLE_ADK, SESSILE
from goal import Goal, at_least, at_most, count, rate, time, times


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


def of_changes(own_one, many, all_one, all_many):
    """An event that changes less costs no more, and adding to a hot key no more than setting it."""
    for store, c in SESSILE.items():
        yield at_least(f"session keys only, one writer, {store}", own_one[c], all_one[c], "keys of all scopes", 1)
        yield at_least(f"session keys only, 64 tasks, {store}", many[c, "own"], all_many[c], "keys of all scopes", 1)
        yield at_least(
            f"64 tasks adding to one `app:` key, {store}", many[c, "add"], many[c, "set"], "64 tasks setting it", 1
        )


def of_transactions(found):
    for store, c in SESSILE.items():
        peers = ", ".join(
            f"{peer}: {one['value']} of {one['asked']}" for peer, one in found.items()
            if peer.library != "sessile" and peer.store == store
        )
        one = found[c]
        shown = f"{rate(one['rate'])}, p50 {time(one['p50'])}, p99 {time(one['p99'])}"
        kept = f"{one['value']} of {one['asked']}"
        what = f"64 tasks × `transact` on one key, {store}"
        yield Goal(what, shown, peers, "all", kept, one["value"] == one["asked"])


def of_counters(counters, added):
    peers = ", ".join(
        f"{c} on {c.store}: {one['value']}" for c, one in counters.items() if c.library != "sessile"
    )
    for store in ("SQLite", "PostgreSQL"):
        c = SESSILE[store]
        for how, beside, one in (("`transact`", peers, counters[c]), ("`add`", "peers have no operations", added[c])):
            value = one["value"]
            ours = f"{value}, {rate(one['rate'])}"
            yield Goal(f"8 processes × 200 increments by {how}, {store}", ours, beside, "1600", str(value), value == 1600)


def of_tools(setting, adding):
    """Runs of an agent whose tool counts. A run of google-adk or adk-session that fails says so; a lost count does not."""
    shown = lambda one: f"{one['value']}" + (f" ({one['errors']} runs failed)" if one["errors"] else "")
    peers = ", ".join(f"{c} on {c.store}: {shown(one)}" for c, one in setting.items() if c.library != "sessile")
    for store in ("SQLite", "PostgreSQL"):
        c = SESSILE[store]
        one = setting[c]
        told = one["value"] + one["reported"]
        ours = f"{shown(one)} and {one['reported']} reported as overwritten, {rate(one['rate'])}"
        yield Goal(
            f"8 processes × 200 runs of a tool that reads and sets, {store}", ours, peers, "1600 told of", str(told),
            told == 1600 and one["errors"] == 0,
        )
        one = adding[c]
        ours = f"{shown(one)}, {rate(one['rate'])}"
        yield Goal(
            f"8 processes × 200 runs of a tool that adds, {store}", ours, "peers have no operations", "1600",
            str(one["value"]), one["value"] == 1600,
        )


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
