#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The margin study: SPLASH's margin, dwell and persist on three loads and two clusters. Keeps every
# run in FOLDER/margin.db (a study that was stopped goes on), writes each part to FOLDER/PART.txt
# and margin.md with what the parts say to FOLDER/margin.md, which `make study` puts back.
#
# usage: docs/studies/margin.sh PROGRAM FOLDER [PART]...
set -euo pipefail

program=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../.."
export WAVETANK_DATA=$PWD
page=docs/studies/margin.md

sessions="traces/samples/weka_sessions.csv.gz --arrivals 0.02 --wait-cap 60s"
margins="--grid margin=0,0.02,0.05,0.1,0.15,0.2,0.3,0.5"
holds="--grid dwell_ms=0,100,1000,10000 --grid persist=1,4,16"
usual="tp|cp|dp|dop|splash|splash:charge=1"
no_tp="splash:margin.cp-tp=1,margin.dp-tp=1,margin.dop-tp=1"
seen="horizon_s=300,every_ms=30000"
all="horizon_s=1e6,every_ms=10000"

# How a load is run, between what it switches (it starts in the first), subsets of these, and with
# what it is compared.
describe() { # LOAD
    case $1 in
    agents)
        load="$sessions --prefix-cache" seeds=2
        order="cp,tp,dp,dop" subsets="cp,tp,dp,dop|cp,dp,dop|cp,dp|cp,tp"
        yardsticks="$usual|$no_tp|oracle:$seen|oracle:$seen,base_margin=1"
        ;;
    agents-uncached)
        load="$sessions" seeds=2
        order="cp,tp,dp,dop" subsets="cp,tp,dp,dop|cp,dp,dop|cp,dp|cp,tp"
        yardsticks="$usual|oracle:$seen|oracle:$seen,base_margin=1"
        ;;
    rollout)
        load="gen:rollout:long-tail --count 1 --max-running 2048 --objective makespan" seeds=2
        order="dp,tp,cp,dop" subsets="dp,tp,cp,dop|dp,tp|tp,cp,dp,dop"
        yardsticks="$usual|oracle:objective=makespan,$all|oracle:objective=makespan,$all,base_margin=1"
        ;;
    documents)
        load="gen:longdoc --count 40 --block-tokens 512 --prefix-cache" seeds=4
        order="cp,tp,dp,dop" subsets="cp,tp,dp,dop|cp,dp,dop|cp,dp|cp,tp"
        yardsticks="$usual|oracle:$all|oracle:$all,base_margin=1"
        ;;
    esac
}

tune() { # CLUSTER [OPTION]...
    "$program" tune $load --model glm-5.3 --cluster "$1" --db "$folder/margin.db" "${@:2}" 2>>"$folder/notes"
}
# The rows of a map, with the blank line behind it.
map() { sed -n '/^Above/,/^Flat/{/^Flat/!p}' "$1"; }

hysteresis() { # CLUSTER
    tune "$1" --layouts "$order" --seeds $seeds $margins $holds --top 1 >"$raw"
    sed -n '1{s/: \([0-9,]* runs\).*/: \1/;p}' "$raw"
    echo
    sed -n '/^rank/,/^$/p' "$raw"
    map "$raw"
    sed -n '/^Flat/,/^$/p; /^recommended/,$p' "$raw"
}
layouts() { # CLUSTER
    tune "$1" --grid "layouts=$subsets" --seeds $seeds $margins >"$raw"
    map "$raw" | sed '$d'
}
yardsticks() { # CLUSTER
    tune "$1" --layouts "$order" --grid "policy=$yardsticks" --csv - >"$raw"
    # A policy may have commas of its own, so that other columns count from the end of a row.
    awk -F, -v OFS='\t' '
        function value(name) { return $(at[name] + NF - n) }
        function percent(name) { return value(name) == "" ? "-" : sprintf("%.1f%%", 100 * value(name)) }
        function number(name) { return sprintf(value(name) < 1000 ? "%.3g" : "%.0f", value(name)) }
        NR == 1 { for (n = NF; i++ < n;) at[$i] = i
                  print 0, "policy", "objective", "above", "done", "switches", "exposed s", "queued s", "cached"
                  next }
        { gsub(/"/, "")
          policy = $1
          for (i = 2; i <= 1 + NF - n; i++) policy = policy "," $i
          print value("rank"), policy, number("objective"), percent("above_frac"), value("completed"), value("switches"),
              number("switch_exposed_s"), number("queued_s_mean"), percent("prefix_hit_frac") }' "$raw" |
        sort -n | awk -F'\t' '{ printf "%-68s %9s %6s %5s %8s %9s %8s %6s\n", $2, $3, $4, $5, $6, $7, $8, $9 }'
}

[ $# -gt 0 ] || set -- {agents,agents-uncached,rollout,documents}-{b200x8,h200x8}-{hysteresis,layouts,yardsticks}
raw=$(mktemp)
trap 'rm -f "$raw"' EXIT
for name; do
    part=${name##*-} of=${name%-*}
    describe "${of%-*}"
    $part "${of##*-}" >"$folder/$name.new"
    mv "$folder/$name.new" "$folder/$name.txt"
done

# A block of the page that begins with "```text PART" is what that part says, where it ran.
awk -v folder="$folder" '
    /^```text / { print; file = folder "/" $2 ".txt"; inside = (getline line <file) > 0
                  if (inside) do print line; while ((getline line <file) > 0)
                  next }
    /^```/ { inside = 0 }
    !inside' $page >"$folder/margin.md"
