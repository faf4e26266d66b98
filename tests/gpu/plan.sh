#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A plan for checking replay: decode steps of requests with given contexts through a sequence of layouts,
# STEPS of each. "all" is a way through all 20 directed switches among five layouts, helix over all RANKS
# (2, 4 or 8). With PREFILL, one more request comes in chunks of so many tokens in every step.
#
# usage: tests/gpu/plan.sh MODEL LAYERS RANKS "LAYOUT..."|all STEPS MECHANISM "CONTEXT..." [PREFILL]
set -euo pipefail
[ $# -ge 7 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }

layouts=$4
helix="helix:kvp=$3,tpa=1"
[ "$layouts" != all ] || layouts="tp dp tp dop tp $helix tp cp dop cp $helix cp dp $helix dp dop $helix dop dp cp tp"

awk -v model="$1" -v layers="$2" -v ranks="$3" -v layouts="$layouts" -v steps="$5" -v mechanism="$6" \
    -v contexts="$7" -v prefill="${8:-0}" '
BEGIN {
    n_layouts = split(layouts, layout, " ")
    n = split(contexts, context, " ")
    printf "{\"plan\":1,\"model\":\"%s\",\"cluster\":\"h200x%d\",\"ranks\":%d,\"layers\":%d,\"seed\":1}\n",
        model, ranks, ranks, layers
    pred = "\"pred\":{\"step_ns\":0,\"proj_ns\":0,\"attn_ns\":0,\"exchange_ns\":0,\"ffn_ns\":0,\"switch_exposed_ns\":0}"
    for (i = 0; i < n_layouts * steps; i++) {
        now = layout[int(i / steps) + 1]
        printf "{\"step\":%d,\"at_ns\":%d,\"layout\":\"%s\",", i, i * 1000000, now
        if (i > 0 && now != before)
            printf "\"from\":\"%s\",\"mechanism\":\"%s\",", before, mechanism
        before = now
        printf "\"rows\":["
        for (r = 1; r <= n; r++)
            printf "%s{\"req\":%d,\"owner\":%d,\"ctx\":%d,\"q\":1}", (r > 1 ? "," : ""), r, (r - 1) % ranks, context[r] + i + 1
        if (prefill > 0)
            printf ",{\"req\":%d,\"owner\":%d,\"ctx\":%d,\"q\":%d}", n + 1, ranks - 1, prefill * (i + 1), prefill
        printf "],%s}\n", pred
    }
}'
