"""A plot with two logarithmic axes, as SVG that is readable on light and dark ground."""

import math

from goals import time

WIDTH, HEIGHT = 830, 460
LEFT, RIGHT, TOP, BOTTOM = 80, 290, 44, 52
COLOURS = {"sessile": "#1f77b4", "google-adk": "#d62728", "google-adk Database": "#9467bd", "adk-session": "#e08a00"}
DASHES = {"memory": "2 4", "SQLite": "", "PostgreSQL": "9 4"}

STYLE = """
text { font: 12px sans-serif; fill: #333 } .title { font-size: 15px; font-weight: bold }
.grid { stroke: #8884; } path { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }
"""


def plot(title, below, series):
    """`series` maps a contestant to {history length: seconds}."""
    lengths = sorted({n for points in series.values() for n in points})
    costs = [cost for points in series.values() for cost in points.values()]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    first, last = math.log10(lengths[0]), math.log10(lengths[-1])

    def x(n):
        return LEFT + (math.log10(n) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(cost):
        return TOP + (high - math.log10(cost)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="24">{title}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{below}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{time(10.0**power * 1.0000001)}</text>')
    for n in lengths:
        label = f"{n:,}".replace(",", " ")
        parts.append(f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{label}</text>')
    for number, (contestant, points) in enumerate(series.items()):
        colour, dash = COLOURS.get(str(contestant), COLOURS[contestant.library]), DASHES[contestant.store]
        line = " ".join(f"{'L' if k else 'M'}{x(n):.1f} {y(cost):.1f}" for k, (n, cost) in enumerate(sorted(points.items())))
        stroke = f'stroke="{colour}" stroke-dasharray="{dash}"'
        parts.append(f'<path d="{line}" {stroke}/>')
        for n, cost in points.items():
            parts.append(f'<circle cx="{x(n):.1f}" cy="{y(cost):.1f}" r="3" fill="{colour}"/>')
        at = TOP + 10 + number * 22
        parts.append(f'<path d="M{WIDTH - RIGHT + 16} {at} h34" {stroke}/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 58}" y="{at + 4}">{contestant}, {contestant.store}</text>')
    return "\n".join([*parts, "</svg>", ""])
