# Sourced by scripts that use the service: starts it as the README says, in a folder of its own, `$work`, and stops it when
# the script ends. Sets `$address` and defines `admin`. Needs Node 20 or newer, git and curl.
work=$(mktemp -d)
# Under root the database runs as another user, who must be able to enter this folder.
chmod o+x "$work"
export STRATA_DATA_DIR="$work/data" STRATA_PORT="${STRATA_PORT:-18080}"
address="http://localhost:$STRATA_PORT"

# In a process group of its own, since npm does not pass a signal on to every process that it started.
set -m
npm start >"$work/log" 2>&1 </dev/null &
server=$!
set +m
finish() {
  status=$?
  # Not the lines of ordinary requests, behind which nobody would find what failed.
  [ "$status" = 0 ] || grep -v '"level":"info"' "$work/log" | tail -n 50 >&2 || true
  kill -- "-$server" 2>/dev/null || true
  # The group ends when the server has drained its requests and stopped its database.
  while kill -0 -- "-$server" 2>/dev/null; do sleep 0.1; done
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

# The first start installs the missing packages.
for _ in $(seq 600); do
  curl --fail --silent --output /dev/null "$address/readyz" && break
  kill -0 "$server"
  sleep 1
done
curl --fail --silent --show-error "$address/readyz"
echo

admin() { npm run --silent strata-admin -- "$@"; }
