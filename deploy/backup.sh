#!/bin/sh
# Saves the database and the layers of a service into a new folder: deploy/backup.sh FOLDER. Run it from the checkout,
# with the server's settings in the environment; the nodes may run (docs/operating.md, Backup and restore). The backup
# does not hold the master key.
set -eu
exec node "$(dirname "$0")/../apps/launcher/launch.cjs" apps/admin/backup/main.ts save "$@"
