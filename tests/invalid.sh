#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Bad input must end in one clear message. A case is a folder of tests/invalid: `args` holds the
# words after the program's name, `error` what it must say on stderr, to the byte; the rest is
# input. The exit code must be 2, stdout empty, and no file may be left behind or changed.
# Cases run in a copy of their folder.
#
# usage: tests/invalid.sh PROGRAM [CASE...]
set -u

program=$(realpath "$1") || exit 2
shift
cases=$(realpath "$(dirname "$0")")/invalid
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# The fault of one case on stdout, nothing when it passes.
run_case() {
    local from=$cases/$1 dir=$work/case code
    rm -rf "$dir"
    cp -r "$from" "$dir" && cd "$dir" || return
    eval "set -- $(cat args)"
    "$program" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null
    code=$?
    [ $code -eq 2 ] || echo "exit code $code, expected 2"
    diff -u --label expected --label stderr error "$work/stderr"
    [ ! -s "$work/stdout" ] || echo "wrote to stdout: $(head -c 200 "$work/stdout")"
    diff -r "$from" "$dir"
}

[ $# -gt 0 ] || set -- $(ls "$cases")
for name; do
    fault=$(run_case "$name")
    if [ -z "$fault" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n%s\n' "$name" "$fault"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
