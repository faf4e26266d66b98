#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two builds give the same result, byte for byte: same_bytes.sh BINARY BINARY
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A run fails here by its exit code: two failures would be the same bytes, too.
run() {
    "$1" sim traces/samples/mooncake_conversation.jsonl.gz --model "$2" --cluster "$3" --limit 3000 \
        --rate "$4" --json "$5"
    sed -i '/"sim_wall_s"/d' "$5"
}
while read -r model cluster rate; do
    run "$1" "$model" "$cluster" "$rate" "$work/a.json" >/dev/null
    run "$2" "$model" "$cluster" "$rate" "$work/b.json" >/dev/null
    cmp "$work/a.json" "$work/b.json"
    echo "same bytes: $model on $cluster at rate $rate"
done <<'CASES'
deepseek-v3.2 b200x8 1
glm-5.3 h200x8 0.5
qwen3-235b-a22b h200x8 2
CASES
