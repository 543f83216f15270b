#!/usr/bin/env bash
# Puts promtool, which checks deploy/alerts.yaml, into ${STRATA_TOOLS_DIR:-$HOME/.cache/strata-tools}: Debian's package
# `prometheus`, unpacked and not installed. Leaves it alone if it is there. Needs apt-get and dpkg, takes no input, prints
# one line, and fails if it could not get it. Set STRATA_TOOLS_DIR if there is no home folder.
set -euo pipefail

tools=${STRATA_TOOLS_DIR:-${HOME:-${TMPDIR:-/tmp}}/.cache/strata-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
if [ -x "$tools/promtool" ]; then
  echo "promtool: is in $tools"
  exit
fi

work=$(mktemp -d "$tools/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A machine whose lists of packages are old or missing gets them, if it may.
fetch() { (cd "$work" && apt-get download prometheus); }
get_tool() {
  fetch || { [ "$(id -u)" = 0 ] && apt-get update && fetch; } || return
  dpkg -x "$work"/prometheus_*.deb "$work/unpacked" && mv "$work/unpacked/usr/bin/promtool" "$tools/promtool"
}

# Prints the output only if it failed.
if get_tool >"$work/log" 2>&1; then
  echo "promtool: unpacked into $tools"
else
  echo 'promtool: could not be fetched'
  tail -n 20 "$work/log" >&2
  exit 1
fi
