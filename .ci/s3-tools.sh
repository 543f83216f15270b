#!/usr/bin/env bash
# Installs the S3 server that tests run against into ${STRATA_TOOLS_DIR:-$HOME/.cache/strata-tools}:
#   versitygw    a gateway from S3 to a folder, built from source: needs Go 1.25 or newer
# Leaves it alone if it is installed in the version below. Takes no input, prints one line, and fails if it could not
# install it. Set STRATA_TOOLS_DIR if there is no home folder.
set -euo pipefail

version=1.8.0
tools=${STRATA_TOOLS_DIR:-${HOME:-${TMPDIR:-/tmp}}/.cache/strata-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
# Go keeps its caches below the home folder, and fails without one.
export HOME="${HOME:-$tools/home}"

# The program's file name holds the version.
server=$tools/versitygw-$version
if [ -x "$server" ] && [ "$(readlink "$tools/versitygw")" = "$server" ]; then
  echo "versitygw $version: is in $tools"
  exit
fi

work=$(mktemp -d "$tools/.making.XXXXXX")
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# Uses the installed Go: a newer toolchain would have to be downloaded.
make_server() {
  GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0 GOBIN="$work" \
    go install "github.com/versity/versitygw/cmd/versitygw@v$version" &&
    mv "$work/versitygw" "$server" && ln -sf "$server" "$tools/versitygw"
}

# Prints the output of the build only if it failed.
if make_server >"$work/log" 2>&1; then
  echo "versitygw $version: installed in $tools"
else
  echo "versitygw $version: could not be installed"
  tail -n 20 "$work/log" >&2
  exit 1
fi
