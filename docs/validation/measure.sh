#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts the simulator on trial on this machine: makes plans, replays them on GPUs, and validates.
# Everything is written to FOLDER, with the names that README.md in h200x2 lists.
#
# usage: docs/validation/measure.sh FOLDER [STAGE]...
#   calibrate  the profile: grid and switches of 16 x 16K, measured and fitted   (first; all use it)
#   loads      three loads under a switching policy: rollout, agentic, longdoc
#   compare    steps of rollout and agentic under five layouts
#   switches   three-way trials of 24 x 24K
#   hopb       shapes of the grid under helix, cut into 1, 2 and 4 sub-batches
#   deep       three-way trials on 12 layers instead of 4: 16 x 16K, and 16 x 8K with prompts
#   nccl       calibrate and switches by the other transport
#   gqa        calibrate and switches of another model
#   kvp        its shapes under every KVP x TPA, cut into 1, 2 and 4 sub-batches  (after gqa)
#   validate   all of these against what is predicted today             (last; needs no GPU)
# Without stages: all of them. Programs: WAVETANK_BIN (build/bin, after make replay). Machine:
# WAVETANK_CLUSTER (h200x2; h200x4 and h200x8 where there are so many GPUs).
set -eu

root=$(realpath "$(dirname "$0")/../..")
[ $# -gt 0 ] || { sed -n 's/^# \{0,1\}//; 7,19p' "$0"; exit 2; }
folder=$1
shift
model=deepseek-r1-slice cluster=${WAVETANK_CLUSTER:-h200x2}
PATH=$(realpath "${WAVETANK_BIN:-$root/build/bin}"):$PATH
export WAVETANK_DATA=$root NCCL_NVLS_ENABLE=0
ranks=${cluster##*x} transport=direct
helix=helix:kvp=$ranks,tpa=1
all=tp,cp,dp,dop,$helix
mkdir -p "$folder"
cd "$folder"
profile=./$cluster.json

# NAME [OPTION]...: NAME.plan.jsonl measured
replay() {
    local name=$1
    shift
    echo "== $name" >&2
    wavetank-replay "$name.plan.jsonl" --backend cuda --transport $transport --unchecked "$@" -o "$name.measured.jsonl"
}

# Arithmetic instead of lots, the same for every awk: u runs over (0, 1), in no order.
request_list() {
    awk 'function put(s, input, output) { printf "%.3f,%d,%d\n", s, input, output }
        BEGIN { print "arrived_at_s,input_tokens,output_tokens"; '"$1"' }'
}
# 48 samples at once, outputs with a long tail.
rollout_requests() {
    request_list 'for (i = 0; i < 48; i++) {
        u = ((i * 29 + 7) % 48 + 0.5) / 48
        put(0, 2000 + i % 8 * 2000, 60 + 3 * exp(4.5 * u))
    }'
}
# Turns of 4K to 44K, more of them than keep up.
agentic_requests() {
    request_list 'for (i = 0; i < 60; i++) {
        u = ((i * 37 + 11) % 60 + 0.5) / 60
        put(t += 0.02 + 0.02 * (i * 13 % 7), 4000 * exp(2.4 * u), 30 + i * 53 % 100)
    }'
}
# Two bursts of eight documents of 64K to 112K.
longdoc_requests() {
    request_list 'for (burst = 0; burst < 2; burst++)
        for (i = 0; i < 8; i++)
            put(burst * 60, 65536 + (i * 7 + burst * 3) % 8 * 7000, 260 + i * 40)'
}

# NAME LAYOUTS STEPS: the plan of a load
simulate() {
    "$1_requests" >"$1.csv"
    wavetank sim "$1.csv" --model "$model" --cluster "$cluster" --profile "$profile" --layouts "$2" \
        --policy splash:margin=0 --token-budget 2048 --plan-steps "$3" --plan "$1.plan.jsonl" >"$1.sim.txt"
    wavetank plan show "$1.plan.jsonl" | head -n 12 >&2
}

# NAME MODEL
calibrate_on() {
    wavetank-replay calibrate --model "$2" --cluster "$cluster" --backend cuda --transport $transport --unchecked \
        --repeats 20 --enough-ms 300 -o "$1.json" --work "$1.work" >"$1.fit.txt"
}
calibrate() { calibrate_on "$cluster" "$model"; }

loads() {
    simulate rollout "dp,dop,cp,$helix" 185:455
    simulate agentic "$all" 100:310
    simulate longdoc "cp,dp,$helix" 1145:1360
    replay rollout --repeats 5
    replay agentic --repeats 3
    replay longdoc --repeats 3
}

# NAME SOURCE EVERY [OPTION]...
compare() {
    local name=$1 source=$2 every=$3
    shift 3
    wavetank plan compare "$source" --every "$every" --profile "$profile" "$@" -o "$name.plan.jsonl"
    replay "$name" --repeats 5
}
compare_layouts() {
    compare compare rollout.plan.jsonl 6
    compare compare-agentic agentic.plan.jsonl 20
}

# NAME MODEL BATCH CONTEXT REPEATS [OPTION]...
three_ways() {
    local name=$1 model=$2 batch=$3 context=$4 repeats=$5
    shift 5
    wavetank plan switches --model "$model" --cluster "$cluster" --batch "$batch" --context "$context" --seed 7 \
        --repeats "$repeats" "$@" -o "$name.plan.jsonl"
    replay "$name"
}
switches() { three_ways switches "$model" 24 24K 6; }
deep() {
    three_ways deep "${model}12" 16 16K 3
    three_ways deep-prompts "${model}12" 16 8K 3 --chunk 512
}
nccl() {
    local transport=nccl
    calibrate_on "$cluster-nccl" "$model"
    three_ways nccl "$model" 24 24K 6
}
gqa() {
    calibrate_on "$cluster-gqa" llama-3.1-405b-slice
    three_ways gqa llama-3.1-405b-slice 16 8K 6
}

hopb() {
    wavetank plan grid --model "$model" --cluster "$cluster" --layouts "$helix" -o shapes.plan.jsonl
    compare hopb shapes.plan.jsonl 1 --layouts "$helix,$helix,hopb=2,$helix,hopb=4"
}

# Helix of every width that the ranks allow; the model has eight KV heads.
kvp() {
    local model=llama-3.1-405b-slice profile=./$cluster-gqa.json layouts='' kvp grid
    for kvp in 2 4 8; do
        [ $((ranks % kvp)) -eq 0 ] || continue
        grid=helix:kvp=$kvp,tpa=$((ranks / kvp))
        layouts+=${layouts:+,}$grid,$grid,hopb=2,$grid,hopb=4
    done
    wavetank plan grid --model "$model" --cluster "$cluster" --layouts "$helix" -o kvp-shapes.plan.jsonl
    compare kvp kvp-shapes.plan.jsonl 2 --layouts "$layouts"
}

# NAME: today's predictions beside what was measured, by the profile made here or else the one by that name
judge() {
    local of=$cluster
    case $1 in
    nccl | gqa) of=$cluster-$1 ;;
    kvp) of=$cluster-gqa ;;
    esac
    [ ! -f "$of.json" ] || of=./$of.json
    wavetank plan predict "$1.measured.jsonl" --profile "$of" -o predicted.jsonl
    wavetank validate predicted.jsonl "$1.measured.jsonl" --profile "$of" --report "$1.html" \
        --json "$1.json" >"$1.txt"
    rm predicted.jsonl
}
validate() {
    for measured in *.measured.jsonl; do
        judge "${measured%.measured.jsonl}"
    done
}

[ $# -gt 0 ] || set -- calibrate loads compare switches hopb deep nccl gqa kvp validate
for stage; do
    case $stage in
    compare) compare_layouts ;;
    calibrate | loads | switches | hopb | deep | nccl | gqa | kvp | validate) $stage ;;
    *) echo "$stage: no such stage" >&2; exit 2 ;;
    esac
done
