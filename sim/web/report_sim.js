// SPDX-License-Identifier: Apache-2.0
//
// The figures of `sim`'s page: policies beside each other, and the course of each run.

"use strict";

(() => {
    const { css, digits, text, dim } = report;
    const { runs } = report.data("result");
    const distributions = report.data("distributions");
    const courses = report.data("courses");

    const metrics = [["Time to first token", "ttft_s", "s", 1], ["Time per output token", "tpot_s", "ms", 1000],
        ["End to end", "e2e_s", "s", 1], ["Time in the queue", "queued_s", "s", 1]];
    const metricChoice = { label: "Of", options: () => metrics.map((m) => m[0]) };
    const barHeight = (rows, columns) => 80 + rows * Math.max(24, columns * 15);

    const ofRuns = (columns, row) => ({ columns: ["policy", ...columns], rows: runs.map((run) => [run.policy, ...row(run)]) });

    const throughput = {
        tables: () => ({ throughput: ofRuns(["total_tok_s", "output_tok_s"], (r) => [r.total_tok_s, r.output_tok_s]) }),
        height: () => barHeight(runs.length, 2),
        option: () => report.bars(throughput.tables().throughput, "tokens a second"),
    };

    const latency = {
        choices: [metricChoice],
        tables: ([m]) => ({ [`latency, ${metrics[m][1]}`]: ofRuns(["mean", "p50", "p90", "p99"].map((q) => `${q}, ${metrics[m][2]}`),
            (r) => ["mean", "p50", "p90", "p99"].map((q) => r[metrics[m][1]][q] * metrics[m][3])) }),
        height: () => barHeight(runs.length, 4),
        option: (choice) => report.bars(Object.values(latency.tables(choice))[0], `${metrics[choice[0]][0]}, ${metrics[choice[0]][2]}`),
    };

    const distribution = {
        choices: [metricChoice],
        tables: ([m]) => ({ [`distribution, ${metrics[m][1]}`]: { columns: ["policy", "share_percent", metrics[m][2]],
            rows: runs.flatMap((run, i) => distributions.runs[i][metrics[m][1]].map((s, k) =>
                [run.policy, Number((100 * distributions.share[k]).toPrecision(4)), Number((s * metrics[m][3]).toPrecision(5))])) } }),
        option: ([m]) => ({ ...report.base(), legend: report.legend(runs.map((r) => r.policy)),
            grid: { left: 48, right: 18, top: 34, bottom: 44 },
            tooltip: report.tooltip({ trigger: "item", formatter: ({ seriesName, data: [x, y] }) =>
                `${seriesName}\n${y}% within ${digits(x)} ${metrics[m][2]}` }),
            xAxis: report.valueAxis({ type: "log", name: `${metrics[m][0]}, ${metrics[m][2]}`, minorSplitLine: { show: false } }),
            yAxis: report.valueAxis({ max: 100, name: "% of requests", nameGap: 34 }),
            series: runs.map((run, i) => ({ name: run.policy, type: "line", showSymbol: false, symbolSize: 7, triggerLineEvent: true,
                lineStyle: { width: 2, type: report.lines[Math.floor(i / 2) % 3] },
                data: distributions.runs[i][metrics[m][1]].map((s, k) => [s * metrics[m][3], Number((100 * distributions.share[k]).toPrecision(4))])
                    .filter(([x]) => x > 0) })) }),
    };

    const layouts = Object.keys(runs[0].layout_time_frac);
    const layoutTime = {
        tables: () => ({ "time in layout, percent": ofRuns(layouts, (r) => layouts.map((l) => 100 * r.layout_time_frac[l])) }),
        height: () => barHeight(runs.length, 1),
        option: () => {
            const option = report.bars(Object.values(layoutTime.tables())[0], "% of busy time", { stack: "all" });
            option.xAxis.max = 100;
            return option;
        },
    };

    const regret = {
        missing: () => (runs[0].regret_frac === undefined ? "None: neither best-fixed nor an oracle ran." : null),
        tables: () => ({ regret: ofRuns(["regret_percent"], (r) => [r.regret_frac === null ? null : 100 * r.regret_frac]) }),
        height: () => barHeight(runs.length, 1),
        option: () => report.bars(regret.tables().regret, "% longer mean E2E"),
    };

    function clock(ms) {
        const s = ms / 1000;
        const two = (x) => String(Math.floor(x)).padStart(2, "0");
        if (s < 60) return `${Number(s.toFixed(3))} s`;
        return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two((s / 60) % 60)}:${two(s % 60)}`;
    }

    const gap = 38;
    const panels = [["layout, % of time", 80], ["exposed switch time, ms", 80], ["queue, requests", 90],
        ["batch, requests", 100], ["context, tokens", 90], ["KV, % of pages", 90]];
    const tops = panels.map((_, i) => 66 + panels.slice(0, i).reduce((sum, [, height]) => sum + height + gap, 0));

    // Of a bin's costliest switch, or of a wish that memory refused.
    function why(event, isRefusal) {
        const [, , from, to, exposed, lead, reason, n] = event;
        const led = lead === null ? reason : isRefusal ? `led by ${digits(lead)}%, but ${reason}` : `it led by ${digits(lead)}%`;
        return isRefusal ? `refused ${from} to ${to}: ${led}${n > 1 ? `; of ${n} the one that led by most` : ""}`
            : `${from} to ${to}: ${digits(exposed)} ms exposed, ${led}${n > 1 ? `; the costliest of ${n}` : ""}`;
    }

    // A row's number by the column's name, over all bins, closed at the end of the last.
    function column(course, name) {
        const at = course.columns.indexOf(name);
        const points = course.rows.map((row) => [row[0] * 1000, row[at]]);
        return [...points, [(course.rows.at(-1)[0] + course.bin_s) * 1000, points.at(-1)[1]]];
    }

    const flat = { type: "line", symbol: "none", step: "end", silent: true };

    function ranged(course, panel, quantity, name, colour) {
        const low = column(course, `${quantity}_min`);
        const high = column(course, `${quantity}_max`);
        const at = { ...flat, xAxisIndex: panel, yAxisIndex: panel, color: colour };
        const band = { ...at, stack: `${quantity} range`, stackStrategy: "all", lineStyle: { opacity: 0 }, tooltip: { show: false } };
        return [{ ...band, name: `${name} least`, data: low },
            { ...band, name: `${name} most`, areaStyle: { opacity: 0.28 },
                data: high.map(([t, y], i) => [t, y === null ? null : y - low[i][1]]) },
            { ...at, name, lineStyle: { width: 1.5 }, data: column(course, `${quantity}_mean`) }];
    }

    // A layout's share of each bin, on top of those before it: [from, to, low, high].
    function boxes(course, layout) {
        return course.rows.map((row) => {
            const low = row.slice(1, 1 + layout).reduce((sum, share) => sum + share, 0);
            return [row[0] * 1000, (row[0] + course.bin_s) * 1000, low, low + row[1 + layout]];
        }).filter(([, , low, high]) => high > low);
    }

    function drawBox(params, api) {
        const [left, top] = api.coord([api.value(0), api.value(3)]);
        const [right, bottom] = api.coord([api.value(1), api.value(2)]);
        const x = Math.round(left); // whole pixels, or seams show between bins
        return { type: "rect", shape: { x, y: top, width: Math.max(1, Math.round(right) - x), height: bottom - top },
            style: { fill: api.visual("color") } };
    }

    function courseSeries(course) {
        const colours = report.colours();
        const shares = layouts.map((name, i) => ({ name, type: "custom", silent: true, color: colours[i % 6], clip: true,
            encode: { x: [0, 1], y: [2, 3] }, renderItem: drawBox, data: boxes(course, i) }));
        const exposed = { ...flat, name: "exposed", xAxisIndex: 1, yAxisIndex: 1, color: css("dim"), areaStyle: { opacity: 0.5 },
            lineStyle: { width: 1 }, data: column(course, "exposed_ms") };
        const most = Math.max(...course.switches.rows.map((event) => event[4]), 1e-9);
        const marks = (name, events, symbol, colour) => ({ name, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, symbol, color: colour,
            symbolSize: ([, exposed]) => 4 + 6 * Math.sqrt(exposed / most), data: events.rows.map((event) => [event[0] * 1000, event[4]]) });
        return [...shares, exposed, marks("costliest switch", course.switches, "triangle", colours[1]),
            marks("refused", course.refusals, "diamond", colours[3]),
            ...ranged(course, 2, "queue", "queue", colours[0]), ...ranged(course, 3, "decode", "decode", colours[2]),
            ...ranged(course, 3, "prefill", "prefill", colours[1]), ...ranged(course, 4, "ctx_tokens", "context", colours[0]),
            ...ranged(course, 5, "kv_percent", "KV", colours[3])];
    }

    const inBin = (events, bin, bin_s) => events.rows.filter((event) => Math.floor(event[0] / bin_s + 1e-9) === bin);

    function describe(course, ms) {
        const bin = Math.min(Math.floor(ms / 1000 / course.bin_s + 1e-9), course.rows.length - 1);
        const row = Object.fromEntries(course.columns.map((name, i) => [name, course.rows[bin][i]]));
        const range = (q) => (row[`${q}_mean`] === null ? "-" : `${digits(row[`${q}_mean`])} (${digits(row[`${q}_min`])} to ${digits(row[`${q}_max`])})`);
        return [`${clock(row.time_s * 1000)}, for ${clock(course.bin_s * 1000)}`,
            layouts.filter((l) => row[`${l}_percent`] > 0).map((l) => `${l} ${digits(row[`${l}_percent`])}%`).join(", ") || "idle",
            `queue ${range("queue")}`, `decode ${range("decode")}, prefill ${range("prefill")}`,
            `context ${range("ctx_tokens")}`, `KV ${range("kv_percent")} %`,
            `${row.switches} switches, ${digits(row.exposed_ms)} ms exposed`,
            ...inBin(course.switches, bin, course.bin_s).map((e) => why(e, false)),
            ...inBin(course.refusals, bin, course.bin_s).map((e) => why(e, true))].join("\n");
    }

    function courseOption(course) {
        const end = (course.rows.at(-1)[0] + course.bin_s) * 1000;
        const last = panels.length - 1;
        const all = panels.map((_, i) => i);
        return { ...report.base(), legend: report.legend([...layouts, "costliest switch", "refused", "decode", "prefill"]),
            axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: css("dim") } },
            title: panels.map(([title], i) => ({ text: title, left: 4, top: tops[i] - 27, textStyle: { ...text(), fontWeight: "normal" } })),
            grid: panels.map(([, height], i) => ({ left: 56, right: 16, top: tops[i], height })),
            xAxis: panels.map((_, i) => ({ type: "time", gridIndex: i, min: 0, max: end, axisLine: { lineStyle: { color: css("dim") } },
                axisTick: { show: i === last }, axisPointer: { label: { show: false } }, splitLine: { show: false },
                axisLabel: { ...dim(), show: i === last, formatter: clock } })),
            yAxis: panels.map((_, i) => report.valueAxis({ gridIndex: i, splitNumber: 2, min: 0, max: i === 0 ? 100 : null,
                axisLabel: { ...dim(), formatter: (x) => (x >= 1e6 ? `${x / 1e6}M` : x >= 1e4 ? `${x / 1e3}k` : x) } })),
            dataZoom: [{ type: "inside", xAxisIndex: all, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
                { type: "slider", xAxisIndex: all, filterMode: "none", bottom: 4, height: 22, labelFormatter: clock,
                    textStyle: dim(), borderColor: css("line") }],
            tooltip: report.tooltip({ formatter: (points) => describe(course, points[0].axisValue) }),
            series: courseSeries(course) };
    }

    const course = {
        missing: () => (courses.every((c) => c.rows.length === 0) ? "No step ran." : null),
        choices: [{ label: "Policy", options: () => courses.map((c) => c.policy),
            first: () => Math.max(0, courses.findIndex((c) => c.switches.rows.length > 0)) }],
        tables: ([i]) => ({ "over time": courses[i], switches: courses[i].switches, refusals: courses[i].refusals }),
        height: () => tops.at(-1) + panels.at(-1)[1] + 62,
        option: ([i]) => courseOption(courses[i]),
    };

    report.show({ throughput, latency, distribution, "layout-time": layoutTime, regret, course });
})();
