#!/usr/bin/env bash
# A worker on one release of the crate `vgi`: rust.sh PREFIX MANIFEST. It is a workspace of its own, with a target directory of its own.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")/rust" && pwd)"
PREFIX="$1"; mkdir -p "$PREFIX/src"

# Only what differs is copied, so that cargo sees nothing to do the second time.
copy() { cmp -s "$1" "$2" || cp "$1" "$2"; }
copy "$HERE/$2" "$PREFIX/Cargo.toml"
copy "$HERE/main.rs" "$PREFIX/src/main.rs"
# 0.48.1 declares a newer rustc than it needs.
cd "$PREFIX" && CARGO_TARGET_DIR="$PREFIX/target" nice cargo build --quiet --ignore-rust-version
