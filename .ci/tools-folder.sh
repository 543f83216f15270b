# Sourced by the scripts that get programs for tests: makes the folder that keeps them, `$tools`, which is
# ${STRATA_TOOLS_DIR:-$HOME/.cache/strata-tools}, and one to work in, `$work`, which the end of the script removes.
# Defines `say` and `make_tool`. Set STRATA_TOOLS_DIR if there is no home folder.
tools=${STRATA_TOOLS_DIR:-${HOME:-${TMPDIR:-/tmp}}/.cache/strata-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
# Go and Maven keep their caches below the home folder, and fail without one.
export HOME="${HOME:-$tools/home}"
work=$(mktemp -d "$tools/.making.XXXXXX")
# Go makes folders that nobody may write.
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

say() { echo "$1: $2"; } # TOOL WHAT

# Runs a function that gets a tool, and prints its output only if it failed; `$failed` is 1 then.
failed=0
make_tool() { # TOOL FUNCTION
  if "$2" >"$work/$2.log" 2>&1; then
    say "$1" "installed in $tools"
  else
    say "$1" 'could not be installed'
    tail -n 20 "$work/$2.log" >&2
    failed=1
  fi
}
