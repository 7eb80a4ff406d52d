#!/usr/bin/env python3
"""Fails if more than a few modules of a crate import each other in a circle.

    checks/module_cycles.py            fails on a circle of more than MOST modules
    checks/module_cycles.py --list     prints every circle

A module is a file or folder directly below a crate's `src`. It imports another one if any of its files names it, as
`crate::other`, or names an item that the crate's root re-exports from it. Tests do not count.
"""

import re
import sys
from pathlib import Path

MOST = 3
ROOTS = {"lib", "main"}


def modules_of(source):
    """The files of each module."""
    found = {}
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            files = [file for file in entry.rglob("*.rs") if "tests" not in file.relative_to(entry).parts[:-1]]
            found.setdefault(entry.name, []).extend(files)
        elif entry.suffix == ".rs" and entry.stem not in ROOTS:
            found.setdefault(entry.stem, []).append(entry)
    return {name: [file for file in files if file.stem != "tests"] for name, files in found.items() if files}


def without_tests(text):
    """The text without comments and without the unit tests, which are at the end of a file."""
    text = re.split(r"#\[cfg\((?:all\()?test", text)[0]
    return re.sub(r"//[^\n]*", "", text)


def paths_of(text, start):
    """All paths that begin with `start`, groups taken apart: `crate::{a::B, c}` is `a::B` and `c`."""
    for match in re.finditer(rf"\b{start}::", text):
        yield from tree(text, match.end())[0]


def tree(text, at):
    """The paths of a use tree that begins here, and where it ends."""
    if at < len(text) and text[at] == "{":
        found, at = [], at + 1
        while at < len(text) and text[at] != "}":
            if text[at].isspace() or text[at] == ",":
                at += 1
                continue
            paths, after = tree(text, at)
            found += paths
            at = after if after > at else at + 1
        return found, at + 1
    name = re.compile(r"\w+|\*").match(text, at)
    if not name:
        return [], at
    at = name.end()
    if text.startswith("::", at):
        paths, at = tree(text, at + 2)
        return [f"{name.group()}::{path}" for path in paths] or [name.group()], at
    return [name.group()], at


def exports_of(source, modules):
    """The names that the root re-exports, with the module that each comes from."""
    found = {}
    for root in ROOTS:
        file = source / f"{root}.rs"
        if not file.exists():
            continue
        for match in re.finditer(r"\buse\s+(?:crate::|self::)?(?=\w)", without_tests(file.read_text())):
            paths, _ = tree(without_tests(file.read_text()), match.end())
            for path in paths:
                first, *_, last = path.split("::") if "::" in path else (path, path)
                if first in modules and last != first:
                    found[last] = first
    return found


def imports_of(source):
    """For each module, the modules that it names."""
    modules = modules_of(source)
    exports = exports_of(source, modules)
    graph = {name: set() for name in modules}
    for name, files in modules.items():
        for file in files:
            text = without_tests(file.read_text())
            paths = list(paths_of(text, "crate"))
            if file.parent == source or (file.parent.parent == source and file.stem == "mod"):
                paths += paths_of(text, "super")
            for path in paths:
                first = path.split("::")[0]
                target = first if first in modules else exports.get(first)
                if target and target != name:
                    graph[name].add(target)
    return graph


def circles(graph):
    """The groups of modules that reach each other."""
    reach = {name: set(targets) for name, targets in graph.items()}
    changed = True
    while changed:
        changed = False
        for targets in reach.values():
            more = set().union(*(reach[target] for target in targets)) if targets else set()
            if not more <= targets:
                targets |= more
                changed = True
    seen, found = set(), []
    for name in sorted(graph):
        if name in seen:
            continue
        group = {other for other in reach[name] if name in reach[other]}
        seen |= group
        if group:
            found.append(sorted(group))
    return found


def main():
    failed = False
    for source in sorted(Path("crates").glob("*/src")):
        graph = imports_of(source)
        for group in circles(graph):
            if len(group) > MOST or "--list" in sys.argv:
                failed |= len(group) > MOST
                print(f"{source.parent}: {len(group)} modules import each other in a circle: {', '.join(group)}")
                for name in group:
                    print(f"    {name} → {', '.join(sorted(graph[name] & set(group)))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
