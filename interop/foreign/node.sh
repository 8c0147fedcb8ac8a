#!/usr/bin/env bash
# The TypeScript SDK and Bun from the npm registry: node.sh PREFIX
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PREFIX="$1"; mkdir -p "$PREFIX"

if ! [[ -x "$PREFIX/node_modules/.bin/bun" ]] || ! cmp -s "$HERE/package.json" "$PREFIX/package.json"; then
  cp "$HERE/package.json" "$PREFIX/package.json"
  (cd "$PREFIX" && npm install --no-audit --no-fund --loglevel=error)
fi
cp "$HERE/worker.ts" "$PREFIX/worker.ts"   # bun resolves packages from the script's folder
