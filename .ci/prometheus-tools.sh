#!/usr/bin/env bash
# Puts promtool, which checks deploy/alerts.yaml, into the folder of tools (.ci/tools-folder.sh): from Debian's package
# `prometheus`, unpacked and not installed. Leaves it alone if it is there. Needs apt-get and dpkg, takes no input, prints
# one line, and fails if it could not get it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools-folder.sh"

# A machine whose lists of packages are old or missing gets them, if it may.
fetch() { (cd "$work" && apt-get download prometheus); }
get_promtool() {
  fetch || { [ "$(id -u)" = 0 ] && apt-get update && fetch; } || return
  dpkg -x "$work"/prometheus_*.deb "$work/unpacked" && mv "$work/unpacked/usr/bin/promtool" "$tools/promtool"
}

if [ -x "$tools/promtool" ]; then say promtool "is in $tools"; else make_tool promtool get_promtool; fi
exit "$failed"
