#!/usr/bin/env python3
"""Compares the public items of each library with its snapshot, `crates/*/public-api.txt`.

    checks/public_api.py             fails if a public item was added, removed or moved
    checks/public_api.py --update    writes the snapshots

It also fails if two different types share a name among the crates that meet in `use sessile::…`. The items come from
rustdoc's JSON, which stable compilers write when they are told that they are being bootstrapped.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LIBRARIES = [
    "state", "session", "conformance", "sqlite", "postgres", "artifact", "memory", "agent", "model", "config", "live", "server",
    "sessile",
]
# Crates whose names a program may bring into one scope. A store's own names stay behind its module.
FRONT_DOOR = ["state", "session", "artifact", "memory", "agent", "model", "config", "live"]
TYPES = {"struct", "enum", "trait", "type_alias", "union"}
MEMBERS = {"function", "assoc_const", "assoc_type", "variant", "struct_field"}


def document(crate):
    """What rustdoc says of a crate."""
    package = crate if crate == "sessile" else f"sessile-{crate}"
    command = ["cargo", "rustdoc", "--quiet", "--lib", "-p", package, "--target-dir", "target/public-api"]
    if crate == "sessile":
        command.append("--all-features")
    options = ["-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"]
    subprocess.run([*command, "--", *options], check=True, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
    return json.loads(Path(f"target/public-api/doc/{package.replace('-', '_')}.json").read_text())


class Items:
    """The public items of a crate, as paths with their kind."""

    def __init__(self, described):
        self.index = described["index"]
        self.lines, self.types = set(), {}
        self.module(str(described["root"]), "")

    def module(self, id, path):
        for child in self.index[id]["inner"]["module"]["items"]:
            self.item(str(child), path)

    def item(self, id, path, name=None):
        item = self.index.get(id)
        if item is None or item["visibility"] not in ("public", "default"):
            return
        kind, inner = next(iter(item["inner"].items()))
        if kind == "use":
            target = str(inner["id"]) if inner["id"] is not None else None
            if inner["is_glob"] and target in self.index:
                self.module(target, path)
            elif target in self.index:
                self.item_as(target, path, inner["name"])
            else:  # of another crate
                self.lines.add(f"{path}{inner['name']} = {inner['source']}")
            return
        self.item_as(id, path, name or item["name"])

    def item_as(self, id, path, name):
        item = self.index[id]
        kind, inner = next(iter(item["inner"].items()))
        if kind in ("impl", "use"):
            return self.item(id, path)
        self.lines.add(f"{path}{name}: {kind}")
        if kind == "module":
            return self.module(id, f"{path}{name}::")
        if kind in TYPES and not path:
            self.types[name] = id
        self.members(inner, f"{path}{name}::")

    def members(self, inner, path):
        if not isinstance(inner, dict):
            return
        shape = inner.get("kind")
        fields = shape.get("plain", {}).get("fields", []) if isinstance(shape, dict) else []
        for id in [*fields, *inner.get("variants", []), *(inner.get("items") or [])]:
            self.member(str(id), path)
        for id in inner.get("impls", []) or []:
            implementation = self.index.get(str(id))
            details = implementation and implementation["inner"]["impl"]
            if details and details["trait"] is None:
                for member in details["items"]:
                    self.member(str(member), path)

    def member(self, id, path):
        item = self.index.get(id)
        if item is None or item["visibility"] not in ("public", "default"):
            return
        kind, inner = next(iter(item["inner"].items()))
        if kind in MEMBERS:
            self.lines.add(f"{path}{item['name']}: {kind}")
        if kind == "variant" and isinstance(inner.get("kind"), dict) and "struct" in inner["kind"]:
            for field in inner["kind"]["struct"]["fields"]:
                self.member(str(field), f"{path}{item['name']}::")


def main():
    update, failed = "--update" in sys.argv, False
    owners = defaultdict(set)
    for crate in LIBRARIES:
        items = Items(document(crate))
        snapshot, text = Path(f"crates/{crate}/public-api.txt"), "\n".join(sorted(items.lines)) + "\n"
        if crate in FRONT_DOOR:
            for name in items.types:
                owners[name].add(crate)
        if update:
            snapshot.write_text(text)
        elif not snapshot.exists() or snapshot.read_text() != text:
            failed = True
            before = set(snapshot.read_text().splitlines()) if snapshot.exists() else set()
            for line in sorted(before ^ items.lines):
                print(f"crates/{crate}: {'-' if line in before else '+'} {line}", file=sys.stderr)
    if failed:
        print("the public API changed; if that is meant, run checks/public_api.py --update", file=sys.stderr)
    for name, crates in sorted(owners.items()):
        if len(crates) > 1:
            failed = True
            print(f"the type name {name} is public in {', '.join(sorted(crates))}; give one of them another", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
