#!/usr/bin/env bash
# Installs the S3 server that tests run against into the folder of tools (.ci/tools-folder.sh):
#   versitygw    a gateway from S3 to a folder, built from source: needs Go 1.25 or newer
# Leaves it alone if it is installed in the version below. Takes no input, prints one line, and fails if it could not
# install it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools-folder.sh"

version=1.8.0
# The program's file name holds the version.
server=$tools/versitygw-$version
server_is_there() { [ -x "$server" ] && [ "$(readlink "$tools/versitygw")" = "$server" ]; }

# Uses the installed Go: a newer toolchain would have to be downloaded.
make_server() {
  GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0 GOBIN="$work" \
    go install "github.com/versity/versitygw/cmd/versitygw@v$version" &&
    mv "$work/versitygw" "$server" && ln -sf "$server" "$tools/versitygw"
}

if server_is_there; then say "versitygw $version" "is in $tools"; else make_tool "versitygw $version" make_server; fi
exit "$failed"
