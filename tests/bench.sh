#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Speed of the simulator on this machine: an hour of recorded traffic, the best of five runs each.
# usage: tests/bench.sh PROGRAM
set -euo pipefail

program=$1
trace=$(ls traces/samples/mooncake* | head -1)
lscpu | sed -n 's/^Model name: */processor: /p'
printf '%-22s %10s %10s %14s\n' policy steps wall_ms steps_per_s
for policy in fixed:tp fixed:cp fixed:dp fixed:dop splash; do
    for _ in 1 2 3 4 5; do
        "$program" sim "$trace" --model deepseek-v3.2 --cluster b200x8 --policy $policy --json -
    done | awk -v policy=$policy '
        /"steps":/ { steps = $2 + 0 }
        /"sim_wall_s":/ && (best == "" || $2 + 0 < best) { best = $2 + 0 }
        END { printf "%-22s %10d %10.1f %14.3g\n", policy, steps, 1e3 * best, steps / best }'
done
