#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two builds give the same result, byte for byte: same_bytes.sh BINARY BINARY
set -euo pipefail
run() {
    "$1" sim traces/samples/mooncake_conversation.jsonl.gz --model "$2" --cluster "$3" --limit 3000 \
        --rate "$4" --json - | sed 's/,* *"sim_wall_s": *[0-9.e-]*//'
}
while read -r model cluster rate; do
    cmp <(run "$1" "$model" "$cluster" "$rate") <(run "$2" "$model" "$cluster" "$rate")
    echo "same bytes: $model on $cluster at rate $rate"
done <<'CASES'
deepseek-v3.2 b200x8 1
glm-5.3 h200x8 0.5
qwen3-235b-a22b h200x8 2
CASES
