#!/bin/sh
# Runs a program of PostgreSQL on the embedded database, without a server: deploy/database.sh psql. Run it from the
# checkout, with the server's settings in the environment and the server stopped. The program gets the address in its
# environment (PGHOST and so on), and must be installed.
set -eu
exec node "$(dirname "$0")/../apps/launcher/launch.cjs" apps/admin/backup/main.ts database "$@"
