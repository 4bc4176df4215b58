#!/bin/sh
# Roll prefill and decode to version 2 of the model, and return when nothing of version 1 is left.
set -e
sed 's/value: "1"/value: "2"/' "$(dirname "$0")/lws.yaml" | lws apply --local -f -
lws wait --local disaggregated
