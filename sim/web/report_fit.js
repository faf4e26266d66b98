// SPDX-License-Identifier: Apache-2.0
//
// The figures of `fit`'s page: predictions against measurements, and their errors by layout.

"use strict";

(() => {
    const { css, digits } = report;
    const pairs = report.data("pairs");
    const kinds = [...new Set(pairs.rows.map((row) => row[0]))];
    const layouts = [...new Set(pairs.rows.map((row) => row[1]))];
    const symbols = ["circle", "rect", "triangle", "diamond", "pin", "roundRect"];
    const of = (kind) => pairs.rows.filter((row) => row[0] === kinds[kind]);
    const kindChoice = { label: "Of", options: () => kinds };
    const missing = () => (pairs.rows.length === 0 ? "Nothing was measured." : null);
    const tables = ([k]) => ({ [kinds[k]]: { columns: pairs.columns, rows: of(k) } });

    const point = (row, x, y) => ({ value: [x, y], row });
    const say = ({ data: { row } }) => `${row[1]}, ${row[0]}\nmeasured ${digits(row[2])} ms\npredicted ${digits(row[3])} ms\noff by ${digits(row[4])}%`;
    const scatter = (rows, xy, more = {}) => layouts.map((layout, i) => ({ name: layout, type: "scatter", symbol: symbols[i % 6], symbolSize: 7,
        itemStyle: { opacity: 0.75 }, data: rows.filter((row) => row[1] === layout).map((row) => point(row, ...xy(row))), ...more }));

    const parity = {
        missing, tables, choices: [kindChoice],
        height: () => 460,
        option: ([k]) => {
            const rows = of(k);
            const all = rows.flatMap((row) => [row[2], row[3]]).filter((x) => x > 0);
            const [least, most] = [Math.min(...all), Math.max(...all)];
            const line = (factor, type) => ({ type: "line", symbol: "none", silent: true, z: 1, tooltip: { show: false },
                lineStyle: { color: css("dim"), type, width: 1 }, data: [[least, least * factor], [most, most * factor]] });
            const type = most > 10 * least ? "log" : "value";
            return { ...report.base(), legend: report.legend(layouts), grid: { left: 60, right: 18, top: 34, bottom: 44 },
                tooltip: report.tooltip({ trigger: "item", formatter: say }),
                xAxis: report.valueAxis({ type, scale: true, name: "measured, ms" }),
                yAxis: report.valueAxis({ type, scale: true, name: "predicted, ms", nameGap: 44 }),
                series: [...scatter(rows.filter((row) => row[3] > 0), (row) => [row[2], row[3]]),
                    line(1, "solid"), line(1.15, "dashed"), line(0.85, "dashed")] };
        },
    };

    // Points of a layout side by side, in the order of what was measured.
    function spread(rows, layout) {
        const mine = rows.filter((row) => row[1] === layout).sort((a, b) => a[2] - b[2]);
        return new Map(mine.map((row, i) => [row, layouts.indexOf(layout) - 0.35 + (0.7 * (i + 0.5)) / mine.length]));
    }

    const residuals = {
        missing, tables, choices: [kindChoice],
        height: () => 360,
        option: ([k]) => {
            const rows = of(k);
            const at = new Map(layouts.flatMap((layout) => [...spread(rows, layout)]));
            return { ...report.base(), grid: { left: 52, right: 18, top: 12, bottom: 44 },
                tooltip: report.tooltip({ trigger: "item", formatter: say }),
                xAxis: report.valueAxis({ min: -1, max: layouts.length, interval: 1, name: "of a layout the shortest measured first",
                    axisLine: { onZero: false }, splitLine: { show: false },
                    axisLabel: { ...report.text(), hideOverlap: true, formatter: (x) => layouts[x] ?? "" } }),
                yAxis: report.valueAxis({ name: "error, %", nameGap: 38, axisLine: { onZero: false } }),
                series: scatter(rows, (row) => [at.get(row), row[4]], { symbolSize: 6, markLine: { silent: true, symbol: "none",
                    lineStyle: { color: css("dim") }, label: { show: false }, data: [{ yAxis: 0 }] } }) };
        },
    };

    report.show({ parity, residuals });
})();
