#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Results that must not change by accident. A case is a folder of tests/golden: `args` holds the
# words after the program's name, `stdout` what it must print, to the byte; the rest is input.
# `make golden` writes stdout anew: say why in the commit.
#
# usage: tests/golden.sh PROGRAM [update]
set -u

program=$(realpath "$1") || exit 2
[ "${2:-update}" = update ] || { echo "usage: tests/golden.sh PROGRAM [update]" >&2; exit 2; }
update=${2:-}
cases=$(realpath "$(dirname "$0")")/golden
stdout=$(mktemp)
trap 'rm -f "$stdout"' EXIT
passed=0 failed=0

for args in "$cases"/*/args; do
    cd "$(dirname "$args")" || exit 2
    name=$(basename "$PWD")
    eval "set -- $(cat args)"
    if ! "$program" "$@" >"$stdout" </dev/null; then
        failed=$((failed + 1))
        echo "FAIL $name: the program failed"
    elif [ -n "$update" ]; then
        cat "$stdout" >stdout
    elif diff -u --label "$name/stdout" --label "now" stdout "$stdout"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
[ -n "$update" ] || echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
