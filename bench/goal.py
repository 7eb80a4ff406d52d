"""A goal beside what was reached and what the peer reached, and how numbers are written."""

from dataclasses import dataclass


@dataclass
class Goal:
    what: str
    ours: str
    peer: str
    goal: str
    reached: str
    hit: bool

    def row(self):
        return f"| {self.what} | {self.ours} | {self.peer} | {self.goal} | {self.reached} | {'hit' if self.hit else '**missed**'} |"


HEAD = "| what | Sessile | beside it | goal | reached | |\n|---|---|---|---|---|---|"


def table(goals):
    reached = sum(goal.hit for goal in goals)
    return "\n".join([HEAD, *(goal.row() for goal in goals), "", f"{reached} of {len(goals)} goals are reached."])


def count(number):
    return f"{number:,.0f}".replace(",", " ")


def rate(value):
    return f"{count(value)}/s"


def time(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.9995:  # what rounds to 1000 of the smaller unit is one of this
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size(count):
    return f"{count / 1e6:.0f} MB"


def times(ratio):
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.2f}×"


def at_least(what, ours, peer, peer_name, goal, show=rate, faster=lambda ours, peer: ours / peer):
    ratio = faster(ours, peer)
    return Goal(what, show(ours), f"{peer_name}: {show(peer)}", f"≥ {goal}×", times(ratio), ratio >= goal)


def at_most(what, ours, base, base_name, goal, show=time):
    ratio = ours / base
    return Goal(what, show(ours), f"{base_name}: {show(base)}", f"≤ {goal}×", times(ratio), ratio <= goal)
