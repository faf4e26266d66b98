#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/studies: pages that say what the program prints today, by one of their parts.
#
# usage: tests/studies.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
studies=$(realpath "$(dirname "$0")/../docs/studies")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

part=documents-b200x8-layouts

bash "$studies/margin.sh" "$program" "$work" $part
expect "margin.sh: exit code" 0 $?
expect "margin.sh: 4 sets of layouts, 8 margins, 4 seeds" 128 \
    "$("$program" db export "$work/margin.db" | tail -n +2 | wc -l)"
expect "margin.sh: a row for each set" 4 "$(grep -c '%.*%' "$work/$part.txt")"
expect "margin.md: what the program prints today" "$(cat "$studies/margin.md")" "$(cat "$work/margin.md")"
expect "margin.md: has that part" 1 "$(grep -cx "\`\`\`text $part" "$studies/margin.md")"
expect "margin.md: has all parts" 24 "$(grep -c '^```text ' "$studies/margin.md")"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
