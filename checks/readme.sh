#!/usr/bin/env bash
# Follows README's "Twenty lines" as a new user would: a new crate beside the repository, with the
# dependencies and the program copied as they stand, is built and run.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
ln -s "$PWD" "$place/sessile"
cargo new --quiet --vcs none "$place/hello"

# The first block of a kind in README.
block() { awk -v start="\`\`\`$1" '$0 == start { found = 1; next } found && /^```/ { exit } found' README.md; }

manifest="$place/hello/Cargo.toml"
sed -i '/^\[dependencies\]/d' "$manifest"
block toml >>"$manifest"
block rust >"$place/hello/src/main.rs"
cp Cargo.lock "$place/hello/Cargo.lock" # the versions that were tested
said=$(CARGO_TARGET_DIR="$PWD/target" cargo run --quiet --manifest-path "$manifest")
[ "$said" = "Hello again, Ada!" ] || { echo "README's program said: $said" >&2; exit 1; }
