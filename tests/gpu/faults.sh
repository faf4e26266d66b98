#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Faults on two GPUs: a rank that dies, one that hangs, too few GPUs, too little memory, a corrupt plan, a
# port in use. Each ends within 10 s, names what went wrong, keeps what was measured and leaves neither a
# process nor GPU memory behind.
#
# usage: tests/gpu/faults.sh BUILD_FOLDER
set -u

here=$(realpath "$(dirname "$0")")
replay=$(realpath "$1")/bin/wavetank-replay
export WAVETANK_DATA=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
passed=0 failed=0

# NAME CONDITION...
expect() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name: $(cat said)"
    fi
}
gpu_mib() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | awk '{n += $1} END {print n}'; }
children_of() { ps -o pid= --ppid "$1"; }

before_mib=$(gpu_mib)
left_nothing() {
    expect "$1: no process is left" test -z "$(pgrep -f "$replay")"
    expect "$1: no GPU memory is left" test "$(gpu_mib)" -le $((before_mib + 64))
}
# NAME SECONDS EXIT SAID COMMAND...
fails() {
    local name=$1 limit=$2 exit=$3 part=$4 start=$SECONDS
    shift 4
    "$@" >said 2>&1
    expect "$name: exit" test $? -eq "$exit"
    expect "$name: in time" test $((SECONDS - start)) -le "$limit"
    expect "$name: says so" grep -q -- "$part" said
    echo "$name: $(tail -n 1 said)"
    left_nothing "$name"
}
# NAME SIGNAL TRANSPORT: strike rank 1 once some steps are measured
strike() {
    local name="$1, $3"
    "$replay" long.jsonl --backend cuda --transport "$3" --stall-s 4 -o struck.jsonl 2>said &
    local run=$! start
    for _ in $(seq 1200); do
        [ "$(cat struck.jsonl.tmp.* 2>/dev/null | wc -l)" -gt 3 ] && break
        sleep 0.05
    done
    kill -s "$2" "$(children_of $run | tail -n 1)"
    start=$SECONDS
    wait $run
    expect "$name: exit" test $? -eq 1
    expect "$name: in time" test $((SECONDS - start)) -le 10
    expect "$name: names rank and step" grep -q "rank 1.* step" said
    expect "$name: keeps what was measured" grep -q '"check":' struck.jsonl
    echo "$name: after $((SECONDS - start)) s: $(tail -n 1 said)"
    left_nothing "$name"
}

"$here/plan.sh" tiny-mla 4 2 "tp dp" 2000 overlapped "100 200 300 400" >long.jsonl
for transport in nccl direct; do
    strike "a killed rank" KILL $transport
    strike "a hanging rank" STOP $transport
done
"$here/plan.sh" tiny-mla 4 4 "tp" 2 blocking "100" >four.jsonl
fails "more ranks than GPUs" 20 1 "this host has" "$replay" four.jsonl --backend cuda -o m.jsonl
many=$(printf '1000000 %.0s' $(seq 40))
"$here/plan.sh" deepseek-r1 4 2 "tp" 1 blocking "$many" >huge.jsonl
fails "out of GPU memory" 20 1 "out of GPU memory" "$replay" huge.jsonl --backend cuda -o m.jsonl
head -c 700 long.jsonl >corrupt.jsonl
fails "a corrupt plan" 10 2 "corrupt.jsonl:" "$replay" corrupt.jsonl --backend cuda -o m.jsonl
python3 -c 'import socket, time; s = socket.socket(); s.bind(("127.0.0.1", 47123)); s.listen(); time.sleep(60)' &
holder=$!
sleep 1
fails "a port in use" 10 1 "47123" "$replay" long.jsonl --backend cuda --port 47123 -o m.jsonl
kill $holder
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
