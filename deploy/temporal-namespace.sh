#!/bin/sh
# Creates the namespace when Temporal answers, then keeps running, so that operators can use Temporal's command line.
set -eu

until temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" > /dev/null 2>&1 \
  || temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"; do
  sleep 2
done
exec tail -f /dev/null
