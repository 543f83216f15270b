#!/bin/sh
# Creates Temporal's two databases, or upgrades them to the version of this image without losing data.
set -eu

tool() {
  temporal-sql-tool --plugin postgres12 --ep temporal-postgres -p 5432 -u temporal --db "$database" "$@"
}

for database in temporal temporal_visibility; do
  tool create
  tool setup-schema -v 0.0
  tool update-schema -d "/etc/temporal/schema/postgresql/v12/${database#temporal_}/versioned"
done
