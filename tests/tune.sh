#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What studies promise: runs are done once, whoever does them and however often they are killed;
# a store that cannot be written says so and keeps what it has; what docs/tuning.md shows, runs.
#
# usage: tests/tune.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
root=$(realpath "$(dirname "$0")/..")
export WAVETANK_DATA=${WAVETANK_DATA:-$root}
trace=$root/traces/samples/azure_2023_code.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# tune STORE [OPTION]...: 48 short runs.
study="--model deepseek-v3.2 --cluster b200x8 --limit 400 --sample 0.7 --seeds 2
    --grid margin=0:0.15:0.05 --grid dwell_ms=0,50 --grid persist=1:3"
tune() {
    local store=$1
    shift
    "$program" tune "$trace" $study --db "$store" "$@"
}
rows() { "$program" db export "$1" 2>&1; }
count() { rows "$1" | tail -n +2 | wc -l; }
# A study's text without its price, which differs between equal ones.
text() { grep -v -e '^cost' -e '^study' "$1"; }

## one study
tune whole.db --csv whole.csv >whole.txt
expect "tune: exit code" 0 $?
expect "tune: every run has a row" 48 "$(count whole.db)"
expect "tune: every setting has a row" 25 "$(wc -l <whole.csv)"
expect_part "tune: says what to use" "recommended: --policy splash:dwell_ms=" "$(cat whole.txt)"
expect_part "tune: says how sure that is" "1000 resamples of the seeds" "$(cat whole.txt)"
expect "tune: fits 80 columns" "" "$(awk 'length($0) > 80 && !/^recommended/' whole.txt)"
tune whole.db >again.txt
expect_part "again: nothing is run" "48 of them from whole.db" "$(head -1 again.txt)"
expect "again: the same text" "$(text whole.txt)" "$(text again.txt)"
tune whole.db --jobs 1 --db serial.db >serial.txt
expect "one at a time: the same rows" "$(rows whole.db)" "$(rows serial.db)"
expect "one at a time: the same text" "$(text whole.txt)" "$(text serial.txt)"

## a row is what sim says
setting=splash:dwell_ms=50,margin=0.1,persist=2
"$program" sim "$trace" --model deepseek-v3.2 --cluster b200x8 --limit 400 --sample 0.7 --seed 1 \
    --policy $setting --json sim.json >sim.txt
mean() { sed -n '/"e2e_s"/,/}/s/.*"mean": \(.*\),/\1/p' sim.json; }
row() { "$program" db export whole.db --jsonl - | grep -F "\"policy\":\"$setting\",\"seed\":1,"; }
expect "a row has what sim says" "$(mean)" "$(row | sed -n 's/.*"e2e_s_mean":\([0-9.e-]*\).*/\1/p')"

## a run is known by what it comes from, not by what that is called
found() { "$@" | sed -n 's/.* runs, \([0-9]*\) of them from .*/\1/p'; }
cp whole.db known.db
trace_here=$trace
cp "$trace" copy.csv
trace=$work/copy.csv
expect "known: the same trace elsewhere" 48 "$(found tune known.db)"
sed '2,9s/,\([0-9]*\),/,1\1,/' "$trace_here" >copy.csv
expect "known: not a trace with other lengths" "" "$(found tune known.db)"
trace=$trace_here
cp "$root/hw/profiles/b200-analytic.json" profile.json
cp "$root/hw/nccl/$(sed -n 's/.*"collectives": "\(.*\)".*/\1/p' profile.json).csv" . 2>/dev/null
expect "known: the same profile elsewhere" 48 "$(found tune known.db --profile ./profile.json)"
sed -i 's/"step_launch_us": *[0-9.]*/"step_launch_us": 77/' profile.json
expect "known: not a profile of that name with one other number" "" \
    "$(found tune known.db --profile ./profile.json)"
expect "known: not another option" "" "$(found tune known.db --max-running 17)"

## halving and choice by lot
tune half.db --halving >half.txt
expect "halving: 24, 8 and 3 settings on 2 draws" 70 "$(count half.db)"
best() { sed -n 's/^recommended: //p' "$1"; }
expect "halving: finds the same" "$(best whole.txt)" "$(best half.txt)"
tune random.db --random 5 >random.txt
expect "random: as many as asked for" 10 "$(count random.db)"
tune random.db --random 5 >random.txt
expect_part "random: the same ones with the same seed" "10 of them from" "$(cat random.txt)"

## seeds that make no difference
"$program" tune "$trace" --model deepseek-v3.2 --cluster b200x8 --limit 50 --seeds 5 \
    --grid margin=0,0.1 >seedless.txt
expect_part "seeds that draw nothing are not run" "2 settings on 1 draw of 1 trace" "$(cat seedless.txt)"
expect_part "and that is said" "make no difference to 1 of the traces" "$(cat seedless.txt)"

## killed ten times at any moment, and once when some runs were done
now_ms() { echo $(($(date +%s%N) / 1000000)); }
began=$(now_ms)
tune long.db --seeds 8 >long.txt
took_ms=$(($(now_ms) - began))
killed() { # DELAY: a command that waits for the moment
    "$program" tune "$trace" $study --db killed.db --seeds 8 >killed.txt 2>&1 & # no shell between
    local pid=$!
    "$@"
    kill -9 $pid
    wait $pid
}
random_delay() { sleep "$(printf '0.%03d' $((RANDOM % (took_ms < 2000 ? took_ms / 2 + 1 : 999))))"; }
some_rows() { until [ "$(count killed.db)" -gt 0 ]; do sleep 0.01; done; }
{
    killed some_rows
    kept=$(count killed.db)
    for i in 1 2 3 4 5 6 7 8 9 10; do killed random_delay; done
} 2>/dev/null
expect "killed: some rows, not all" 1 $((kept > 0 && kept < 192))
tune killed.db --seeds 8 >killed.txt
expect "killed: exit code in the end" 0 $?
expect "killed: the same rows" "$(rows long.db)" "$(rows killed.db)"
expect "killed: the same text" "$(text long.txt)" "$(text killed.txt)"

## two at once
tune both.db >both1.txt 2>&1 &
first=$!
tune both.db >both2.txt 2>&1
expect "two at once: the second" 0 $?
wait $first
expect "two at once: the first" 0 $?
expect "two at once: the same rows" "$(rows whole.db)" "$(rows both.db)"
expect "two at once: the same text" "$(text both1.txt)" "$(text both2.txt)"

## no room: a limit on the size of files stands for a full disk
(
    trap '' XFSZ
    ulimit -f 48
    tune full.db --jobs 1 >full.txt 2>&1
)
expect "no room: exit code" 2 $?
expect_part "no room: says so" "full.db: cannot be written, is the disk full?" "$(cat full.txt)"
kept=$(count full.db)
expect "no room: some rows, not all" 1 $((kept > 0 && kept < 48))
tune full.db >full.txt
expect_part "no room: goes on from there" "$kept of them from full.db" "$(cat full.txt)"
expect "no room: the same rows in the end" "$(rows whole.db)" "$(rows full.db)"

## not ours to write
cp whole.db readonly.db
chmod 444 readonly.db
as_other=()
if [ "$(id -u)" -eq 0 ]; then
    as_other=(setpriv --reuid=65534 --clear-groups)
    chmod 755 "$work"
fi
if [ ${#as_other[@]} -eq 0 ] || "${as_other[@]}" test -x "$program" -a -r "$trace" 2>/dev/null; then
    read_only() {
        "${as_other[@]}" "$program" tune "$trace" --model deepseek-v3.2 --cluster b200x8 --limit 50 \
            --grid margin=0,0.1 --db "$1" 2>&1
    }
    expect "read-only: exit code and words" \
        "2 wavetank: readonly.db: is read-only; make it writable or name another file" \
        "$(text=$(read_only readonly.db); echo $? "$text")"
    expect "read-only: nothing is lost" "$(rows whole.db)" "$(rows readonly.db)"
else
    skip "read-only: another user cannot run $program"
fi
head -c 5000 /dev/urandom >noise.db
expect_part "not a database" "noise.db: is no sound SQLite file" "$(tune noise.db 2>&1)"
expect_part "no folder" "none/x.db: unable to open database file; the file and its folder must be" \
    "$(tune none/x.db 2>&1)"

## several processes
if command -v mpirun >/dev/null && ldd "$program" | grep -q libmpi; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # What MPI keeps to the end is not ours to free.
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    for n in 1 2 4; do
        mpirun -n $n --oversubscribe "$program" tune "$trace" $study --db mpi$n.db \
            >mpi$n.txt 2>mpi$n.err
        expect "mpirun -n $n: exit code" 0 $?
        expect "mpirun -n $n: the same rows" "$(rows whole.db)" "$(rows mpi$n.db)"
        expect "mpirun -n $n: the same text" "$(text whole.txt)" "$(text mpi$n.txt)"
    done
    mpirun -n 2 --oversubscribe "$program" tune none.csv --model tiny-mla --cluster h200x2 \
        --grid margin=0,1 >/dev/null 2>mpi.err
    expect "mpirun: a mistake fails the whole" 2 $?
    expect "mpirun: and is told once" 1 "$(grep -c 'wavetank: none.csv' mpi.err)"
else
    skip "mpirun: it is not there, or wavetank was built without MPI"
fi

## db
expect_part "db list" "0..1    48" "$("$program" db list whole.db)"
expect "db compare: a copy is equal" \
    "48 runs in both files, 48 of them equal; 0 in the first only, 0 in the second" \
    "$("$program" db compare whole.db both.db)"
tune other.db --profile "$root/hw/profiles/h200-analytic.json" >other.txt
expect_part "db compare: what another profile changes" "e2e_s_mean" "$("$program" db compare whole.db other.db)"
expect_part "db compare: runs of one" "38 in the first only" "$("$program" db compare whole.db random.db)"
"$program" db export whole.db --csv whole_runs.csv
expect "db export --csv" "$(rows whole.db)" "$(cat whole_runs.csv)"
expect "db export --jsonl" 48 "$("$program" db export whole.db --jsonl - | grep -c '^{"key":"')"

## what docs/tuning.md shows, runs: each line that begins with "    wavetank"
mkdir traces && ln -s "$root/traces/samples" traces/samples
while read -r line; do
    expect "docs: $line" 0 "$(eval "\"$program\" ${line#wavetank }" >docs.txt 2>&1; echo $?)"
done < <(sed -n 's/^    \(wavetank .*\)/\1/p' "$root/docs/tuning.md")

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
