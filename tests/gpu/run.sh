#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What needs GPUs: every kernel against the CPU on one; with two, four or eight, the link between them and
# replay's cuda backend, on both transports: small models through all layouts and switches, each output
# compared with the reference. Without a GPU it says so and passes.
#
# usage: tests/gpu/run.sh BUILD_FOLDER [real]
#   real: slices of real models, contexts to 128K, a thousand steps, instead of the small ones
set -u

here=$(realpath "$(dirname "$0")")
build=$(realpath "$1") || exit 2
real=${2:-}
export WAVETANK_DATA=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$gpus" -gt 0 ] || { echo "no GPU: skipped"; exit 0; }
ranks=2
[ "$gpus" -lt 4 ] || ranks=4
[ "$gpus" -lt 8 ] || ranks=8
helix=helix:kvp=$ranks,tpa=1

# NAME COMMAND...
expect_ok() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$work/said" 2>&1; then
        passed=$((passed + 1))
        printf 'ok   %-60s %3d s  %s\n' "$name" $((SECONDS - start)) \
            "$(grep '^largest errors' "$work/said" || tail -n 1 "$work/said")"
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n' "$name"
        tail -n 20 "$work/said"
    fi
}
# NAME PLAN OPTION...
replay() {
    local name=$1 plan=$2
    shift 2
    expect_ok "$name $*" "$build/bin/wavetank-replay" "$plan" --backend cuda "$@" -o "$work/measured.jsonl"
}
# TRANSPORT: a table of at least 15 sizes of each operation, whose times grow from 1 MiB on
collectives() {
    rm -f "$work/collectives.csv"
    "$build/bin/wavetank-replay" collectives --ranks $ranks --backend cuda --transport "$1" -o "$work/collectives.csv" &&
        awk -F, '/^#/ || $1 == "op" { next }
            $3 > 1048576 && $4 <= us[$1] { bad = 1; print "does not grow: " $0 }
            { us[$1] = $4; sizes[$1]++ }
            END { for (op in sizes) { ops++; if (sizes[op] < 15) bad = 1; print op, sizes[op], "sizes" }
                  exit bad || ops != 4 }' "$work/collectives.csv"
}
plan() { "$here/plan.sh" "$@" >"$work/plan.jsonl"; }
# The plan's second step's rows again in all that follow.
stand_still() {
    awk '{
        if (NR == 3 && match($0, /"rows":\[.*\],"pred"/)) rows = substr($0, RSTART, RLENGTH)
        if (NR > 3) sub(/"rows":\[.*\],"pred"/, rows)
        print
    }' "$work/plan.jsonl" >"$work/still.jsonl"
}

[ "$real" = real ] || for test in "$build"/gpu/test_*; do
    [ "$(basename "$test")" = test_link ] || expect_ok "$(basename "$test")" "$test"
done

if [ "$gpus" -ge 2 ] && [ "$real" != real ]; then
    expect_ok "test_link $ranks nccl" "$build/gpu/test_link" $ranks nccl
    expect_ok "test_link $ranks direct" "$build/gpu/test_link" $ranks direct
    expect_ok "test_link 4 direct, sharing GPUs" "$build/gpu/test_link" 4 direct --share 100
    for transport in nccl direct; do
        expect_ok "collectives $transport" collectives $transport
        for model in tiny-mla tiny-gqa tiny-moe; do
            plan $model 4 $ranks all 2 overlapped "20 100 1000" 7
            replay "$model, all switches" "$work/plan.jsonl" --transport $transport
            replay "$model, all switches" "$work/plan.jsonl" --transport $transport --eager --delay-us 300
            stand_still
            replay "$model, standing still" "$work/still.jsonl" --transport $transport --repeats 2
        done
        plan tiny-moe 4 $ranks "dop:cache=0.5 tp dop:cache=0.5 dop:rows=owned dp dop:rows=owned" 2 blocking "20 100 1000" 7
        replay "tiny-moe, variants" "$work/plan.jsonl" --transport $transport
        plan tiny-mla 4 $ranks "$helix,hopb=3 $helix $helix,hopb=8" 5 blocking \
            "20 100 1000 50 60"
        replay "tiny-mla, HOP-B" "$work/plan.jsonl" --transport $transport
        plan tiny-mla 4 $ranks "dp $helix,hopb=3 tp $helix,hopb=2" 2 overlapped "20 100 1000" 7
        replay "tiny-mla, HOP-B, switches and chunks" "$work/plan.jsonl" --transport $transport
        for mechanism in overlapped blocking; do
            plan tiny-mla 4 $ranks "dp $helix,hopb=3 tp $helix,hopb=2" 2 $mechanism \
                "20 100 1000 50 60"
            replay "tiny-mla, HOP-B, $mechanism" "$work/plan.jsonl" --transport $transport
        done
    done
    expect_ok "faults" "$here/faults.sh" "$build"
fi

if [ "$gpus" -ge 2 ] && [ "$real" = real ]; then
    many="131000 60000 30000 20000 10000 8000 5000 4097 3000 2048 1500 1025 1000 800 600 500"
    for transport in nccl direct; do
        for model in deepseek-r1 llama-3.1-405b; do
            plan $model 4 $ranks all 2 overlapped "131000 131001 $many $many"
            replay "$model, B 34 to 128K, all switches" "$work/plan.jsonl" --transport $transport
            plan $model 4 $ranks "tp cp dp dop $helix" 2 blocking "$many" 512
            replay "$model, chunked prefill beside decode" "$work/plan.jsonl" --transport $transport
            plan $model 4 $ranks "$helix,hopb=2" 4 blocking "$many $many"
            replay "$model, HOP-B" "$work/plan.jsonl" --transport $transport
        done
        for steps in "tiny-mla 170" "tiny-gqa 170" "deepseek-r1 10"; do
            read -r model each <<<"$steps"
            plan $model 4 $ranks "tp dop cp dp $helix dop" "$each" overlapped "5000 2000 1000 999"
            replay "$model, $((6 * each)) steps" "$work/plan.jsonl" --transport $transport --delay-us 200
        done
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
