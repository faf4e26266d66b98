#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_load.sh PROGRAM LOAD CLIENTS SECONDS: a server of its own under so many clients.
set -euo pipefail
work=$(mktemp -d)
"$1" serve --port 0 --data "$work/data" >"$work/out" &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    [ -s "$work/out" ] && break
    sleep 0.1
done
"$2" "$(sed -nE 's|.*:([0-9]+)/  .*|\1|p' "$work/out")" "$3" "$4"
