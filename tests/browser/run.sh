#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The pages of serve, and reports, in Chromium: run.sh BUILD [SCREENSHOTS]. Without npm or Chromium it says so and passes.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
build=$(realpath "$1")
export WAVETANK_DATA=$(realpath "$here/../..")
export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
if ! command -v npm >/dev/null || [ -z "$CHROMIUM" ]; then
    echo "browser: skipped: needs npm, node and chromium (tests/deps.sh browser)"
    exit 0
fi
export NODE_FOLDER=$build/browser
mkdir -p "$NODE_FOLDER"
if ! cmp -s "$here/package-lock.json" "$NODE_FOLDER/package-lock.json" || [ ! -d "$NODE_FOLDER/node_modules" ]; then
    cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$NODE_FOLDER"
    (cd "$NODE_FOLDER" && npm ci --silent --no-audit --no-fund)
fi
work=$(mktemp -d)
"$build/bin/wavetank" serve --port 0 --data "$work/data" >"$work/out" &
server=$!
trap 'kill $server; wait $server 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    [ -s "$work/out" ] && break
    sleep 0.1
done
timeout 120 node "$here/pages.mjs" "$(sed -n 's|/  .*||p' "$work/out")" \
    "$here/../../traces/samples/vidur_splitwise_conv.csv" ${2:+"$2"}

load="$here/../../traces/samples/vidur_splitwise_conv.csv --model deepseek-v3.2 --cluster b200x8"
"$build/bin/wavetank" sim $load --report "$work/sim.html" >"$work/out"
"$build/bin/wavetank" tune $load --grid margin=0:0.2:0.1 --grid persist=1:2 --report "$work/tune.html" >"$work/out"
"$build/bin/wavetank" pareto --model llama-3.1-405b --cluster gb200-nvl72 --context 256K --gpus 8,16 \
    --report "$work/pareto.html" >"$work/out"
"$build/bin/wavetank" whatif "$WAVETANK_DATA/docs/scenarios/cluster.json" --find max-rate --find min-gpus --rate-max 4 \
    --report "$work/whatif.html" >"$work/out"
"$build/bin/wavetank" reproduce splash --report "$work/splash.html" >"$work/out"
"$build/bin/wavetank" reproduce helix --report "$work/helix.html" >"$work/out"
measured=$WAVETANK_DATA/docs/validation/h200x2
"$build/bin/wavetank" plan predict "$measured/switches.measured.jsonl" --profile h200x2 -o "$work/predicted.jsonl" >"$work/out"
"$build/bin/wavetank" validate "$work/predicted.jsonl" "$measured/switches.measured.jsonl" --profile h200x2 \
    --report "$work/validate.html" >"$work/out"
"$build/bin/wavetank" fit "$measured/grid.measured.jsonl" --model deepseek-r1-slice --cluster h200x2 -o "$work/mine.json" \
    --report "$work/fit.html" >"$work/out"
cd "$work"
timeout 240 node "$here/reports.mjs" "${2:--}" sim.html tune.html pareto.html whatif.html splash.html helix.html \
    validate.html fit.html
