#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wavetank-replay as a user runs it: a plan over every directed switch among five layouts, plans that the
# simulator makes, and faults: each ends in one message that names the rank, and keeps what was measured.
#
# usage: tests/replay.sh PROGRAM (wavetank; wavetank-replay lies beside it)
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
replay=${program}-replay
root=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# Processes with this parent, oldest first; a bare machine has no pgrep.
children_of() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '$4 == parent {print $1}' | sort -n
}

## every directed switch among tp, cp, dp, dop and helix
plan=$root/tests/replay/switches.plan.jsonl
said=$("$replay" "$plan" --ranks 2 -o switches.jsonl 2>&1)
expect "all switches: exit" 0 $?
expect_part "all switches: said" "21 of 21 steps with 20 switches on 2 ranks" "$said"
expect "all switches: every step is measured" 21 "$(grep -c '"check":' switches.jsonl)"
expect "all switches: outputs are the reference's, to rounding" 0 \
    "$(grep -o '"check":[^}]*' switches.jsonl | awk -F: '$2 >= 1e-12' | wc -l)"
expect "all switches: what was measured is a plan" "ok: 21 steps, 20 switches" \
    "$("$program" plan check switches.jsonl)"

## the same, while the contexts stand still: a prompt, then decode rows on KV that ran, run again in every layout
for line in 2 3; do
    awk -v line=$line '{
        if (NR == line && match($0, /"rows":\[.*\],"pred"/)) rows = substr($0, RSTART, RLENGTH)
        if (NR > line) sub(/"rows":\[.*\],"pred"/, rows)
        print
    }' "$plan" >still.jsonl
    said=$("$replay" still.jsonl -o still.measured.jsonl 2>&1)
    expect "standing still from line $line: exit" 0 $?
    expect_part "standing still from line $line: said" "21 of 21 steps with 20 switches" "$said"
    expect "standing still from line $line: the reference's outputs" 0 \
        "$(grep -o '"check":[^}]*' still.measured.jsonl | awk -F: '$2 >= 1e-12' | wc -l)"
done

## the same on the papers' eight ranks
for model in tiny-mla tiny-gqa tiny-moe; do
    "$root/tests/gpu/plan.sh" $model 2 8 all 1 overlapped "20 100 41 7 64 33 90 12 55 70" >eight.jsonl
    said=$("$replay" eight.jsonl -o eight.measured.jsonl 2>&1)
    expect "$model on eight ranks: exit" 0 $?
    expect_part "$model on eight ranks: said" "21 of 21 steps with 20 switches on 8 ranks" "$said"
    expect "$model on eight ranks: outputs are the reference's" 0 \
        "$(grep -o '"check":[^}]*' eight.measured.jsonl | awk -F: '$2 >= 1e-12' | wc -l)"
done

## what the simulator decides, on more ranks and other models
for case in "tiny-gqa h200x8 8" "tiny-moe h200x2 2"; do
    read -r model cluster ranks <<<"$case"
    "$program" sim "$root/traces/samples/vidur_splitwise_conv.csv" --model "$model" \
        --cluster "$cluster" --policy splash:margin=0,mechanism=free --limit 4 --rate 1000 \
        --plan sim.jsonl --plan-steps 0:12 >/dev/null
    said=$("$replay" sim.jsonl --layers 2 -o measured.jsonl 2>&1)
    expect "$model: exit" 0 $?
    expect_part "$model: said" "12 of 12 steps" "$said"
    expect_part "$model: ranks" "on $ranks ranks" "$said"
done

## plans that put the simulator on trial: chunks run again, every direction and mechanism
tiny="--model tiny-mla --cluster h200x2"
"$program" plan grid $tiny --max-tokens 64 -o trial.jsonl >/dev/null
said=$("$replay" trial.jsonl --layers 1 -o measured.jsonl 2>&1)
expect "plan grid: exit" 0 $?
expect_part "plan grid: said" "9 of 9 steps with 4 switches" "$said"
"$program" plan switches $tiny --layouts tp,dop,cp --batch 3 --context 40 --repeats 1 \
    -o trial.jsonl >/dev/null
said=$("$replay" trial.jsonl --layers 1 -o measured.jsonl 2>&1)
expect "plan switches: exit" 0 $?
expect_part "plan switches: said" "36 of 36 steps" "$said"
"$program" plan compare sim.jsonl --every 4 -o trial.jsonl >/dev/null
said=$("$replay" trial.jsonl --layers 1 -o measured.jsonl 2>&1)
expect "plan compare: exit" 0 $?
expect_part "plan compare: said" "27 of 27 steps" "$said"
"$program" plan switches $tiny --layouts helix:kvp=2,tpa=1,helix:kvp=2,tpa=1,hopb=4 --batch 3 --context 40 \
    --repeats 1 -o trial.jsonl >/dev/null
said=$("$replay" trial.jsonl --layers 1 -o measured.jsonl 2>&1)
expect "HOP-B beside none: exit" 0 $?
expect_part "HOP-B beside none: said" "12 of 12 steps" "$said"

## calibrate: the grid measured and fitted; a second run measures nothing, one that was cut goes on
"$program" plan grid --model tiny-mla --cluster h200x2 --layouts tp,dp --max-tokens 64 -o small.jsonl >/dev/null
steps=$(grep -c '"step":' small.jsonl)
calibrate() {
    "$replay" calibrate --model tiny-mla --cluster h200x2 --grid small.jsonl -o mine.json >calibrated 2>&1
}
calibrate
expect "calibrate: exit" 0 $?
expect_part "calibrate: a measured profile" '"kind": "measured"' "$(cat mine.json)"
expect "calibrate: a host's collectives say nothing" "" "$(ls mine.json.work | grep csv)"
expect "calibrate: all steps" "$steps" "$(grep -c '"check":' mine.json.work/part0.measured.jsonl)"
calibrate
expect "calibrate again: measures nothing" part0.measured.jsonl "$(ls mine.json.work | grep part)"
sed -i '4,$d' mine.json.work/part0.measured.jsonl
calibrate
expect "calibrate after a cut: exit" 0 $?
expect "calibrate after a cut: measures the rest" $((steps - 2)) \
    "$(grep -c '"check":' mine.json.work/part1.measured.jsonl)"
mkdir two.work && cp small.jsonl two.work/grid.plan.jsonl
"$program" plan switches --model tiny-mla --cluster h200x2 --layouts tp,dop --batch 2 --context 40 --repeats 1 \
    -o two.work/switches.plan.jsonl >/dev/null
"$replay" calibrate --model tiny-mla --cluster h200x2 --work two.work -o two.json >calibrated 2>&1
expect "calibrate with switches: exit" 0 $?
expect "calibrate with switches: all of both plans" \
    "$(cat two.work/grid.plan.jsonl two.work/switches.plan.jsonl | grep -c '"step":')" \
    "$(cat two.work/part?.measured.jsonl | grep -c '"check":')"
expect_part "calibrate with switches: told" "transfer.regroup_interference" "$(cat calibrated)"
expect_part "calibrate without a model" "say --model and --cluster" "$("$replay" calibrate -o x.json 2>&1)"

## bad requests: exit 2 and nothing written
refuse() {
    said=$("$replay" "${@:3}" 2>&1)
    expect "$1: exit" 2 $?
    expect_part "$1" "$2" "$said"
}
mkdir none && cd none || exit 2
sed 's/"owner":0/"owner":9/' "$plan" >../corrupt.jsonl
sed 's/tiny-mla/deepseek-v3.2/' "$plan" >../sparse.jsonl
sed 's/tiny-mla/deepseek-r1/' "$plan" >../large.jsonl
sed 's/kvp=2/kvp=3/' "$plan" >../layout.jsonl
refuse "other ranks" "the plan is for 2 ranks" "$plan" --ranks 4 -o m.jsonl
refuse "a corrupt plan" "corrupt.jsonl:2: .rows[0].owner" ../corrupt.jsonl -o m.jsonl
refuse "a sparse model" "sparse attention, which replay does not run" ../sparse.jsonl -o m.jsonl
refuse "a large model" "too large for the host backend" ../large.jsonl -o m.jsonl
refuse "an impossible layout" "kvp" ../layout.jsonl -o m.jsonl
refuse "a host's collectives" "say nothing of a network; use cuda" collectives --ranks 2 -o c.csv
refuse "collectives of how many" "collectives: say --ranks or --cluster" collectives -o c.csv
refuse "no output named" "-o: say where" "$plan"
grep -q cublasLt "$replay" ||
    for what in "$plan" "collectives --ranks 2"; do
        refuse "no CUDA built in" "make replay" $what --backend cuda -o m.jsonl
    done
refuse "an unknown backend" "--backend" "$plan" --backend cda -o m.jsonl
expect "nothing is written" "" "$(ls)"
cd ..

## faults: a run long enough to be struck
printf 'arrived_at_s,input_tokens,output_tokens\n0,8,900\n' >short.csv
"$program" sim short.csv --model tiny-mla --cluster h200x2 --policy dp --plan long.jsonl >/dev/null
# NAME SIGNAL PART: strike one rank once three steps are measured
strike() {
    "$replay" long.jsonl --port 0 --stall-s 4 -o struck.jsonl 2>said &
    local run=$! rank
    for _ in $(seq 600); do
        [ "$(cat struck.jsonl.tmp.* 2>/dev/null | wc -l)" -gt 3 ] && break
        sleep 0.05
    done
    rank=$(children_of $run | tail -1)
    kill -s "$2" "$rank"
    local began=$SECONDS
    wait $run
    expect "$1: exit" 1 $?
    expect "$1: within 10 s" 1 $((SECONDS - began <= 10))
    expect_part "$1: named" "$3" "$(cat said)"
    expect "$1: no rank is left" "" "$(children_of $run; kill -0 "$rank" 2>/dev/null && echo "$rank")"
    expect_part "$1: what was measured is kept" '"check":' "$(tail -1 struck.jsonl)"
    rm -f struck.jsonl
}
strike "a killed rank" KILL "rank 1 "
strike "a stopped rank" STOP "rank 1 "

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
