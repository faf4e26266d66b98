#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pages of --report: whole HTML that fetches nothing, with the numbers of the same run's JSON, with the
# chart library and without. tests/browser/reports.mjs looks at them in a browser.
#
# usage: tests/report.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
root=$(realpath "$(dirname "$0")/..")
export WAVETANK_DATA=${WAVETANK_DATA:-$root}
trace=$root/traces/samples/azure_2023_code.csv
machine="--model deepseek-v3.2 --cluster b200x8"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# Tags that are closed in another order than they were opened, or never; what HTML lets one leave
# open may be. Scripts hold no tags.
open_tags() {
    sed -E 's/(<script[^>]*>).*(<\/script>)/\1\2/; /^<script>/,/<\/script>$/{/^<script>/!d}' "$1" |
        sed -E 's/^<script>.*/<script><\/script>/' | grep -oE '</?[a-z][a-z0-9]*|/>' | awk '
        BEGIN {
            split("meta link input br", v); for (i in v) void["<" v[i]] = 1
            split("tr td th li p dt dd", v); for (i in v) loose["<" v[i]] = 1
        }
        $0 == "/>" { n--; next }
        !/^<\// { if (!($0 in void)) open[++n] = $0; next }
        {
            tag = "<" substr($0, 3)
            while (n > 0 && open[n] != tag && open[n] in loose) n--
            if (n > 0 && open[n] == tag) n--; else print "closes nothing: " $0
        }
        END { while (n > 0) if (!(open[n] in loose)) print "open: " open[n--]; else n-- }'
}

# expect_page CASE FILE: what every page must be.
expect_page() {
    expect "$1: ends once" 1 "$(grep -c '^</html>' "$2")"
    expect "$1: tags are closed as they were opened" "" "$(open_tags "$2")"
    expect "$1: nothing to fetch" 0 "$(grep -cE '(src|href)="?(https?:|//)' "$2")"
    expect "$1: and it may not" 1 "$(grep -c "default-src 'none'" "$2")"
    expect "$1: ids are unique" "" "$(grep -oE ' id="[^"]*"' "$2" | sort | uniq -d)"
    expect "$1: says which program and command made it" 2 "$(grep -cE '<dt>(program|command)</dt><dd>wavetank ' "$2")"
}

# What a page's script has under an id, without blanks.
data() { sed -n "s/^<script type=\"application\/json\" id=\"$2\">\(.*\)<\/script>$/\1/p" "$1" | tr -d ' '; }

## sim
"$program" sim "$trace" $machine --limit 2000 --report sim.html --json sim.json >sim.txt
expect "sim --report: exit code" 0 $?
expect_page "sim" sim.html
expect "sim: the page has the JSON of the same run" "$(tr -d ' \n' <sim.json)" "$(data sim.html result)"
expect "sim: its verdict is the table's" "$(tail -2 sim.txt | xargs)" "$(sed -n 's/^<p>\(.*mean E2E latency\.\)$/\1/p' sim.html)"
expect "sim: every run has a course" "$(grep -c '"policy": "[^b]' sim.json)" \
    "$(data sim.html courses | grep -o '"bin_s"' | wc -l)"
expect "sim: six figures" 6 "$(grep -c '^<figure' sim.html)"
expect "sim: the library, or that it is missing" 1 \
    "$(($(grep -c 'id="no-charts"' sim.html) + $(grep -c 'Licences of the chart library' sim.html)))"
"$program" sim "$trace" $machine --limit 2000 --json same.json >same.txt
expect "sim: watching changes no result" "$(grep -v sim_wall_s sim.json)" "$(grep -v sim_wall_s same.json)"
expect "sim --report -: the page alone" "</html>" \
    "$("$program" sim "$trace" $machine --limit 20 --policy tp --report - | tail -1)"
expect "sim --report - --json -: refused" 2 \
    "$("$program" sim "$trace" $machine --report - --json - >/dev/null 2>&1; echo $?)"
expect "sim --report: a folder that is not there" 2 \
    "$("$program" sim "$trace" $machine --report none/x.html >/dev/null 2>&1; echo $?)"

## tune
study="--limit 400 --sample 0.7 --seeds 2 --grid margin=0:0.1:0.05 --grid dwell_ms=0,50"
"$program" tune "$trace" $machine $study --report tune.html --csv tune.csv >tune.txt
expect "tune --report: exit code" 0 $?
expect_page "tune" tune.html
expect "tune: the recommendation is the text's" "$(sed -n 's/^recommended: //p' tune.txt)" \
    "$(sed -n 's/^<p><code>\(.*\)<\/code><\/p>$/\1/p' tune.html)"
expect "tune: three figures" 3 "$(grep -c '^<figure' tune.html)"
# margin, dwell_ms, rank and objective of every setting, best first
expect "tune: the page has the settings of the CSV" \
    "$(tail -n +2 tune.csv | cut -d, -f1,2,4,5 | sort -t, -k3n)" \
    "$(data tune.html study | sed 's/.*"rows"://' | grep -oE '\["[^]]*' | tr -d '["' | cut -d, -f1-4 |
        sed -E 's/^([^,]*,[^,]*,[0-9]+)\.0,/\1,/')"
expect "tune --csv - --report -: refused" 2 \
    "$("$program" tune "$trace" $machine $study --csv - --report - >/dev/null 2>&1; echo $?)"

## pareto
search="--model deepseek-r1 --cluster gb200-nvl72 --context 256K --precision fp4 --ideal --gpus 8,32 --batch 1-64"
"$program" pareto $search --report pareto.html --json pareto.json >pareto.txt
expect "pareto --report: exit code" 0 $?
expect_page "pareto" pareto.html
expect "pareto: the page has the JSON of the same run" "$(tr -d ' \n' <pareto.json)" "$(data pareto.html result)"
expect "pareto: its frontier is drawn whole" "$(grep -c '"batch"' <(sed '/"baseline": \[/,$d' pareto.json))" \
    "$(data pareto.html frontiers | sed 's/{"name":"baseline.*//' | grep -oE '\[[0-9][^]]*' | wc -l)"
expect "pareto: sub-batches are drawn" 1 "$(data pareto.html pipelines | grep -cE '"mapping":"helix:[^"]*hopb=')"
expect "pareto --json - --report -: refused" 2 \
    "$("$program" pareto $search --json - --report - >/dev/null 2>&1; echo $?)"

## fit
measured=$root/docs/validation/h200x2/compare.measured.jsonl
"$program" fit "$measured" --model deepseek-r1-slice --cluster h200x2 -o fitted.json --report fit.html >fit.txt
expect "fit --report: exit code" 0 $?
expect_page "fit" fit.html
expect "fit: a pair for each step without a switch" "$(sed -n 's/.* steps, \([0-9]*\) without a switch$/\1/p' fit.txt)" \
    "$(data fit.html pairs | grep -o '\["step","' | wc -l)"
expect "fit: its errors are the text's" "$(awk '$1 == "step" && $2 == "all" {print $4}' fit.txt)" \
    "$(data fit.html pairs | grep -oE '\["step",[^]]*' | sed -E 's/.*,-?//' | sort -g |
        awk '{e[NR] = $1} END {printf "%.1f%%", e[int((NR + 1) / 2)]}')"
expect "fit: the text is in the page" "$(wc -l <fit.txt)" \
    "$(sed -n '/<pre class="wide">/,/<\/pre>/p' fit.html | sed '$d' | wc -l)"
head -7 >speeds.csv <<'END'
layout,input_len,batch,output_len,throughput_tok_s
tp,1024,8,256,2400
tp,4096,8,256,6100
cp,1024,8,256,2500
cp,4096,8,256,6900
dp,4096,16,256,9200
dp,1024,16,256,3900
END
"$program" fit speeds.csv --model deepseek-v3.2 --cluster h200x8 -o speeds.json --report speeds.html >speeds.txt
expect_page "fit of a table" speeds.html
expect "fit of a table: a pair for each row" 6 "$(data speeds.html pairs | grep -o '\["burst","' | wc -l)"

## whatif
cat >cases.json <<END
{"base": {"trace": "$trace", "limit": 200, "model": "deepseek-v3.2", "cluster": "b200x8", "rate": 4,
          "slo": "ttft=500ms,tpot=50ms", "slo_attained_frac": 0.97},
 "variations": [{"name": "<i>two</i>", "set": {"replicas": 2, "price_per_gpu_hour": 3}},
                {"name": "no limits", "set": {"slo": "e2e=1h"}}]}
END
whatif() { "$program" whatif cases.json --find max-rate --find min-gpus --rate-max 2 --rate-step 0.5 --groups-max 3 "$@"; }
whatif --report whatif.html --json whatif.json >whatif.txt
expect "whatif --report: exit code" 0 $?
expect_page "whatif" whatif.html
expect "whatif: the page has the JSON of the same run" "$(tr -d ' \n' <whatif.json | sed 's/</\\u003c/g')" "$(data whatif.html result)"
expect "whatif: limits in seconds" \
    '[{"ttft_s":0.5,"tpot_s":0.05,"e2e_s":null},{"ttft_s":0.5,"tpot_s":0.05,"e2e_s":null},{"ttft_s":null,"tpot_s":null,"e2e_s":3600.0}]' \
    "$(data whatif.html limits)"
expect "whatif: four figures, and one for each search" 6 "$(grep -c '^<figure' whatif.html)"
expect "whatif: without a search, four" 4 "$("$program" whatif cases.json --report - | grep -c '^<figure')"
expect "whatif: the text is in the page" "$(sed 's/</\&lt;/g; s/>/\&gt;/g' whatif.txt)" \
    "$(sed -n '/<pre class="wide">/,/<\/pre>/{s/.*<pre class="wide">//; s/<\/pre>.*//; p}' whatif.html)"
expect "whatif: tables fit 80 columns" "" "$(sed '/^base/,/^$/d' whatif.txt | awk 'length > 80')"
expect "whatif: its answers are the text's" "$(sed -n '/^min-gpus/,$s/^no limits  \([0-9]* GPUs.*\)/\1/p' whatif.txt)" \
    "$(grep -oE '<td>no limits</td><td>[0-9]+ GPUs[^<]*' whatif.html | sed 's/.*>//')"
expect "whatif --json - --report -: refused" 2 "$(whatif --json - --report - >whatif.out 2>&1; echo $?)"
expect "whatif --report: a folder that is not there" 2 "$(whatif --report none/x.html >whatif.out 2>&1; echo $?)"

## what users name never becomes markup
cp "$trace" "<b>&'.csv"
"$program" sim "./<b>&'.csv" $machine --limit 20 --policy dp --report odd.html >odd.txt
expect "an odd name: exit code" 0 $?
expect_page "an odd name" odd.html
expect "an odd name: as text" 1 "$(grep -c "<dt>trace</dt><dd>./&lt;b&gt;&amp;'.csv (" odd.html)"
expect "an odd name: in data" 1 "$(data odd.html result | grep -cF '"path":"./\u003cb>&'"'"'.csv"')"
expect "an odd name: the command can be run again" 1 \
    "$(grep -cF "sim './&lt;b&gt;&amp;'\\''.csv' --model" odd.html)"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
