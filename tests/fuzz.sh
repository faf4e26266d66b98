#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run fuzz targets for some seconds each: fuzz.sh SECONDS TARGET...
set -euo pipefail
seconds=$1
shift
for target in "$@"; do
    name=$(basename "$target")
    corpus=$(dirname "$target")/corpus/$name
    mkdir -p "$corpus"
    dict=tests/fuzz/$name.dict
    "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=1 \
        -artifact_prefix="$corpus/../" $([ -f "$dict" ] && echo "-dict=$dict") "$corpus" \
        >"$corpus.log" 2>&1 || { tail -40 "$corpus.log"; exit 1; }
    echo "$name: $(grep -o 'stat::number_of_executed_units: *[0-9]*' "$corpus.log" | grep -o '[0-9]*$') runs in $seconds s, clean"
done
