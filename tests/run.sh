#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run every test: run.sh BUILD TEST... Prints a line per suite and "N passed, N failed" at the end.
# Sanitizers report to files, since a leak does not fail a Criterion test by itself.
set -uo pipefail
build=$1
shift
rm -rf "$build/test-log" && mkdir -p "$build/test-log/san"
log=$(realpath "$build/test-log")
# Criterion 2.4.1 loses 48 bytes of its own in tests that fork.
echo 'leak:libcriterion' >"$log/lsan.supp"
export LSAN_OPTIONS=suppressions=$log/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=log_path=$log/san/report UBSAN_OPTIONS=log_path=$log/san/report:print_stacktrace=1

# Where a build is elsewhere.
export WAVETANK_DATA=${WAVETANK_DATA:-$PWD}

scripts="whatif policies replay serve tune validation cli terminal invalid golden report pareto studies launch"
run_suite() {
    local out=$3/$(basename "$2" .sh).txt
    case $2 in
    *.sh) bash "$2" "$1/bin/wavetank" >"$out" 2>&1 ;;
    *) "$2" >"$out" 2>&1 || echo "exit $?" >>"$out" ;;
    esac
}
export -f run_suite
# The long ones first.
{ printf 'tests/%s.sh\n' $scripts; printf '%s\n' "$@"; } |
    xargs -P "$(nproc)" -I{} bash -c 'run_suite "$@"' _ "$build" {} "$log"

passed=0 failed=0
# Count one suite and show its output when something in it failed: NAME PASSED FAILED OUTPUT
count() {
    passed=$((passed + $2)) failed=$((failed + $3))
    printf '%-16s %4d passed%s\n' "$1" "$2" "$([ "$3" -eq 0 ] || echo ", $3 FAILED")"
    [ "$3" -eq 0 ] || cat "$4"
}

for test; do
    name=$(basename "$test") out=$log/$(basename "$test").txt
    read -r ok bad < <(grep -ao 'Synthesis: Tested: .*' "$out" | tail -1 | tr -dc '0-9 ' |
        awk '{print $2, $1 - $2}')
    # No summary line, or an exit code that it does not explain, is a failure too.
    if [ -z "${ok:-}" ] || { [ "$bad" -eq 0 ] && grep -q '^exit' "$out"; }; then
        ok=${ok:-0} bad=1
    fi
    count "${name#test_}" "$ok" "$bad" "$out"
done

for script in $scripts; do
    out=$log/$script.txt
    read -r ok bad < <(tail -1 "$out" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
    count "$script" "${ok:-0}" "${bad:-1}" "$out"
done

if [ -n "$(ls "$log/san")" ]; then
    cat "$(ls -d "$log"/san/* | head -1)"
    count "sanitizers" 0 "$(ls "$log/san" | wc -l)" /dev/null
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
