#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks of wavetank-replay that a launcher starts: by the environment alone and, where it is installed,
# by mpirun; what goes wrong ends every process, and rank 0's keeps what was measured.
#
# usage: tests/launch.sh PROGRAM (wavetank; wavetank-replay lies beside it)
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
replay=${program}-replay
root=$(realpath "$(dirname "$0")/..")
plan=$root/tests/replay/switches.plan.jsonl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
unset "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR
export MASTER_PORT=$((20000 + $$ % 10000)) # below those that the kernel gives away
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# RANK ARGUMENT...: one of two ranks in the background, its words in said.PORT.RANK
start() {
    RANK=$1 WORLD_SIZE=2 "$replay" "${@:2}" 2>"said.$MASTER_PORT.$1" &
    pid[$1]=$!
}
# NAME STATUS...: ranks 0, 1... end with these
expect_ends() {
    local rank=0 status
    for status in "${@:2}"; do
        wait "${pid[$rank]}" 2>/dev/null
        expect "$1: exit of rank $rank" "$status" $?
        rank=$((rank + 1))
    done
}
# NAME PART RANK: what it said in this run
expect_said() {
    expect_part "$1" "$2" "$(cat "said.$MASTER_PORT.$3")"
}
# No straggler of one run comes to the next.
next_run() {
    MASTER_PORT=$((MASTER_PORT + 1))
}
checks_of() { grep -o '"check":[^}]*' "$1"; }

## a rank whose rank 0 never comes tries for 10 s, so it is judged at the end
start 1 "$plan" -o lone.jsonl
lone=${pid[1]} lone_port=$MASTER_PORT
next_run

## by the environment: the outputs are those of forked ranks, to the bit
"$replay" "$plan" --layers 1 -o forked.jsonl 2>/dev/null
start 1 "$plan" --layers 1 -o env.jsonl
start 0 "$plan" --layers 1 -o env.jsonl
expect_ends "by the environment" 0 0
expect_said "by the environment: rank 0" "21 of 21 steps with 20 switches on 2 ranks" 0
expect "by the environment: only rank 0 speaks" "" "$(cat "said.$MASTER_PORT.1")"
expect "by the environment: outputs" "$(checks_of forked.jsonl)" "$(checks_of env.jsonl)"
next_run

## bad requests: exit 2 and nothing written
# NAME PART VARIABLE=VALUE...
refuse() {
    said=$(env "${@:3}" "$replay" "$plan" -o refused.jsonl 2>&1)
    expect "$1: exit" 2 $?
    expect_part "$1" "$2" "$said"
    expect "$1: nothing is written" "" "$(ls refused.jsonl* 2>/dev/null)"
}
refuse "other ranks" "WORLD_SIZE: the plan is for 2 ranks, got 3" RANK=0 WORLD_SIZE=3
refuse "no size" "RANK is set but WORLD_SIZE is not" RANK=0
refuse "no port" "--port N or MASTER_PORT" -u MASTER_PORT PMI_RANK=0 PMI_SIZE=2
refuse "a port that is none" "MASTER_PORT: must be" RANK=0 WORLD_SIZE=2 MASTER_PORT=http
refuse "a host that is none" "MASTER_ADDR: no host" RANK=0 WORLD_SIZE=2 MASTER_ADDR=1.2.3.4.5
refuse "two that disagree" "RANK=0 of 2 and OMPI_COMM_WORLD_RANK=1 of 2 disagree" \
    RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2

## a rank that never comes
start 0 "$plan" --stall-s 1 -o missing.jsonl
expect_ends "a missing rank" 1
expect_said "a missing rank" "rank 1 of 2 did not come within 1 s" 0
next_run

## faults: a run long enough to be struck
printf 'arrived_at_s,input_tokens,output_tokens\n0,8,900\n' >short.csv
"$program" sim short.csv --model tiny-mla --cluster h200x2 --policy dp --plan long.jsonl >/dev/null
await_steps() {
    for _ in $(seq 600); do
        [ "$(cat struck.jsonl.tmp.* 2>/dev/null | wc -l)" -gt 3 ] && return
        sleep 0.05
    done
}
# Rank 0's process has one child, rank 0; a bare machine has no pgrep, and awk stops at a process that is
# gone meanwhile.
child_of() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '$4 == parent {print $1}'
}
# NAME KIND STATUS PART: kill rank 1, rank 0 or the coordinator; rank 0's process ends with STATUS and
# says PART, rank 1's where there is no coordinator
strike() {
    start 0 long.jsonl -o struck.jsonl
    start 1 long.jsonl -o struck.jsonl
    await_steps
    local began=$SECONDS rank_0 who=0 ends=("$3" 1)
    rank_0=$(child_of "${pid[0]}")
    case $2 in
    rank-1) kill -KILL "${pid[1]}" && ends=("$3" 137) ;;
    rank-0) kill -KILL "$rank_0" ;;
    coordinator) kill -KILL "${pid[0]}" && who=1 ;;
    esac
    expect_ends "$1" "${ends[@]}"
    expect "$1: within 10 s" 1 $((SECONDS - began <= 10))
    expect_said "$1" "$4" $who
    sleep 0.2 # an orphan may stay as a zombie: not every init reaps
    expect "$1: no rank is left" "" "$(awk '$3 != "Z" {print $1}' "/proc/$rank_0/stat" 2>/dev/null)"
    [ "$2" = coordinator ] ||
        expect_part "$1: what was measured is kept" '"check":' "$(tail -1 struck.jsonl)"
    rm -f struck.jsonl*
    next_run
}
strike "rank 1 is killed" rank-1 1 "rank 1 lost its connection in step "
strike "rank 0 is killed" rank-0 1 "rank 0 died (signal 9) in step "
strike "the coordinator is killed" coordinator 137 "rank 1: the coordinator is gone"

## mpirun, which also ends the others when one dies: Open MPI's with a warning, so that rank 0's process
## can still write, MPICH's without
by_mpirun() {
    mpirun -n 2 bash -c 'echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' _ \
        "$replay" "$@" >said.mpirun 2>&1
}
if command -v mpirun >/dev/null; then
    by_mpirun "$plan" --layers 1 -o mpirun.jsonl
    expect "mpirun: exit" 0 $?
    expect "mpirun: outputs" "$(checks_of forked.jsonl)" "$(checks_of mpirun.jsonl)"
    next_run
    by_mpirun long.jsonl -o struck.jsonl &
    run=$!
    await_steps
    kill -KILL "$(cat pid.1)"
    wait $run
    expect "mpirun, rank 1 is killed: exit" 1 $(($? != 0))
    case $(mpirun --version) in
    *"Open MPI"*)
        expect_part "mpirun, rank 1 is killed" "rank 1 lost its connection in " "$(cat said.mpirun)"
        expect_part "mpirun: what was measured is kept" '"check":' "$(tail -1 struck.jsonl)"
        ;;
    esac
else
    echo "skipped: mpirun is not installed"
fi

pid=("$lone") MASTER_PORT=$lone_port
expect_ends "a lone rank" 1
expect_said "a lone rank" "rank 1 finds no coordinator: port $lone_port of 127.0.0.1" 1
expect "a lone rank: nothing is written" "" "$(ls lone.jsonl* 2>/dev/null)"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
