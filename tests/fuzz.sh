#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run fuzz targets for some seconds each: fuzz.sh SECONDS TARGET... A target begins with the valid
# inputs of tests/fuzz/TARGET/, so that mutation starts behind the first checks.
set -euo pipefail
seconds=$1
shift
for target in "$@"; do
    name=$(basename "$target")
    corpus=$(dirname "$target")/corpus/$name
    mkdir -p "$corpus"
    "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=1 \
        -artifact_prefix="$corpus/../" -dict="tests/fuzz/$name.dict" "$corpus" "tests/fuzz/$name" \
        >"$corpus.log" 2>&1 || { tail -40 "$corpus.log"; exit 1; }
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$corpus.log")
    echo "$name: $runs runs in $seconds s, clean"
done
