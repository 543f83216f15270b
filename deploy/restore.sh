#!/bin/sh
# Restores what deploy/backup.sh saved, and verifies it: deploy/restore.sh FOLDER [--wal FOLDER [--until TIME]]. Run it
# from the checkout, with the server's settings in the environment and the nodes stopped. It overwrites nothing, and
# needs the master key of the service (docs/operating.md, Backup and restore).
set -eu
exec node "$(dirname "$0")/../apps/launcher/launch.cjs" apps/admin/backup/main.ts restore "$@"
