#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `wavetank whatif`: its cases are the runs of `wavetank sim`, its searches find what looking at
# every number finds, and docs/whatif.md shows what it prints.
#
# usage: tests/whatif.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
cd "$(dirname "$0")/.." || exit 2
azure=traces/samples/azure_2023_code.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { "$program" "$@"; }
# Numbers and words under a key of indented JSON, in order.
values() { sed -nE "s/^ *\"$1\": \"?([^\",[]*)\"?,?\$/\1/p" "$2" | xargs; }
# file NAME BASE VARIATIONS: a scenario of 200 requests.
file() {
    printf '{"base": {"trace": "%s", "limit": 200, "model": "deepseek-v3.2", "cluster": "b200x8",
        "slo": "ttft=500ms,tpot=50ms" %s}, "variations": [%s]}\n' "$azure" "$2" "$3" >"$work/$1"
}
# sim POLICY OPTION...: the result of the same 200 requests.
sim() {
    run sim "$azure" --limit 200 --model deepseek-v3.2 --cluster b200x8 \
        --slo ttft=500ms,tpot=50ms --json - --policy "$@"
}

## cases are runs of sim
file cases.json ', "rate": 1.5, "price_per_gpu_hour": 3' \
    '{"name": "twice", "set": {"rate": "2x"}}, {"name": "two", "set": {"replicas": 2}},
     {"name": "cp", "set": {"policy": "fixed:cp"}}'
run whatif "$work/cases.json" --json "$work/cases.out" >"$work/cases.txt"
sim splash --rate 1.5 >"$work/base.out"
sim splash --rate 3 >"$work/twice.out"
sim splash --rate 1.5 --replicas 2 >"$work/two.out"
sim fixed:cp --rate 1.5 >"$work/cp.out"
for key in makespan_s goodput_req_s p99 switches; do
    expect "cases have sim's $key" \
        "$(for name in base twice two cp; do values $key "$work/$name.out"; done | xargs)" \
        "$(values $key "$work/cases.out")"
done
expect "a variation's policy replaces the base's" "splash splash splash fixed:cp" \
    "$(values policy "$work/cases.out")"
expect "a rate of 2x is twice the base's" "1.5 3.0 1.5 1.5" "$(values rate "$work/cases.out")"
expect "GPUs of all groups" "8 8 16 8" "$(values gpus "$work/cases.out")"
# rounded NUMBER...: to 5 digits, as both sides of an equation are.
rounded() { printf '%.5g\n' "$@" | xargs; }
# product EXPRESSION KEY KEY: of each case, with the two keys as $1 and $2, rounded.
product() {
    rounded $(paste -d ' ' <(values "$2" "$work/cases.out" | xargs -n1) \
        <(values "$3" "$work/cases.out" | xargs -n1) | awk "{ printf \"%.9g \", $1 }")
}
expect "GPU-hours are GPUs times the makespan" "$(product '$1 * $2 / 3600' gpus makespan_s)" \
    "$(rounded $(values gpu_hours "$work/cases.out"))"
for tokens in total output; do
    expect "the price of a million $tokens tokens, at 3 an hour" \
        "$(product '3 * $1 / 3600 / $2 * 1e6' gpus ${tokens}_tok_s)" \
        "$(rounded $(values price_per_m_${tokens}_tokens "$work/cases.out"))"
done
expect "JSON on stdout comes alone" "$(grep -v sim_wall_s "$work/cases.out")" \
    "$(run whatif "$work/cases.json" --json - | grep -v sim_wall_s)"
file none.json '' ''
sed -i '/"slo"/s/"slo": "[^"]*"/"slo": null/' "$work/none.json"
run whatif "$work/none.json" --json "$work/none.out" >"$work/none.txt"
expect "without an SLO nothing is met or missed" "null null" \
    "$(values meets_slo "$work/none.out") $(values slo_met_frac "$work/none.out")"
expect "without a price there is none" null "$(values price_per_m_output_tokens "$work/none.out")"

## a result's own scenario is a base
{
    printf '{"base": {"trace": "%s", ' "$azure"
    sed -n '/^  "scenario": {$/,/^  },$/p' "$work/base.out" | sed '1d; $s/.*/}}/'
} >"$work/result.json"
run whatif "$work/result.json" --json "$work/result.out" >/dev/null
expect "a result's scenario is a base" "$(values makespan_s "$work/base.out")" \
    "$(values makespan_s "$work/result.out")"

# share OPTION...: how many of the 200 requests were within the SLO.
share() { sim splash "$@" | awk -F '[:,]' '/"makespan_s"/ { s = $2 } /"goodput_req_s"/ { g = $2 }
    END { printf "%.0f", s * g }'; }

## --find max-rate: each of 0.1, 0.2, ... 3.0; 194 of 200 are 97%
file find.json ', "slo_attained_frac": 0.97' ''
run whatif "$work/find.json" --find max-rate --rate-max 3 --json "$work/find.out" >"$work/find.txt"
grid="" last=""
for tenth in $(seq 1 30); do
    rate=$((tenth / 10)).$((tenth % 10))
    met=$(share --rate $rate)
    grid+=$([ "$met" -ge 194 ] && echo + || echo -)
    [ "$met" -lt 194 ] || last=$rate
done
expect "the grid has one edge" 1 "$([[ $grid =~ ^\++-+$ ]] && echo 1 || echo "$grid")"
expect "max-rate is the last of the grid that meets the SLO" "$last" \
    "$(sed -n '/"max_rate"/,$s/^ *"rate": \([0-9.]*\),$/\1/p' "$work/find.out" | head -1)"
expect "max-rate says so" "base  rate $last (" "$(tail -1 "$work/find.txt" | grep -o '^[^(]*(')"
expect "max-rate: one edge" true "$(values monotone "$work/find.out")"

## --find min-gpus: 1 to 4 groups at a rate that one does not serve
file gpus.json ', "slo_attained_frac": 0.97, "rate": 4' ''
run whatif "$work/gpus.json" --find min-gpus --groups-max 4 --json "$work/gpus.out" >"$work/gpus.txt"
first=""
for groups in 4 3 2 1; do
    [ "$(share --rate 4 --replicas $groups)" -lt 194 ] || first=$groups
done
expect "more than one group is needed, and four are enough" 1 "$((first > 1 && first <= 4))"
expect "min-gpus is the first number of groups that meets the SLO" \
    "base  $((8 * first)) GPUs ($first x 8)" "$(tail -1 "$work/gpus.txt")"

## --find min-gpus over splits: every one of 2 and 3 groups
file split.json ', "slo_attained_frac": 0.97, "rate": 4' \
    '{"name": "split", "set": {"prefill_replicas": 1}}'
run whatif "$work/split.json" --find min-gpus --groups-max 3 --extra 0 >"$work/split.txt"
best=0
for prefill in 1 2; do
    met=$(share --rate 4 --prefill-replicas $prefill --replicas $((3 - prefill)))
    [ "$met" -le $best ] || { best=$met split=$prefill:$((3 - prefill)); }
done
expect "of splits the one with most requests within the SLO counts" \
    "split 3 $split $(awk "BEGIN { printf \"%.1f%%\", $best / 2 }")" \
    "$(awk '$1 == "split" && $2 == 3 { print $1, $2, $3, $4 }' "$work/split.txt")"

## more than one edge is told
file edges.json ', "slo_attained_frac": 0.9' ''
run whatif "$work/edges.json" --find max-rate --rate-max 3 --rate-step 0.01 --extra 60 \
    >"$work/edges.txt"
expect "two edges" "base: has no single edge: 1.59 meets the SLO and 1.58 does not" \
    "$(tail -1 "$work/edges.txt")"
expect "which sim sees as well" "1 1" \
    "$(($(share --rate 1.59) >= 180)) $(($(share --rate 1.58) < 180))"

## docs/whatif.md shows what its commands print
# Blocks of code that begin with a command; after that what it prints.
awk -v to="$work/doc" '/^```/ { inside = !inside; started = 0; next }
    inside && /^\$ / { n++; started = 1; print substr($0, 3) >(to n ".cmd"); next }
    inside && started { print >(to n ".out") }' docs/whatif.md
for command in "$work"/doc*.cmd; do
    words=$(sed 's|^build/bin/wavetank ||' "$command")
    expect "docs: $words" "$(cat "${command%.cmd}.out")" "$(eval "run $words" 2>&1)"
done
expect "docs: as many examples as scenarios" "$(ls docs/scenarios/*.json | wc -l)" \
    "$(ls "$work"/doc*.cmd | wc -l)"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
