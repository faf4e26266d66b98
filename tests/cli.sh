#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the program promises at its surface: exit codes, JSON keys, files, and text that fits a
# terminal. Bad input is tests/invalid.sh.
#
# usage: tests/cli.sh PROGRAM
set -u

program=$(realpath "$1") || exit 2
. "$(dirname "$0")/expect.sh"
samples=$(realpath "$(dirname "$0")/../traces/samples")
azure=$samples/azure_2023_code.csv
golden=$(realpath "$(dirname "$0")/golden")
mooncake=$samples/mooncake_conversation.jsonl.gz
machine="--model deepseek-v3.2 --cluster b200x8"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

run() { "$program" "$@"; }
sim() { run sim "$azure" $machine "$@"; }
# Keys of the objects at one depth of indented JSON, in order, without repeats.
keys() { sed -n "s/^ \{$1\}\"\([a-z_0-9]*\)\":.*/\1/p" "$2" | awk '!seen[$0]++' | xargs; }
policies() { sed -n 's/^ *"policy": "\(.*\)",$/\1/p' "$1" | xargs; }
# A result without what may differ between equal runs.
stable() { grep -v -e '"sim_wall_s"' -e '"exact"' "$1"; }

## the program itself
expect "--version" "wavetank 0.1.0" "$(run --version)"
expect_part "--help" "usage: wavetank COMMAND" "$(run --help)"
expect "help is --help" "$(run --help)" "$(run help)"
expect "no command: exit code" 2 "$(run >/dev/null 2>&1; echo $?)"
expect "no command: stdout is for results" "" "$(run 2>/dev/null)"
expect "unknown command" \
    '2 wavetank: unknown command "expain" (did you mean "explain"?); see "wavetank --help"' \
    "$(text=$(run expain 2>&1); echo $? "$text")"
for command in sim explain pareto trace gen plan fit tune db list reproduce serve validate whatif completion man; do
    expect "help $command: exit code" 0 "$(run help $command >/dev/null; echo $?)"
    expect "help $command is $command --help" "$(run $command --help)" "$(run help $command)"
    expect "help $command fits 80 columns" 1 "$(($(run help $command | widest) <= 80))"
done

## list
expect_part "list models" "deepseek-v3.2" "$(run list models)"
expect_part "list clusters" "b200x8" "$(run list clusters)"
expect_part "list profiles" "assumed, not measured" "$(run list profiles)"
expect_part "list presets" "claude-code" "$(run list presets)"
expect_part "list policies" "best-fixed" "$(run list policies)"
expect_part "list policies: options" "dwell_ms=MS (0)" "$(run list policies)"

## sim: results
sim --json a.json >a.txt
expect "sim: exit code" 0 $?
expect "sim: JSON keys" "wavetank trace model cluster scenario runs" "$(keys 2 a.json)"
expect "sim: run keys" "policy requests completed rejected cancelled preemptions makespan_s total_tok_s \
output_tok_s goodput_req_s goodput_tok_s queued_s ttft_s tpot_s e2e_s steps events switches switches_refused \
switch_exposed_s layout_time_frac kv_peak_frac prefix_hit_frac prefix_cached_tokens \
prefix_block_tokens prefix_evicted_blocks sim_wall_s regret_frac" "$(keys 6 a.json)"
expect "sim: policies without --policy" \
    "fixed:tp fixed:cp fixed:dp fixed:dop splash best-fixed:cp" "$(policies a.json)"
expect_part "sim: row of best-fixed" "best-fixed (cp)" "$(cat a.txt)"
expect_part "sim: a profile that assumes says so" "assumed, not measured" "$(cat a.txt)"
sim --policy best-fixed --json b.json >/dev/null
expect "sim: best-fixed is the run of that layout" \
    "$(sed -n '/"policy": "fixed:cp"/,/kv_peak/p' a.json | tail -n +2)" \
    "$(sed -n '/"policy": "best-fixed:cp"/,/kv_peak/p' b.json | tail -n +2)"
sim --exact --json b.json >b.txt
expect "sim --exact: same tables" "$(cat a.txt)" "$(cat b.txt)"
expect "sim --exact: same result" "$(stable a.json)" "$(stable b.json)"
run sim - $machine --json b.json <"$azure" >/dev/null
expect "sim -: same result from standard input" "$(stable a.json | grep -v '"path"')" \
    "$(stable b.json | grep -v '"path"')"
expect "sim --json -: without the tables" "{" "$(sim --json - | head -c 1)"
expect "sim --limit, --policy" "7 fixed:tp splash:margin=0.1,dwell_ms=2" \
    "$(sim --limit 7 --policy tp --policy splash:margin=0.1,dwell_ms=2 --json c.json >/dev/null
        echo "$(sed -n 's/^ \{6\}"completed": \(.*\),/\1/p' c.json | sort -u)" "$(policies c.json)")"
regrets() { sed -n 's/^ *"regret_frac": \(.*\)/\1/p' "$1" | xargs; }
sim --limit 7 --policy splash --json c.json >/dev/null
expect "sim: no regret without a yardstick" "" "$(regrets c.json)"
sim --limit 60 --policy splash --policy oracle:every_ms=20 --policy oracle:budget=0 --json c.json >c.txt
expect "sim: regret against the oracle" "0.0" "$(regrets c.json | cut -d' ' -f2)"
expect "sim: an oracle without budget regrets as splash does" "$(regrets c.json | cut -d' ' -f1)" \
    "$(regrets c.json | cut -d' ' -f3)"
expect_part "sim: an oracle makes regret a column" "switches  regret" "$(cat c.txt)"
expect_part "sim: an oracle says what its budget cut" "looked ahead in 0 forks; its budget cut" "$(cat c.txt)"
expect "sim: an oracle's run keys" "forks searches_cut" "$(keys 6 c.json | grep -o 'forks.*')"
sim --limit 60 --policy splash --policy oracle:every_ms=20 --policy oracle:budget=0 --exact \
    --json b.json >b.txt
expect "sim --exact: the oracle sees the same" "$(cat c.txt; stable c.json)" "$(cat b.txt; stable b.json)"
expect_part "sim --slo shows goodput" "goodput" "$(sim --policy tp --slo ttft=100ms)"
expect "sim: a layout whose weights do not fit is a row, not an error" "0 0" \
    "$(run sim "$azure" --model deepseek-v3.2 --cluster h100x8 --limit 5 --policy tp --json d.json \
        >/dev/null; echo $? "$(sed -n 's/^ *"completed": \(.*\),/\1/p' d.json)")"

## sim: what a result says of itself is a scenario
sim --token-budget 2K --admission on-demand --owners kv --max-running 40 --page-tokens 32 \
    --kv-tokens 64K --deadline 900ms --failed-session go-on --slo ttft=300ms,e2e=800ms --rate 3 \
    --layouts tp,dp --policy splash:margin=0.1,dwell_ms=2 --policy best-fixed --json a.json >a.txt
sed -n '/^  "scenario": {$/,/^  },$/p' a.json | sed '1s/.*/{/; $s/.*/}/' >scenario.json
run sim "$azure" --scenario scenario.json --json b.json >b.txt
expect "sim --scenario: same tables" "$(cat a.txt)" "$(cat b.txt)"
expect "sim --scenario: same result" "$(grep -v sim_wall_s a.json)" "$(grep -v sim_wall_s b.json)"
expect_part "sim --deadline: says what it cancelled" "not finished by its deadline" "$(cat a.txt)"
run sim "$azure" --scenario a.json --json b.json >b.txt
expect "sim --scenario: a result has one" "$(cat a.txt)" "$(cat b.txt)"
run sim "$azure" --scenario scenario.json --limit 3 --policy dp --json b.json >/dev/null
expect "sim --scenario: the command line wins" "fixed:dp 3" \
    "$(policies b.json) $(sed -n 's/^ \{6\}"requests": \(.*\),/\1/p' b.json)"
cat >scenario.json <<'EOF'
{"model": "deepseek-v3.2", "cluster": "h200x8", "layouts": "tp,dp", "policy": ["splash:margin=0.1", "best-fixed"],
 "token_budget": "8K", "max_running": 512, "kv_tokens": "650K", "admission": "on-demand", "deadline_s": 30,
 "slo": "ttft=2s,tpot=50ms"}
EOF
expect "sim --scenario: the one of docs/formats.md" "splash:margin=0.1 best-fixed:tp" \
    "$(run sim "$azure" --scenario scenario.json --limit 20 --json b.json >/dev/null; policies b.json)"
expect_part "sim --kv-tokens: says which layout has no room" "layout dp keeps no room" \
    "$(run sim "$azure" --model llama-3.1-405b --cluster h100x8 --limit 5 --layouts tp,dp \
        --kv-tokens 64K 2>&1 >/dev/null)"

## sim: requests
sim --limit 10 --policy tp --policy splash:margin=0.1,dwell_ms=2 --requests r.csv >/dev/null
expect "sim --requests: one row each" 21 "$(wc -l <r.csv)"
expect "sim --requests: header" "policy,request,arrival_s,input_tokens,output_tokens,state,reason,\
first_token_s,finish_s,ttft_s,tpot_s,e2e_s,preemptions,cached_tokens,transfer_start_s,transfer_end_s" \
    "$(head -1 r.csv)"
expect "sim --requests: quoted where needed" 10 \
    "$(grep -c '^"splash:margin=0.1,dwell_ms=2",' r.csv)"
cached() {
    run sim "$mooncake" $machine --limit 300 --policy splash --prefix-cache --json "$@" |
        grep "were cached"
}
expect "sim --prefix-cache --exact: same result" "$(cached e.json && stable e.json)" \
    "$(cached f.json --exact && stable f.json)"
expect "sim --prefix-cache: the CSV adds up" \
    "$(sed -n 's/^ *"prefix_cached_tokens": \(.*\),/\1/p' e.json)" \
    "$(cached e.json --requests g.csv >/dev/null; awk -F, '{ n += $(NF - 2) } END { print n }' g.csv)"
expect "sim --requests -: without the tables" 21 \
    "$(sim --limit 10 --policy tp --policy dp --requests - | wc -l)"

## sim: pools and routers
pools=(--limit 40 --policy splash --prefill-policy fixed:cp --prefill-replicas 2 --replicas 2)
for router in round-robin least-loaded; do
    sim "${pools[@]}" --router $router --json a.json >/dev/null
    sim "${pools[@]}" --router $router --exact --json b.json >/dev/null
    expect "sim --router $router: exact gives the same" "" \
        "$(diff <(grep -v '"exact"\|wall' a.json) <(grep -v '"exact"\|wall' b.json))"
done
expect "sim --prefill-replicas: the pools have policies of their own" '"cp": 1.0,' \
    "$(sed -n '/"prefill": {/,/}/s/^ *\("cp": .*\)/\1/p' a.json)"
expect_part "sim --prefill-replicas: a table of the pools" "KV link" "$(sim "${pools[@]}")"

## sim: plans
sim --policy splash --plan all.jsonl --json b.json >/dev/null
steps=$(sed -n 's/^ *"steps": \(.*\),/\1/p' b.json)
switches=$(sed -n 's/^ *"switches": \(.*\),/\1/p' b.json)
expect "plan check" "ok: $steps steps, $switches switches" "$(run plan check all.jsonl)"
expect "plan show: one line a step" $((steps + 8)) "$(run plan show all.jsonl | wc -l)"
sim --policy splash --plan part.jsonl --plan-steps 3:7 >/dev/null
expect "sim --plan-steps: that part of the whole" "$(sed -n '5,8p' all.jsonl)" \
    "$(tail -n +2 part.jsonl)"
sim --policy splash --plan part.jsonl --plan-around-switches 0 >/dev/null
expect "sim --plan-around-switches 0: the switches" "$(grep '"from"' all.jsonl)" \
    "$(tail -n +2 part.jsonl)"
expect_part "sim --plan: says when it is empty" "no step was selected" \
    "$(sim --policy tp --plan part.jsonl --plan-around-switches 3 2>&1 >/dev/null)"

## plans that put the simulator on trial
slice="--model deepseek-r1-slice --cluster h200x2"
expect "plan grid: says what it wrote" "grid.jsonl: 639 steps, 317 switches" \
    "$(run plan grid $slice -o grid.jsonl | sed 's/, predicted to take [0-9.]* s$//')"
expect "plan grid: check" "ok: 639 steps, 317 switches" "$(run plan check grid.jsonl)"
expect "plan grid -: the plan alone" "$(cat grid.jsonl)" "$(run plan grid $slice -o -)"
expect "plan grid: every cluster has its Helix" 64 \
    "$(run plan grid --model llama-3.1-405b-slice --cluster h200x8 -o - |
        grep -v '"from"' | grep -c '"layout":"helix:kvp=8,tpa=1"')"
run plan switches $slice --context 64K --repeats 2 --layouts tp,dp -o switches.jsonl >/dev/null
expect "plan switches: two directions, three ways, twice" "ok: 24" \
    "$(run plan check switches.jsonl | cut -d' ' -f1,2)"
expect "plan switches: each alike often" "4 blocking 4 overlapped" \
    "$(grep -o '"blocking"\|"overlapped"' switches.jsonl | tr -d '"' | sort | uniq -c | xargs)"
run plan switches $slice --context 64K --repeats 2 --layouts tp,dp --seed 1 -o seed.jsonl >/dev/null
expect "plan switches --seed: another order" 1 "$(cmp -s switches.jsonl seed.jsonl; echo $?)"
run plan compare all.jsonl --every 50 -o compare.jsonl >compare.txt
expect "plan compare: model and cluster are the plan's" "$(head -1 all.jsonl)" \
    "$(head -1 compare.jsonl)"
expect_part "plan compare: check" "ok: " "$(run plan check compare.jsonl)"
expect "plan compare: every 50th step under five layouts" $(((steps + 49) / 50 * 5)) \
    "$(tail -n +2 compare.jsonl | grep -vc '"from"')"
run plan compare all.jsonl --every 500 --layouts helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=4 -o hopb.jsonl >/dev/null
expect "plan compare: HOP-B beside none" "helix:kvp=8,tpa=1 helix:kvp=8,tpa=1,hopb=4" \
    "$(sed -n 's/.*"layout":"\([^"]*\)".*/\1/p' hopb.jsonl | sort -u | xargs)"
expect_part "plan compare --model: another machine's predictions" '"model":"deepseek-r1"' \
    "$(run plan compare all.jsonl --every 500 --model deepseek-r1 --cluster h200x8 -o - | head -1)"
for action in grid compare switches; do
    expect "plan $action --help: exit code" 0 "$(run plan $action --help >/dev/null; echo $?)"
    expect "plan $action --help fits 80 columns" 1 "$(($(run plan $action --help | widest) <= 80))"
done

## fit: of what was predicted
slice="--model llama-3.1-405b-slice --cluster h200x2"
run plan grid $slice --profile h200x2 --layouts tp,dp --max-tokens 64K -o - |
    sed 's/"pred":\({[^}]*}\)}$/"pred":\1,"meas":{"p50":\1,"p95":\1},"check":0}/' >measured.jsonl
run fit measured.jsonl $slice -o fitted.json >fit.txt
expect "fit: exit code" 0 $?
expect "fit fits 80 columns" 1 "$(($(widest <fit.txt) <= 80))"
expect_part "fit: what the data do not say" "attn_decode.flop_frac[64]" \
    "$(grep 'not in the data' fit.txt)"
expect "fit: predictions stay within 2%" 1 \
    "$(awk '$1 == "step" && $2 == "all" { print ($5 + 0 < 2) }' fit.txt)"
expect "fit: keys are a profile's" "$(keys 4 "$samples/../../hw/profiles/h200x2.json")" \
    "$(keys 4 fitted.json)"
expect "fit: the table is beside the profile" "op,ranks,bytes,us" "$(grep -m1 '^op' fitted.csv)"
expect_part "fit: the profile can be used" "profile  fitted: measured" \
    "$(run explain $slice --context 4K --profile ./fitted.json)"
mkdir -p again
run fit measured.jsonl $slice -o again/x.json --name fitted >/dev/null
expect "fit: same input, same profile" "$(cat fitted.json)" "$(cat again/x.json)"
expect "fit --name: and the same table" "$(cat fitted.csv)" "$(cat again/fitted.csv)"

{ echo "# collectives of a machine" && grep -E '^[a-z_]+,(2|ranks),' "$samples/../../hw/nccl/h200.csv"; } >alone.csv
run fit measured.jsonl $slice --collectives alone.csv -o told.json >told.txt
expect "fit --collectives: exit code" 0 $?
expect "fit --collectives: growth is not fitted" 4 "$(grep -c 'gb_per_s.*by convention' told.txt)"
expect_part "fit --collectives: the profile says whose" "alone.csv: collectives of a machine" "$(cat told.json)"
expect_part "fit --collectives: so does the table" "alone.csv: collectives of a machine" "$(head -2 told.csv)"
expect_part "fit --collectives: the profile can be used" "profile  told: measured" \
    "$(run explain $slice --context 4K --profile ./told.json)"

## fit: a table of speeds, here the SPLASH paper's table 4, whose repeats are alike in part
awk -F, '/^#/ { next } !n++ { split($0, name); print "layout,input_len,batch,output_len,throughput_tok_s"; next }
    { for (i = 4; i <= 7; i++) { row = name[i] "," $2 "," $3 ",1024," 1000 * $i; if (!seen[row]++) print row } }' \
    "$samples/../../hw/papers/splash/table4.csv" >table4_b200.csv
paper="--model glm-5.3 --cluster b200x8 --decode-layout dp"
run fit table4_b200.csv $paper -o b200.json >fit.txt
expect "fit TABLE: exit code" 0 $?
expect "fit TABLE fits 80 columns" 1 "$(($(widest <fit.txt) <= 80))"
expect "fit TABLE: errors by layout, then held out" "all tp cp dp dop all tp cp dp dop" \
    "$(sed -n 's/^\(all\|tp\|cp\|dp\|dop\)  .*/\1/p' fit.txt | xargs)"
expect "fit TABLE: errors are below 15%, and larger held out" "1 1" \
    "$(awk '$1 == "all" { e[++n] = $3 + 0 } END { print (e[1] < 15), (e[1] < e[2] && e[2] < 15) }' fit.txt)"
expect_part "fit TABLE: what it does not tell" "stay the base's:
    attn_decode.time_factor" "$(cat fit.txt)"
expect_part "fit TABLE: what the choice costs" "mean of 28 shapes" "$(tail -1 fit.txt)"
expect "fit TABLE: keys are a profile's" "$(keys 4 fitted.json)" "$(keys 4 b200.json)"
expect_part "fit TABLE: the profile says what it is made of" \
    "table4_b200.csv: glm-5.3 on b200x8, 128 rows of 28 shapes, layouts tp, cp, dp, dop, bursts decode in dp" \
    "$(cat b200.json)"
expect_part "fit TABLE: its collectives say so, too" "# Collective times for the profile b200: those of b200 times" \
    "$(head -1 b200.csv)"
expect_part "fit TABLE: the profile can be used" "profile  b200: fitted" \
    "$(run explain --model glm-5.3 --cluster b200x8 --context 64K --profile ./b200.json)"
{ printf '\357\273\277' && sed 's/$/\r/' table4_b200.csv; } >again/table4_b200.csv
run fit again/table4_b200.csv $paper -o again/b200.json >again/fit.txt
expect "fit TABLE: same rows, same profile" "$(cat b200.json b200.csv)" "$(cat again/b200.json again/b200.csv)"
expect "fit TABLE: and the same tables" "$(tail -n +2 fit.txt)" "$(tail -n +2 again/fit.txt)"
printf 'layout,input_len,batch,output_len,step_ms\ntp,4096,16,64,20\ndp,4096,16,64,25\n' >steps.csv
expect_part "fit TABLE: one shape alone" "none can be held out" \
    "$(run fit steps.csv --model deepseek-v3.2 --cluster h200x8 -o steps.json)"

## validate: of what was predicted, and of half of it
measure='s/"pred":\({[^}]*}\)}$/"pred":\1,"meas":{"p50":\1,"p95":\1},"check":0.001}/'
sed "$measure" compare.jsonl >compared.jsonl
run validate compare.jsonl compared.jsonl --json v.json --report v.html >v.txt
expect "validate: exit code" 0 $?
expect "validate: JSON keys" "steps step_error_p50 step_error_p95 schedule_error layout_agreement \
stages switches check_max_error unmatched step_error_over step_error_mean step_kinds layouts \
worst_steps window_error_p50 window_error_p95 windows kendall_tau regret_frac layout_order hopb \
noise first_run doubts wavetank plan measured model cluster ranks layers profile origin" "$(keys 2 v.json)"
expect "validate: no error" '"step_error_p95": 0.0,' "$(grep -o '"step_error_p95".*' v.json)"
expect "validate: every order is right" $(((steps + 49) / 50)) \
    "$(grep -c '"verdict": "right"' v.json)"
expect_part "validate: says whose predictions these are" \
    "profile  b200-analytic: efficiencies assumed, not measured" "$(cat v.txt)"
expect_part "validate: or that it does not know" "profile  not known: not h200-analytic" \
    "$(run validate compare.jsonl compared.jsonl --profile h200-analytic)"
expect "validate --json -: without the tables" "$(sed 's/ --.*/"/' v.json)" \
    "$(run validate compare.jsonl compared.jsonl --json - | sed 's/ --.*/"/')"
expect "validate --report: one file, without scripts" "1 0" \
    "$(grep -c '^</html>' v.html) $(grep -ci -e '<script' -e 'http:' -e 'https:' v.html)"
head -21 compared.jsonl >part.jsonl
run validate compare.jsonl part.jsonl --json v.json >v.txt 2>v.err
expect "validate: a part" "0 wavetank: part.jsonl: the run was cut: $(($(wc -l <compare.jsonl) - 21)) \
of the plan's $(($(wc -l <compare.jsonl) - 1)) steps are missing" "$? $(cat v.err)"
expect "validate: a part: steps" '  "steps": 20,' "$(grep '^  "steps": ' v.json)"

## explain
run explain $machine --batch 64 --context 64K --json e.json >e.txt
expect "explain: exit code" 0 $?
expect "explain fits 80 columns" 1 "$(($(widest <e.txt) <= 80))"
expect "explain: JSON keys" "layouts switches" "$(keys 2 e.json)"
expect "explain: layout keys" \
    "weights_bytes kv_bytes feasible max_context_tokens step_ns stages" "$(keys 6 e.json |
        sed 's/ from.*//')"
expect "explain: stage keys" "proj_ns attn_ns exchange_ns ffn_ns" "$(keys 8 e.json)"
expect "explain: switch keys" "from to weights kv weights_recv_bytes_per_rank_layer \
kv_recv_bytes_per_rank_layer exposed_ns blocking_ns" "$(keys 6 e.json | sed 's/.* from/from/')"
expect "explain: 12 directions" 12 "$(grep -c '"from"' e.json)"
expect "explain: weights are gathered in 4 of them" 4 "$(grep -c '"weights": "all-gather"' e.json)"
expect "explain: KV moves in 7 of them" 7 "$(grep -c '"kv": "all-' e.json)"
expect "explain: HOP-B keeps everything" "keep keep 0 0" "$(run explain $machine --context 64K \
    --layouts helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=4 | tail -1 | tr -s ' ' | cut -d' ' -f3-)"
expect_part "explain: longer than the model allows" "allows contexts of" \
    "$(run explain $machine --context 1M)"
expect "explain --phase prefill: one chunk by default" \
    "batch    prefill: 2 requests of 65,536 tokens, 8,192 query rows each" \
    "$(run explain $machine --context 64K --batch 2 --phase prefill | grep '^batch')"

## reproduce
root=$(realpath "$samples/../..")
WAVETANK_DATA=$root run reproduce splash helix --json e.json --markdown fidelity.md >e.txt
expect "reproduce: exit code" 0 $?
expect "docs/fidelity.md is today's (make fidelity)" "" "$(diff "$root/docs/fidelity.md" fidelity.md)"
expect "reproduce: ends in a verdict" "All $(grep -c '"kind": "exact"' e.json) exact rows agree." \
    "$(tail -1 e.txt)"
expect "reproduce: JSON keys" "rows verdict id kind paper ours error_frac goal ok note" \
    "$(keys 2 e.json) $(keys 6 e.json)"
expect "reproduce: JSON's verdict" '  "verdict": "exact"' "$(grep '^  "verdict"' e.json)"
expect "reproduce: words fit 80 columns, tables 100" "" \
    "$(awk 'length > (/^[a-z0-9]*\.|^ / ? 100 : 80)' e.txt)"
expect "reproduce --json -: without the tables" "$(keys 2 e.json)" \
    "$(run reproduce splash --only loads --json - >o.json; keys 2 o.json)"
expect "reproduce --only: that section's rows" 16 "$(grep -c '"id": "table2' o.json)"
WAVETANK_DATA=$root run reproduce splash --only primitives --report r.html >r.txt
expect "reproduce --report: one file, without scripts" "1 0 7" \
    "$(grep -c '^<!DOCTYPE html>' r.html) $(grep -c '<script\|https*:' r.html) $(grep -c 'c0.*figure5.*kv_ms: paper' r.html)"
WAVETANK_DATA=$root run reproduce helix --only frontiers --report r.html >r.txt
expect "reproduce helix --report: its title, two figures" "1 2" \
    "$(grep -c '<title>The Helix paper beside' r.html) $(grep -c '<figure>' r.html)"
mkdir -p altered/hw && cp -r "$root"/hw/models "$root"/hw/papers altered/hw
sed -i 's/B\/T,B\/T,B\/T$/B\/T,B\/T,B/' altered/hw/papers/splash/table2.csv
expect "reproduce: an exact row that differs" \
    "wavetank: reproduce: 1 of 16 exact rows differ from the paper; 1" \
    "$( (WAVETANK_DATA=altered run reproduce splash --only loads 2>&1 >o.txt; echo "; $?") | tr -d '\n')"
expect "reproduce: says which" "table2.cp.attention_work 20.000 2.500 DIFFERS" \
    "$(grep DIFFERS o.txt | xargs)"

## gen
expect "gen: exit code" 0 "$(run gen agentic -n 5 -o gen.wtt; echo $?)"
expect "gen: a trace of that format" "agentic" "$(run trace info gen.wtt | awk '/^format/ {print $2}')"
run gen agentic -n 5 -o gen.jsonl 2>gen.txt
expect_part "gen: warns as convert does" "blocks of 512" "$(cat gen.txt)"
expect "gen: .jsonl and .wtt have the same requests" "$(run trace info gen.wtt | tail -3)" \
    "$(run trace info gen.jsonl | tail -3)"
run gen agentic -n 5 -o again.wtt
expect "gen: same seed, same bytes" "$(cksum <gen.wtt)" "$(cksum <again.wtt)"
run gen agentic -n 5 --seed 1 -o again.wtt
expect "gen --seed: other bytes" 1 "$(cmp -s gen.wtt again.wtt; echo $?)"
run gen rollout --preset long-tail -n 1 --block-tokens 0 -o gen.csv
expect "gen: the trace of golden/rollout-drain" "$(cksum <"$golden/rollout-drain/trace.csv")" "$(cksum <gen.csv)"
expect "sim of a generated trace" 32 "$(run gen rollout -n 2 -o gen.wtt
    run sim gen.wtt $machine --limit 32 --policy dp --json e.json >/dev/null
    sed -n 's/^ *"completed": \(.*\),/\1/p' e.json)"

## trace convert: the published rows, to the byte, by way of the binary form
expect "trace convert: exit code" 0 "$(run trace convert "$mooncake" -o a.wtt; echo $?)"
run trace convert a.wtt -o a.jsonl
expect "trace convert: Mooncake's rows" "$(gzip -dc "$mooncake" | cksum)" "$(cksum <a.jsonl)"
expect "trace info of a .wtt is the original's" "$(run trace info "$mooncake")" \
    "$(run trace info a.wtt)"
expect "sim of a .wtt is the original's" \
    "$(run sim "$mooncake" $machine --policy fixed:tp --limit 99)" \
    "$(run sim a.wtt $machine --policy fixed:tp --limit 99)"
run trace convert "$azure" -o a.csv --limit 2
expect "trace convert: selections apply" \
    "arrived_at_s,input_tokens,output_tokens 0,4808,10 0.052,3180,8" "$(xargs <a.csv | tr -d '\r')"
expect "a pipe is read as text" "$(run trace info a.csv)" "$(run trace info <(cat a.csv))"

## the README shows what the demo prints
readme=$(sed -n '/^\$ build\/bin\/wavetank sim/,/^```$/p' "$samples/../../README.md" |
    sed '1d;$d')
demo=$(cd "$samples/../.." && "$program" sim traces/samples/mooncake_conversation.jsonl.gz \
    --model deepseek-v3.2 --cluster b200x8)
expect "the README's output is today's" "$demo" "$readme"
expect_part "the README's output ends in a verdict" "by mean E2E latency." "$readme"

## files: all or nothing
mkdir empty && cd empty || exit 2
expect "a full disk is named" \
    "wavetank: /dev/full: cannot write: No space left on device; 2" \
    "$( (sim --limit 5 --json /dev/full 2>&1 >/dev/null; echo "; $?") | tr -d '\n')"
expect "a full standard output fails" 2 "$(sim --limit 5 2>/dev/null >/dev/full; echo $?)"
touch secret.csv && chmod 000 secret.csv
as_nobody=
[ "$(id -u)" -ne 0 ] || as_nobody="setpriv --reuid=65534 --clear-groups --inh-caps=-all"
if $as_nobody "$program" --version >/dev/null 2>&1; then # nobody may be kept out of our folder
    expect "a file that may not be read is named" \
        "wavetank: secret.csv: cannot open: Permission denied; 2" \
        "$( ($as_nobody "$program" trace info secret.csv 2>&1; echo "; $?") | tr -d '\n')"
fi
rm -f secret.csv
expect "a failed run leaves nothing" "" \
    "$(sim --json good.json --requests none/r.csv >/dev/null 2>&1; ls)"
for signal in INT TERM; do
    "$program" sim "$mooncake" $machine --exact --rate 4 --json out.json >/dev/null 2>&1 &
    for _ in $(seq 500); do
        [ -n "$(ls)" ] && break
        sleep 0.01
    done
    kill -$signal $!
    wait $! 2>/dev/null
    code=$?
    expect "SIG$signal: exit code and files" "$((128 + $(kill -l $signal))) " "$code $(ls)"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
