#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fetch.sh FOLDER: the chart library (Apache ECharts, at the version that package-lock.json pins by its hash) and
# its licences, by npm, to FOLDER.
set -eu
from=$(dirname "$0")
mkdir -p "$1"
cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$1"
(cd "$1" && npm ci --silent --no-audit --no-fund)
parts=$1/node_modules
cp "$parts/echarts/dist/echarts.min.js" "$1"
cp "$parts/echarts/LICENSE" "$1/echarts-LICENSE.txt"
cp "$parts/echarts/NOTICE" "$1/echarts-NOTICE.txt"
cp "$parts/echarts/licenses/LICENSE-d3" "$1/echarts-d3-LICENSE.txt"
cp "$parts/zrender/LICENSE" "$1/zrender-LICENSE.txt"
rm -rf "$parts"
