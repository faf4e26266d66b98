#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The program's manners: help that reads like a manual, man pages and completion that are made from the
# same tables, and timelines as files.
#
# usage: tests/terminal.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
root=$(realpath "$(dirname "$0")/..")
golden=$root/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

run() { "$program" "$@"; }
# The options that a help text lists.
options() { sed -nE '/^Examples/q; s/^  (-[a-z],|   ) (--[a-z0-9-]+).*/\2/p' | grep -vx -e --help; }

## help and man pages
commands=$(run --help | sed -n '/^Examples/q; s/^  \([a-z]*\) .*/\1/p' | xargs)
expect "the commands" "sim explain pareto trace gen plan fit validate reproduce tune db whatif serve list completion man" "$commands"
mkdir pages
run man --folder pages
pages="wavetank"
for name in $commands plan-grid plan-compare plan-predict plan-switches; do
    help=$(run ${name/-/ } --help) page=$(run man ${name/-/ })
    pages="$pages wavetank-$name"
    expect "$name: help has a usage, examples and more to read" 3 \
        "$(grep -cE '^(usage: wavetank|Examples:$|See also: )' <<<"$help")"
    expect "$name: help fits 80 columns" 1 "$(($(widest <<<"$help") <= 80))"
    expect "$name: the page in the folder is the page" "$page" "$(cat "pages/wavetank-$name.1")"
    expect "$name: the page has the options that help has" "$(options <<<"$help")" \
        "$(sed -nE 's/^(\\fB\\-.\\fR, )?\\fB(\\-\\-[^ ]*)\\fR.*/\2/p' <<<"$page" | tr -d '\\')"
done
expect "every page is there" "$(printf '%s.1\n' $pages | LC_ALL=C sort)" \
    "$(find pages -name '*.1' -printf '%f\n' | LC_ALL=C sort)"
expect "man of no command: exit code" 2 "$(run man nothing >/dev/null 2>&1; echo $?)"
for page in pages/*.1; do
    if command -v mandoc >/dev/null; then
        expect "$page: mandoc finds no fault" "" "$(mandoc -T lint -W warning "$page" | grep -v 'missing date')"
    fi
    if command -v groff >/dev/null; then
        expect "$page: groff finds no fault" "" "$(groff -man -ww -z "$page" 2>&1)"
    fi
done
if command -v groff >/dev/null; then
    groff -man -Tascii -P-c pages/wavetank-sim.1 | sed 's/.\x08//g' >sim.txt
    expect "a page as it is shown" 1 "$(grep -c '^ *--token-budget N$' sim.txt)"
    expect "a page's example keeps its backslash" 1 "$(grep -c 'azure_2023_code.csv \\$' sim.txt)"
fi

for what in models clusters profiles presets policies formats; do
    expect "list $what fits 80 columns" 1 "$(($(WAVETANK_DATA=$root run list $what | widest) <= 80))"
done

# Words and tables; what one names oneself may be longer.
cat >cases.json <<END
{"base": {"trace": "$root/traces/samples/azure_2023_code.csv", "limit": 50, "model": "tiny-mla", "cluster": "h200x8",
          "slo": "ttft=1s", "price_per_gpu_hour": 2}, "variations": [{"name": "of sixteen words", "set": {"rate": "2x"}}]}
END
WAVETANK_DATA=$root run whatif cases.json --find max-rate --find min-gpus >whatif.txt
expect "whatif: exit code" 0 $?
expect "whatif fits 80 columns" "" "$(awk 'length > 80' whatif.txt | grep -vF traces/samples)"
expect "sim fits 80 columns" "" "$(cd "$root" && run sim traces/samples/azure_2023_code.csv --limit 50 \
    --model deepseek-v3.2 --cluster b200x8 | awk 'length > 80')"

for paper in splash helix; do
    expect "reproduce $paper fits 80 columns" "" "$(WAVETANK_DATA=$root run reproduce $paper | awk 'length > 80')"
done
expect "validate fits 80 columns" "" "$(cat "$root"/docs/validation/h200x2/*.txt | awk 'length > 80')"

## completion
run completion bash >wavetank.bash
source ./wavetank.bash
# complete WORD...: what the last one may become.
complete_words() {
    COMP_WORDS=(wavetank "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _wavetank wavetank "${COMP_WORDS[$#]}" "${COMP_WORDS[$# - 1]}"
    echo "${COMPREPLY[*]}"
}
expect "a command" "validate" "$(complete_words va)"
expect "a command for help" "reproduce" "$(complete_words help re)"
expect "an option" "--admission" "$(complete_words sim trace.csv --adm)"
expect "options" "--timeline --timeline-from --timeline-to" "$(complete_words sim --timel)"
expect "a choice" "reserve on-demand" "$(complete_words sim trace.csv --admission "")"
expect "a choice begun" "on-demand" "$(complete_words sim trace.csv --admission o)"
expect "an action" "grid" "$(complete_words plan gr)"
expect "an action's option" "--max-tokens" "$(complete_words plan grid --max)"
expect "an option of another action" "" "$(complete_words plan compare --max)"
expect "an action without options" "--help" "$(complete_words plan show --)"
expect "a file is left to the shell" "" "$(complete_words sim trace)"
expect "a file behind an option too" "" "$(complete_words sim trace.csv --json r)"
for command in $commands; do
    expect "$command: completion has the options that help has" \
        "$(run $command --help | options | LC_ALL=C sort | xargs)" \
        "$(complete_words $command x -- | tr ' ' '\n' | grep -vx -e --help | LC_ALL=C sort | xargs)"
done
expect "zsh has every command" 16 "$(run completion zsh | grep -cE "^        '[a-z]+:")"
if command -v zsh >/dev/null; then
    expect "zsh reads its script" "" "$(run completion zsh >_wavetank; zsh -n _wavetank 2>&1)"
fi
expect "another shell: exit code" 2 "$(run completion fish >/dev/null 2>&1; echo $?)"

## timelines
sim() { run sim "$golden/rollout-drain/trace.csv" --model tiny-mla --cluster h200x8 --policy splash "$@"; }
sim >tables.txt
expect "--timeline changes no table" "$(cat tables.txt)" "$(sim --timeline run.json)"
expect "--timeline -: the timeline alone" "$(cat run.json)" "$(sim --timeline -)"
sim --timeline run.json.gz >/dev/null
expect ".gz is compressed" "$(cat run.json)" "$(gzip -dc run.json.gz)"
sim --json with.json --timeline again.json >/dev/null
sim --json without.json >/dev/null
expect "a result does not say where the timeline went" "" \
    "$(diff with.json without.json | grep '^[<>]' | grep -v sim_wall_s)"
run validate "$golden"/validate/{plan,measured}.jsonl --timeline both.json >validate.txt 2>/dev/null
expect "validate --timeline changes no report" "$(run validate "$golden"/validate/{plan,measured}.jsonl 2>/dev/null)" \
    "$(cat validate.txt)"
expect "both sides are there" "simulated measured" \
    "$(sed -n 's/.*"process_name","args":{"name":"\(.*\)"}}.*/\1/p' both.json | xargs)"
expect "a full disk: exit code" 2 "$(sim --timeline /dev/full >/dev/null 2>&1; echo $?)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
