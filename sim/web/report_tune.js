// SPDX-License-Identifier: Apache-2.0
//
// The figures of `tune`'s page: maps of two options, one option by itself, and settings as points.

"use strict";

(() => {
    const { css, digits, text, dim } = report;
    const study = report.data("study");
    const axes = study.axes.map((axis, i) => ({ ...axis, at: i }));
    const varied = axes.filter((axis) => axis.values.length > 1);
    const column = (name) => study.columns.indexOf(name);
    const above = column("first_above_percent");
    const flat = column("flat");
    const settings = { columns: study.columns, rows: study.rows };

    const axisChoice = (label, which) => ({ label, options: () => varied.map((axis) => axis.name),
        first: () => Math.max(0, varied.findIndex((axis) => axis.at === study.strongest[which])) });

    // Of the settings with these two values: as recommended else, or the best that there is.
    function cell(across, down, x, y, isBest) {
        const rows = study.rows.filter((row) => row[across.at] === across.values[x] && row[down.at] === down.values[y] &&
            row[above] !== null && (isBest || axes.every((axis) =>
                axis === across || axis === down || row[axis.at] === axis.values[axis.recommended])));
        return rows.reduce((best, row) => (best === null || row[above] < best[above] ? row : best), null);
    }

    function cells([a, d, others]) {
        const across = varied[a];
        const down = varied[d];
        const all = down.values.flatMap((_, y) => across.values.map((_, x) => ({ x, y, row: cell(across, down, x, y, others === 1) })));
        return { across, down, all: all.filter(({ x, y, row }) => row !== null && (across !== down || x === y)) };
    }

    // Light where it is as good as the best; blue to yellow differ in lightness, too.
    const shades = ["#fde725", "#8fa86a", "#3f7f86", "#27506e", "#1a1f4f"];

    const map = {
        missing: () => (varied.length === 0 ? "No option has two values." : null),
        choices: [axisChoice("Across", 0), { ...axisChoice("Down", 1), first: () => Math.max(varied.length > 1 ? 1 : 0,
            varied.findIndex((axis) => axis.at === study.strongest[1])) },
            { label: "The other options", options: () => ["as recommended", "the best of them"] }],
        tables: (choice) => {
            const { across, down, all } = cells(choice);
            return { map: { columns: [across.name, down.name, "above_percent", "flat"],
                rows: all.map(({ x, y, row }) => [across.values[x], down.values[y], row[above], row[flat]]) } };
        },
        height: (choice) => 150 + Math.min(600, varied[choice[1]].values.length * 30),
        option: (choice, width) => {
            const { across, down, all } = cells(choice);
            const most = Math.max(...all.map(({ row }) => row[above]), 1);
            const isRoomy = all.length <= 160 && width / across.values.length > 46;
            const sign = ({ x, y, row }) => `${x === across.recommended && y === down.recommended ? "★ " : row[flat] ? "● " : ""}`;
            return { ...report.base(), grid: { left: 8, right: 16, top: 10, bottom: 84, containLabel: true },
                tooltip: report.tooltip({ trigger: "item", formatter: ({ dataIndex }) => {
                    const { row } = all[dataIndex];
                    return [...axes.map((axis) => `${axis.name} ${row[axis.at]}`), `${digits(row[above])}% above the best`].join("\n");
                } }),
                xAxis: report.names(across.values, { name: across.name, nameLocation: "middle", nameGap: 26, nameTextStyle: text(), axisLabel: dim() }),
                yAxis: report.names(down.values, { name: down.name, nameTextStyle: text(), axisLabel: dim(), inverse: true, nameLocation: "start" }),
                visualMap: { min: 0, max: most, calculable: true, orient: "horizontal", left: "center", bottom: 0, itemWidth: 14,
                    text: [`${digits(most)}%`, "best"], textStyle: text(), inRange: { color: shades }, formatter: (x) => `${digits(x)}%` },
                series: [{ type: "heatmap", data: all.map(({ x, y, row }) => ({ value: [x, y, row[above]], label: { color: row[above] > most / 3 ? "#fff" : "#000" } })),
                    label: { show: true, fontSize: 11,
                        formatter: ({ dataIndex }) => `${sign(all[dataIndex])}${isRoomy ? digits(all[dataIndex].row[above]) : ""}` },
                    itemStyle: { borderColor: css("bg"), borderWidth: 1 } }] };
        },
    };

    function byValue(axis) {
        return axis.values.map((value) => {
            const all = study.rows.filter((row) => row[axis.at] === value && row[above] !== null).map((row) => row[above]);
            const mean = all.reduce((sum, x) => sum + x, 0) / all.length;
            return all.length > 0 ? [value, mean, Math.min(...all), Math.max(...all)] : [value, null, null, null];
        });
    }

    const option = {
        missing: map.missing,
        choices: [axisChoice("Option", 0)],
        tables: ([a]) => ({ [varied[a].name]: { columns: [varied[a].name, "mean_above_percent", "least", "greatest"], rows: byValue(varied[a]) } }),
        option: ([a]) => {
            const rows = byValue(varied[a]);
            const line = (name, i, type) => ({ name, type: "line", symbol: ["circle", "rect", "triangle"][i - 1], symbolSize: 7,
                lineStyle: { type }, data: rows.map((row) => row[i]) });
            return { ...report.base(), legend: report.legend(["mean", "least", "greatest"]),
                grid: { left: 48, right: 18, top: 34, bottom: 44 }, tooltip: report.tooltip({ valueFormatter: digits }),
                xAxis: report.names(varied[a].values, { name: varied[a].name, nameLocation: "middle", nameGap: 26, nameTextStyle: text(), axisLabel: dim() }),
                yAxis: report.valueAxis({ name: "% above the best", nameGap: 34, min: 0 }),
                series: [line("mean", 1, "solid"), line("least", 2, "dashed"), line("greatest", 3, "dotted")] };
        },
    };

    const numbers = study.columns.slice(axes.length).filter((name) => !["rank", "flat"].includes(name));
    const points = {
        choices: [{ label: "Across", options: () => numbers, first: () => numbers.indexOf("switches") },
            { label: "Up", options: () => numbers, first: () => numbers.indexOf("objective") }],
        tables: () => ({ settings }),
        option: ([x, y]) => ({ ...report.base(), legend: report.legend(["within 1% of the best", "others"]),
            grid: { left: 8, right: 18, top: 56, bottom: 30, containLabel: true },
            tooltip: report.tooltip({ trigger: "item", formatter: ({ data }) => [...axes.map((axis) => `${axis.name} ${data[2][axis.at]}`),
                `${numbers[x]} ${digits(data[0])}`, `${numbers[y]} ${digits(data[1])}`].join("\n") }),
            xAxis: report.valueAxis({ name: numbers[x], scale: true }),
            yAxis: report.valueAxis({ name: numbers[y], nameLocation: "end", nameGap: 12, scale: true, nameTextStyle: { ...text(), align: "left" } }),
            series: [true, false].map((isFlat, i) => ({ name: isFlat ? "within 1% of the best" : "others", type: "scatter",
                symbol: isFlat ? "diamond" : "circle", symbolSize: isFlat ? 10 : 7, color: css(isFlat ? "c1" : "c0"),
                z: isFlat ? 3 : 2, data: study.rows.filter((row) => row[flat] === isFlat)
                    .map((row) => [row[column(numbers[x])], row[column(numbers[y])], row]) })) }),
    };

    report.show({ "tune-map": map, "tune-option": option, "tune-settings": points });
})();
