#!/usr/bin/env bash
# Installs the Node of .ci/node-26/package.json into ${STRATA_TOOLS_DIR:-$HOME/.cache/strata-tools}, from npm, and prints
# the folder with its binary. Leaves it alone if it is installed in that version. Takes no input, and fails if it could
# not install it: the launcher takes Node 26 only because .ci/run runs tests under it.
set -euo pipefail

pins=$(cd "$(dirname "${BASH_SOURCE[0]}")/node-26" && pwd)
tools=${STRATA_TOOLS_DIR:-${HOME:-${TMPDIR:-/tmp}}/.cache/strata-tools}
folder=$tools/node-26
mkdir -p "$folder"

# npm's record of an install is the last that it writes.
if ! cmp -s "$pins/package-lock.json" "$folder/package-lock.json" || [ ! -f "$folder/node_modules/.package-lock.json" ]; then
  cp "$pins/package.json" "$pins/package-lock.json" "$pins/.npmrc" "$folder"
  npm ci --prefix "$folder" --loglevel=error >&2
fi

for bin in "$folder"/node_modules/node-*/bin; do
  if [ -x "$bin/node" ]; then
    (cd "$bin" && pwd)
    exit
  fi
done
echo "No Node 26 is pinned for this platform: add it to $pins/package.json" >&2
exit 1
