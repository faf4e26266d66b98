#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Speed of the simulator on this machine, one core: a recorded hour of traffic (12,031 requests), best of
# five runs each, with what it costs to read the trace and to simulate every step by itself.
# usage: tests/bench.sh PROGRAM BENCH_LOAD
set -euo pipefail

program=$1 bench_load=$2
trace=traces/samples/mooncake_conversation.jsonl.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
where=(--model deepseek-v3.2 --cluster b200x8)

# Best wall time of the simulation itself; the run's other numbers are the same every time.
best_of_five() {
    for _ in 1 2 3 4 5; do
        "$program" sim "$trace" "${where[@]}" --json - "$@"
    done | awk '/"requests":/ { requests = $2 + 0 } /"steps":/ { steps = $2 + 0 }
        /"sim_wall_s":/ && (best == "" || $2 + 0 < best) { best = $2 + 0 }
        END { print requests, steps, best }'
}

row() {
    read -r requests steps wall < <(best_of_five "${@:2}")
    awk -v name="$1" -v r="$requests" -v s="$steps" -v w="$wall" \
        'BEGIN { printf "%-24s %9d %9.1f %12.0f %14.0f\n", name, s, 1e3 * w, r / w, s / w }'
}

lscpu | sed -n 's/^Model name: */processor  /p'
"$program" --version | sed 's/^/program    /'
printf '%-24s %9s %9s %12s %14s\n' policy steps wall_ms requests_s steps_s
for policy in fixed:tp fixed:cp fixed:dp fixed:dop greedy splash; do
    row "$policy" --policy "$policy"
done
row "splash in Lua" --policy docs/policies/splash.lua
${CC:-cc} -O2 -shared -fPIC -Isim/include docs/policies/splash.c -o "$work/splash.so"
row "splash in C, from outside" --policy "$work/splash.so"
row "fixed:cp, prefix cache" --policy fixed:cp --prefix-cache
row "splash, prefix cache" --policy splash --prefix-cache
row "splash --exact" --policy splash --exact
row "fixed:dp rate 0.1" --policy fixed:dp --rate 0.1
row "the same --exact" --policy fixed:dp --rate 0.1 --exact

# Wall time of a whole command.
time_all() {
    local began
    began=$(date +%s%N)
    "$program" "${@:2}" >/dev/null
    echo "$1: $((($(date +%s%N) - began) / 1000000)) ms"
}
time_all "reading the trace" trace info "$trace"

# Azure's conversations of 2023 (19,366 requests in 58 minutes), where they are at hand.
azure=../shared/traces/azure2023/AzureLLMInferenceTrace_conv.csv
if [ -r "$azure" ]; then
    all=(sim "$azure" "${where[@]}" --policy splash --requests "$work/requests.csv")
    time_all "azure conv, 4 replicas, a row per request" "${all[@]}" --replicas 4
    time_all "the same, least loaded" "${all[@]}" --replicas 4 --router least-loaded
    time_all "the same, 2 prefill and 2 decode" "${all[@]}" --replicas 2 --prefill-replicas 2
fi

"$program" trace convert "$trace" -o "$work/trace.jsonl"
"$program" trace convert "$trace" -o "$work/trace.wtt"
"$bench_load" "$work/trace.jsonl" "$trace" "$work/trace.wtt"
# A million requests of coding sessions, each turn behind the one before, from drawing them on.
time_all "gen agentic, a million requests" gen agentic -n 15000 --block-tokens 0 -o "$work/million.wtt"
million=(sim "$work/million.wtt" "${where[@]}" --policy fixed:dp --replicas 8 --json -)
"$program" "${million[@]}" | awk '/"requests":/ { n = $2 + 0 }
    /"sim_wall_s":/ { printf "their simulation: %d requests, %.1f s, %.0f requests/s\n", n, $2, n / $2 }'

if command -v /usr/bin/time >/dev/null; then
    /usr/bin/time -f 'peak memory of the million: %M KiB' "$program" "${million[@]}" 2>&1 >/dev/null | tail -1
    /usr/bin/time -f 'peak memory of the splash run: %M KiB' \
        "$program" sim "$trace" "${where[@]}" --policy splash --json - 2>&1 >/dev/null | tail -1
fi
