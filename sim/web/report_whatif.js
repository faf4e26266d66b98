// SPDX-License-Identifier: Apache-2.0
//
// The figures of `whatif`'s page: cases beside each other and against their SLO, and the trials of the searches.

"use strict";

(() => {
    const { css, digits } = report;
    const { cases } = report.data("result");
    const limits = report.data("limits");
    const percent = (frac) => (frac === null ? null : Number((100 * frac).toPrecision(6)));
    const barHeight = (columns) => 80 + cases.length * Math.max(26, columns * 15);

    // Bars of the first number, and the second as a mark that they should reach, or stay below.
    function against({ columns, rows }, unit) {
        const option = report.bars({ columns: columns.slice(0, 2), rows }, unit);
        option.legend = report.legend(columns.slice(1));
        option.tooltip.formatter = ([{ axisValue }]) => [axisValue,
            ...rows.find(([name]) => name === axisValue).slice(1).map((x, i) => `${columns[i + 1]} ${digits(x)}`)].join("\n");
        option.series.push({ name: columns[2], type: "scatter", symbol: "rect", symbolSize: [4, 24], color: css("c1"), z: 3,
            data: rows.filter((row) => row[2] !== null).map(([name, , mark]) => [mark, name]) });
        return option;
    }

    const slo = {
        missing: () => (cases.every((c) => c.slo_met_frac === null) ? "No case has an SLO." : null),
        tables: () => ({ "within the SLO": { columns: ["case", "within_slo_percent", "asked_percent", "slo"],
            rows: cases.map((c) => [c.name, percent(c.slo_met_frac), c.slo_met_frac === null ? null : percent(c.scenario.slo_attained_frac),
                c.meets_slo === null ? null : c.meets_slo ? "met" : "missed"]) } }),
        height: () => barHeight(1),
        option: () => {
            const { rows } = Object.values(slo.tables())[0];
            const option = against({ columns: ["case", "within SLO", "asked for"], rows: rows.map((row) => row.slice(0, 3)) }, "% of requests");
            option.xAxis.max = 100;
            return option;
        },
    };

    const metrics = [["Time to first token", "ttft_s", "s", 1], ["Time per output token", "tpot_s", "ms", 1000],
        ["End to end", "e2e_s", "s", 1]];
    const latency = {
        choices: [{ label: "Of", options: () => metrics.map((m) => m[0]) }],
        tables: ([m]) => {
            const [, key, unit, scale] = metrics[m];
            const scaled = (s) => (s === null ? null : scale * s);
            return { [`latency, ${key}`]: { columns: ["case", `p99, ${unit}`, `limit, ${unit}`],
                rows: cases.map((c, i) => [c.name, c.run.completed > 0 ? scaled(c.run[key].p99) : null, scaled(limits[i][key])]) } };
        },
        height: () => barHeight(1),
        option: (choice) => {
            const [name, , unit] = metrics[choice[0]];
            return against(Object.values(latency.tables(choice))[0], `${name}, ${unit}`);
        },
    };

    const throughput = {
        tables: () => ({ throughput: { columns: ["case", "total_tok_s", "output_tok_s"],
            rows: cases.map((c) => [c.name, c.run.total_tok_s, c.run.output_tok_s]) } }),
        height: () => barHeight(2),
        option: () => report.bars(throughput.tables().throughput, "tokens a second"),
    };

    const costs = [["GPUs", "gpus"], ["GPU-hours", "gpu_hours"], ["Price per million output tokens", "price_per_m_output_tokens"],
        ["Price per million tokens", "price_per_m_total_tokens"]].filter(([, key]) => cases.some((c) => c[key] !== null));
    const cost = {
        choices: [{ label: "Of", options: () => costs.map(([name]) => name), first: () => costs.length - 1 }],
        tables: () => ({ cost: { columns: ["case", ...costs.map(([, key]) => key)],
            rows: cases.map((c) => [c.name, ...costs.map(([, key]) => c[key])]) } }),
        height: () => barHeight(1),
        option: ([k]) => report.bars({ columns: ["case", costs[k][0]], rows: cases.map((c) => [c.name, c[costs[k][1]]]) }, costs[k][0]),
    };

    // A search: its answer's key in a case, what a trial tries, and that as what the axis has.
    const ranks = ({ gpus, scenario }) => gpus / (scenario.replicas + scenario.prefill_replicas);
    const searches = {
        "max-rate": { key: "max_rate", at: "rate", unit: "times the recorded rate", scale: () => 1 },
        "min-gpus": { key: "min_gpus", at: "groups", unit: "GPUs", scale: ranks },
    };

    function trialTable({ key, at, unit, scale }) {
        const gpus = unit === "GPUs";
        return { columns: ["case", "trial", at, ...(gpus ? ["prefill_groups", "gpus"] : []), "within_slo_percent", "slo", "edge_from", "edge_to"],
            rows: cases.flatMap((c) => c[key].trials.map((t, i) => [c.name, i + 1, t[at],
                ...(gpus ? [t.prefill_groups ?? null, t.groups * scale(c)] : []),
                percent(t.slo_met_frac), t.meets_slo ? "met" : "missed", ...t.edge])) };
    }

    // A row for each case, or for each trial of one: its marks, and where the edge lies after them.
    function searchRows({ key, at, scale }, choice) {
        const mark = (c, t, i) => ({ x: t[at] * scale(c), met: t.meets_slo, text: [`${c.name}, trial ${i + 1}`,
            `${at} ${t[at]}${t.prefill_groups ? `, ${t.prefill_groups} of them for prompts` : ""}`,
            `${digits(percent(t.slo_met_frac))}% within the SLO: ${t.meets_slo ? "met" : "missed"}`].join("\n") });
        const row = (name, c, trials, marks) => ({ name, marks, edge: trials.at(-1).edge.map((x) => x * scale(c)) });
        if (choice === 0) return cases.map((c) => row(c.name, c, c[key].trials, c[key].trials.map((t, i) => mark(c, t, i))));
        const c = cases[choice - 1];
        return c[key].trials.map((t, i) => row(`trial ${i + 1}`, c, [t], [mark(c, t, i)]));
    }

    function searchOption(search, choice) {
        const rows = searchRows(search, choice);
        const bar = { type: "bar", stack: "edge", barWidth: 10, silent: true, tooltip: { show: false } };
        const marks = (name, met, symbol, color) => ({ name, type: "scatter", symbol, symbolSize: 11, color, z: 3,
            data: rows.flatMap((row) => row.marks.filter((m) => m.met === met).map((m) => ({ value: [m.x, row.name], text: m.text }))) });
        return { ...report.base(), legend: report.legend(["met", "missed", "edge lies in"]),
            grid: { left: 4, right: 18, top: 34, bottom: 24, containLabel: true },
            tooltip: report.tooltip({ trigger: "item", formatter: ({ data }) => data.text }),
            yAxis: report.names(rows.map((row) => row.name), { inverse: true }),
            xAxis: report.valueAxis({ name: search.unit, min: 0 }),
            series: [{ ...bar, name: "below", itemStyle: { opacity: 0 }, data: rows.map((row) => row.edge[0]) },
                { ...bar, name: "edge lies in", color: css("c3"), itemStyle: { opacity: 0.45 }, data: rows.map((row) => row.edge[1] - row.edge[0]) },
                marks("met", true, "circle", css("c0")), marks("missed", false, "diamond", css("c1"))] };
    }

    const trials = (name) => ({
        choices: [{ label: "Case", options: () => ["all", ...cases.map((c) => c.name)] }],
        tables: () => ({ [`trials of ${name}`]: trialTable(searches[name]) }),
        height: ([choice]) => 90 + 26 * (choice === 0 ? cases.length : cases[choice - 1][searches[name].key].trials.length),
        option: ([choice]) => searchOption(searches[name], choice),
    });

    report.show({ slo, latency, throughput, cost, "max-rate": trials("max-rate"), "min-gpus": trials("min-gpus") });
})();
