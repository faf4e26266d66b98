#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Today's simulator against what was measured once (docs/validation): predictions made anew from the
# committed profile must be as near as the bounds below say, and so must those of a profile that is fitted
# again.
#
# usage: tests/validation.sh PROGRAM (wavetank)
set -u

program=$(realpath "$1") || exit 2
root=$(realpath "$(dirname "$0")/..")
folder=$root/docs/validation/h200x2
export WAVETANK_DATA=$root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
passed=0 failed=0

# NAME VALUE BOUND: |VALUE| <= BOUND
expect_within() {
    if awk -v x="$2" -v bound="$3" 'BEGIN { exit !(x != "" && x <= bound && x >= -bound) }'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n  expected: at most %s\n  got:      %s\n' "$1" "$3" "$2"
    fi
}
number() { grep -o "\"$2\": *[-0-9.e]*" "$1" | head -n 1 | sed 's/.*: *//'; }

# PROFILE PLAN P50 P95 SCHEDULE: and, by the committed profile, the committed report
hold() {
    local measured=$2.measured.jsonl
    ln -sf "$folder/$measured" . # a report names what it was given
    "$program" plan predict "$measured" --profile "$1" -o predicted.jsonl >/dev/null &&
        "$program" validate predicted.jsonl "$measured" --profile "$1" --json result.json >report.txt
    expect_within "$1, $2: steps, median" "$(number result.json step_error_p50)" "$3"
    expect_within "$1, $2: steps, 95th percentile" "$(number result.json step_error_p95)" "$4"
    expect_within "$1, $2: schedule" "$(number result.json schedule_error)" "$5"
    rm -f result.json
}
expect_report() {
    if cmp -s report.txt "$folder/$1.txt"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: docs/validation/h200x2/$1.txt is not what is printed today: run docs/validation/measure.sh"
        diff "$folder/$1.txt" report.txt | head -n 10
    fi
}
for load in rollout agentic longdoc compare; do
    hold h200x2 $load 0.03 0.10 0.03
    expect_report $load
done
for trial in compare-agentic switches deep deep-prompts hopb grid; do
    hold h200x2 $trial 0.03 0.10 0.03
    expect_report $trial
done
hold h200x2-gqa gqa 0.03 0.05 0.03
expect_report gqa
hold h200x2-gqa kvp 0.04 0.10 0.03
expect_report kvp
hold h200x2-nccl nccl 0.03 0.05 0.05
expect_report nccl
hold "$folder/second.json" grid 0.03 0.10 0.04

# The optimiser's last digits may differ from machine to machine; its predictions may not.
"$program" fit "$folder/grid.measured.jsonl" --collectives "$folder/collectives.csv" \
    --model deepseek-r1-slice --cluster h200x2 --base h200-analytic -o h200x2.json >/dev/null
hold "./h200x2.json" grid 0.03 0.10 0.03
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
