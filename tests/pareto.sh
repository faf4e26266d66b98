#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wavetank pareto at its surface: JSON keys, CSV, options, and that neither threads, processes nor
# what is skipped change what is found. Bad input is tests/invalid.sh.
#
# usage: tests/pareto.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

pareto() { "$program" pareto --cluster gb200-nvl72 --context 1M --precision fp4 "$@"; }
llama() { pareto --model llama-3.1-405b --ideal "$@"; }
keys() { sed -n "s/^ \{$1\}\"\([a-z_0-9]*\)\":.*/\1/p" "$2" | awk '!seen[$0]++' | xargs; }
number() { sed -n "s/^ *\"$2\": \([-0-9.e]*\),*$/\1/p" "$1" | head -1; }
# What is the same in every run.
stable() { grep -v '"wall_s"' "$1"; }
# The text without the time that it took.
timeless() { sed 's/; [0-9.]* s$//' "$1"; }

## JSON
llama --json a.json >a.txt
expect "exit code" 0 $?
expect "JSON keys" "model cluster context_tokens configs skipped frontier baseline ratio contexts wall_s" \
    "$(keys 2 a.json)"
expect "point keys" "family mapping batch gpus ttl_ms tok_s_user tok_s_gpu" \
    "$(sed '/"baseline"/,$d' a.json | keys 6 /dev/stdin)"
expect "text is narrow enough" 1 "$(($(widest <a.txt) <= 100))"
expect "--json -: JSON alone" "$(stable a.json)" "$(llama --json - >b.json; stable b.json)"
expect "--json -: the file's text goes nowhere" "{" "$(head -1 b.json)"

## threads, and what is skipped
for threads in 1 3; do
    llama --threads $threads --json b.json >/dev/null
    expect "--threads $threads" "$(stable a.json)" "$(stable b.json)"
done
llama --csv all.csv --json b.json >/dev/null
expect "--csv skips nothing" 0 "$(number b.json skipped)"
expect "--csv has every configuration" "$(number b.json configs)" "$(($(wc -l <all.csv) - 1))"
expect "what is skipped was on no frontier" "$(stable a.json | grep -v -e '"configs"' -e '"skipped"')" \
    "$(stable b.json | grep -v -e '"configs"' -e '"skipped"')"
expect "--csv columns" "family,mapping,gpus,batch,ttl_ms,tok_s_user,tok_s_gpu,proj_ms,attn_ms,exchange_ms,\
reduce_ms,ffn_ms,once_ms" "$(head -1 all.csv)"
# The fastest row of the CSV is the frontier's first point.
expect "--csv and JSON agree" "$(number a.json tok_s_user)" \
    "$(sed 's/"[^"]*"/m/' all.csv | cut -d, -f6 | tail -n +2 | sort -g | tail -1)"

## a path that cannot be written is told before the search
for option in csv json; do
    expect "--$option none/x: words" \
        "wavetank: none/x: cannot create a file there: No such file or directory" \
        "$(llama --$option none/x 2>&1)"
    expect "--$option none/x: before the search" 2 \
        "$(timeout 5 "$program" pareto --cluster gb200-nvl72 --context 1M --model deepseek-r1 \
            --sensitivity --$option none/x >/dev/null 2>&1; echo $?)"
done
llama --json kept.json --csv none/x >/dev/null 2>&1
expect "no half of a result is left" "" "$(ls | grep '^kept')"

## several processes
if command -v mpirun >/dev/null && ldd "$program" | grep -q libmpi; then
    # What MPI keeps to the end is not ours to free.
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    several() { # N [OPTION]...
        mpirun -n "$1" --allow-run-as-root --oversubscribe "$program" pareto --cluster gb200-nvl72 \
            --context 1M --precision fp4 --model llama-3.1-405b --ideal "${@:2}"
    }
    more="--contexts 64K --sensitivity"
    llama $more --csv one.csv --json one.json >one.txt
    for n in 1 2 4; do
        several $n $more --csv n.csv --json n.json >n.txt 2>n.err
        expect "mpirun -n $n: exit code" 0 $?
        expect "mpirun -n $n: the same JSON" "$(stable one.json)" "$(stable n.json)"
        expect "mpirun -n $n: the same text" "$(timeless one.txt)" "$(timeless n.txt)"
        expect "mpirun -n $n: the same CSV" "" "$(cmp one.csv n.csv 2>&1)"
    done
    expect "mpirun: explained once" 1 \
        "$(several 2 --explain tp:tpa=8,tpf=8 --batch 1 2>n.err | grep -c '^mapping')"
    several 2 --csv none/x >n.txt 2>n.err
    expect "mpirun: a mistake fails the whole" 2 $?
    expect "mpirun: and is told once" 1 "$(grep -c 'wavetank: none/x' n.err)"
else
    skip "mpirun: it is not there, or wavetank was built without MPI"
fi

## the space
pareto --model deepseek-r1 --ideal --json r1.json >/dev/null
expect "more than a million configurations" 1 "$(($(number r1.json configs) > 1000000))"
echo "$(number r1.json configs) configurations in $(number r1.json wall_s) s"
expect "--gpus, --families, --batch" "tp 8 4" \
    "$(llama --gpus 8 --families tp --batch 4 --csv b.csv >/dev/null
       tail -n +2 b.csv | sed 's/"[^"]*"/m/' | cut -d, -f1,3,4 | tr , ' ')"
expect "--no-hopb" 0 "$(llama --no-hopb --csv b.csv >/dev/null; grep -c hopb b.csv)"
expect "--contexts" "1048576 65536 8192" "$(llama --contexts 64K,8K --json b.json >/dev/null
    sed -n '/^  "contexts"/,$s/.*"context_tokens": \([0-9]*\).*/\1/p' b.json | xargs)"
expect "--sensitivity" 12 "$(llama --gpus 8,16 --sensitivity --json b.json >/dev/null
    sed -n '/^  "sensitivity"/,$p' b.json | grep -c '"fastest"')"
expect "nothing fits" 1 "$(llama --gpus 1 | grep -c 'nothing fits')"
expect "nothing fits: JSON is whole" 0 "$(llama --gpus 1 --json - | number /dev/stdin configs)"
expect "the profile counts" 1 "$(pareto --model llama-3.1-405b --gpus 8 | grep -c 'assumed, not measured')"

## explain: 8 requests of a sub-batch each, and all at once
llama --explain helix:kvp=8,tpa=8,tpf=64,hopb=8 --batch 8 >explain.txt
expect "--explain: exit code" 0 $?
expect "--explain: both pipelines" 2 "$(grep -c 'exchange  |' explain.txt)"
expect "--explain: attention reads what Appendix A says" 2.1139 "$(awk '$1 == "attention" { print $2 }' explain.txt)"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
