// SPDX-License-Identifier: Apache-2.0
//
// Charts of results, by ECharts where the server has it: drawn on canvas, redrawn when the theme or the
// width changes. A row is {label, result}: one policy of one run.

import { el } from "/assets/dom.js";

const drawn = [];
let library = null;

// Whether there will be charts.
export function load(has) {
    library ??= !has ? Promise.resolve(false) : new Promise((resolve) => {
        document.head.append(el("script", {
            src: "/assets/echarts.min.js", onload: () => resolve(true), onerror: () => resolve(false),
        }));
    });
    return library;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function base(rows, series, value) {
    const text = { color: colour("fg"), fontSize: 12 };
    const names = { type: "category", inverse: true, data: rows.map((row) => row.label),
        axisLabel: { ...text, width: 130, overflow: "truncate" }, axisTick: { show: false },
        axisLine: { lineStyle: { color: colour("dim") } } };
    const values = { type: "value", axisLabel: { ...text, color: colour("dim"), hideOverlap: true },
        splitLine: { lineStyle: { color: colour("line") } }, splitNumber: 4, ...value };
    return {
        animation: false,
        color: [0, 1, 2, 3, 4, 5].map((i) => colour(`c${i}`)),
        textStyle: { fontFamily: "system-ui, sans-serif" },
        aria: { enabled: true },
        legend: { show: series.length > 1, top: 0, left: 0, itemWidth: 14, itemHeight: 10, textStyle: text },
        grid: { left: 4, right: 18, top: series.length > 1 ? 30 : 8, bottom: 4, containLabel: true },
        tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, renderMode: "richText",
            backgroundColor: colour("tile"), borderColor: colour("line"), textStyle: text,
            valueFormatter: (x) => Number(x.toPrecision(3)).toLocaleString("en-US") },
        xAxis: values, yAxis: names, series,
    };
}

function quantiles(rows, key, scale) {
    return ["p50", "p99"].map((q) => ({ name: q, type: "bar", barMaxWidth: 14,
        data: rows.map((row) => row.result[key][q] * scale) }));
}

function shares(rows) {
    const layouts = [...new Set(rows.flatMap((row) => Object.keys(row.result.layout_time_frac)))];
    return layouts.map((layout) => ({ name: layout, type: "bar", stack: "share", barMaxWidth: 22,
        data: rows.map((row) => 100 * (row.result.layout_time_frac[layout] ?? 0)) }));
}

const kinds = [
    ["Time to first token, s", (rows) => base(rows, quantiles(rows, "ttft_s", 1))],
    ["Time per output token, ms", (rows) => base(rows, quantiles(rows, "tpot_s", 1000))],
    ["End to end, s", (rows) => base(rows, quantiles(rows, "e2e_s", 1))],
    ["Tokens a second, input and output", (rows) => base(rows, [
        { name: "tok/s", type: "bar", barMaxWidth: 22, data: rows.map((row) => row.result.total_tok_s) }])],
    ["Share of busy time in each layout, %", (rows) => base(rows, shares(rows), { max: 100, interval: 25 })],
];

function redraw() {
    for (const chart of drawn) chart.view.setOption(chart.option(), { notMerge: true });
}

// Into `place`, which is emptied; says so where the server has no charts.
export async function draw(place, rows, has) {
    place.replaceChildren();
    if (!(await load(has))) {
        place.append(el("p", { class: "dim" }, "This build has no charts; \"make charts\" adds them. The tables hold the same numbers."));
        return;
    }
    for (const [title, option] of kinds) {
        const box = el("div", { class: "chart", role: "img", "aria-label": title });
        place.append(el("figure", {}, el("figcaption", {}, title), box));
        box.style.height = `${Math.max(200, 60 + rows.length * 34)}px`;
        const view = globalThis.echarts.init(box, null, { renderer: "canvas" });
        view.setOption(option(rows));
        drawn.push({ view, option: () => option(rows) });
    }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => drawn.forEach((chart) => chart.view.resize()));
