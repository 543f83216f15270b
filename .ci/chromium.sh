#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the website: one that is named by STRATA_CHROMIUM or stands on the
# search path, else Debian's, which it installs where apt-get is there and this is root. Takes no input, prints one line,
# and fails if there is no browser afterwards.
set -euo pipefail
exec </dev/null

find_chromium() {
  if [ -n "${STRATA_CHROMIUM:-}" ]; then
    command -v "$STRATA_CHROMIUM"
  else
    command -v chromium || command -v chromium-browser || command -v google-chrome
  fi
}

if ! find_chromium >/dev/null && [ -z "${STRATA_CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update && apt-get install --yes --no-install-recommends chromium; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
  fi
fi
if ! find_chromium >/dev/null; then
  echo 'There is no Chromium for the tests of the website: install one, or name one with STRATA_CHROMIUM.' >&2
  exit 1
fi
echo "The tests of the website run in $(find_chromium)"
