#!/bin/sh
# Makes the role that serves in a new database (docs/operating.md, The role that serves). The image of PostgreSQL
# runs this once, when it has made the database, as its owner.
set -eu

case $POSTGRES_SERVER_PASSWORD in
  *[!0-9A-Za-z]*)
    echo 'POSTGRES_SERVER_PASSWORD may hold letters and digits only, since it becomes part of a URL: use openssl rand -hex 24' >&2
    exit 1
    ;;
esac

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<END
CREATE ROLE strata_server LOGIN PASSWORD '$POSTGRES_SERVER_PASSWORD';
GRANT strata_server TO "$POSTGRES_USER";
END
