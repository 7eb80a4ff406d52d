#!/usr/bin/env python3
"""Fails if a comment or a paragraph of documentation is wider than 100 columns.

Code and tables are not counted: inside of them a line break would change the meaning.
"""

import re
import subprocess
import sys
from pathlib import Path

WIDTH = 100
FENCE = re.compile(r"^\s*(//[/!]|--)?\s*```")
COMMENT = {".rs": re.compile(r"^\s*//"), ".sql": re.compile(r"^\s*--"), ".md": re.compile("")}
TABLE = re.compile(r"^\s*(//[/!]|--)?\s*\|")


def too_wide(path):
    comment, in_code = COMMENT[path.suffix], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not comment.match(line):
            in_code = False
        elif FENCE.match(line):
            in_code = not in_code
        elif len(line) > WIDTH and not in_code and not TABLE.match(line) and " " in line.strip("`/!- "):
            yield number, len(line)


def main():
    names = subprocess.run(["git", "ls-files", "*.rs", "*.sql", "*.md"], capture_output=True, text=True, check=True)
    found = [(name, *place) for name in names.stdout.splitlines() for place in too_wide(Path(name))]
    for name, number, width in found:
        print(f"{name}:{number}: {width} columns; wrap comments and documentation at {WIDTH}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
