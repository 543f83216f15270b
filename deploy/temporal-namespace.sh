#!/bin/sh
# Makes the namespace once Temporal answers, then stays, with Temporal's command line for its operators.
set -eu

until temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" > /dev/null 2>&1 \
  || temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"; do
  sleep 2
done
exec tail -f /dev/null
