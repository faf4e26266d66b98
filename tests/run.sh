#!/usr/bin/env bash
# Run every test: run.sh BUILD [san]. Prints a line per suite and "N passed, N failed" at the end.
# Sanitizers report to files, since a leak does not fail a Criterion test by itself.
set -uo pipefail
build=$1 flavour=${2:-}
log=$build/test-log
rm -rf "$log" && mkdir -p "$log/san"
export ASAN_OPTIONS=log_path=$PWD/$log/san/report UBSAN_OPTIONS=log_path=$PWD/$log/san/report

run_suite() {
    "$1" >"$2/$(basename "$1").txt" 2>&1 || echo "exit $?" >>"$2/$(basename "$1").txt"
}
export -f run_suite
printf '%s\n' "$build"/bin/test_* | grep -v '\.d$' |
    xargs -P "$(nproc)" -I{} bash -c 'run_suite "$1" "$2"' _ {} "$log"

passed=0 failed=0
for out in "$log"/test_*.txt; do
    name=$(basename "$out" .txt)
    line=$(grep -ao 'Tested: [0-9]* | Passing: [0-9]* | Failing: [0-9]* | Crashing: [0-9]*' "$out" | tail -1)
    read -r ok bad < <(sed 's/[^0-9]\+/ /g' <<<"$line" | awk '{print $2 + 0, $3 + $4 + 0}')
    [ -n "$line" ] || { ok=0 bad=1; }
    grep -q '^exit' "$out" && [ "$bad" -eq 0 ] && bad=1
    passed=$((passed + ok)) failed=$((failed + bad))
    printf '%-20s %4d passed%s\n' "${name#test_}" "$ok" "$([ "$bad" -gt 0 ] && echo ", $bad FAILED")"
    [ "$bad" -eq 0 ] || cat "$out"
done

for script in tests/cli.sh tests/invalid.sh; do
    name=$(basename "$script" .sh)
    bash "$script" "$build/bin/wavetank" >"$log/$name.txt" 2>&1
    read -r ok bad < <(tail -1 "$log/$name.txt" | awk '{print $1 + 0, $3 + 0}')
    grep -qE '^[0-9]+ passed, [0-9]+ failed$' <(tail -1 "$log/$name.txt") || bad=1
    passed=$((passed + ok)) failed=$((failed + bad))
    printf '%-20s %4d passed%s\n' "$name" "$ok" "$([ "$bad" -gt 0 ] && echo ", $bad FAILED")"
    [ "$bad" -eq 0 ] || cat "$log/$name.txt"
done

if [ -n "$flavour" ] && grep -l . "$log"/san/* 2>/dev/null; then
    echo "sanitizer reports above, first one:"
    head -60 "$(ls "$log"/san/* | head -1)"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
