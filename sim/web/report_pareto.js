// SPDX-License-Identifier: Apache-2.0
//
// The figures of `pareto`'s page: frontiers, their ratio, what each choice bought, HOP-B's pipelines.

"use strict";

(() => {
    const { css, digits, text } = report;
    const result = report.data("result");
    const frontiers = report.data("frontiers");
    const pipelines = report.data("pipelines");
    const columns = ["tok_s_user", "tok_s_gpu", "mapping", "batch", "gpus", "ttl_ms"];
    const symbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect"];

    const frontier = {
        choices: [{ label: "Context", options: () => frontiers.map((f) => `${f.context_tokens.toLocaleString("en-US")} tokens`) },
            { label: "Axes", options: () => ["logarithmic", "linear"] }],
        missing: () => (frontiers.every((f) => f.sets[0].rows.length === 0) ? "No mapping fits." : null),
        tables: ([f]) => ({ frontiers: { columns: ["set", ...columns],
            rows: frontiers[f].sets.flatMap((set) => set.rows.map((row) => [set.name, ...row])) } }),
        height: () => 440,
        option: ([f, axes]) => {
            const type = axes === 0 ? "log" : "value";
            return { ...report.base(), legend: report.legend(frontiers[f].sets.map((set) => set.name)),
                grid: { left: 56, right: 18, top: 40, bottom: 76 },
                tooltip: report.tooltip({ trigger: "item", formatter: ({ seriesName, data: [user, gpu, mapping, batch, gpus, ttl] }) =>
                    [seriesName, mapping, `batch ${batch} on ${gpus} GPUs`, `${digits(user)} tok/s/user, TTL ${digits(ttl)} ms`,
                        `${digits(gpu)} tok/s/GPU`].join("\n") }),
                xAxis: report.valueAxis({ type, name: "tokens/s/user", scale: true }),
                yAxis: report.valueAxis({ type, name: "tokens/s/GPU", nameGap: 40, scale: true }),
                dataZoom: [{ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl" },
                    { type: "slider", filterMode: "none", bottom: 4, height: 20, showDataShadow: false, textStyle: text(), labelFormatter: digits }],
                series: frontiers[f].sets.map((set, i) => ({ name: set.name, type: "line", data: set.rows, step: "end",
                    symbol: symbols[i % symbols.length], symbolSize: i < 2 ? 6 : 5, z: i === 0 ? 5 : 3,
                    lineStyle: { width: i < 2 ? 2.5 : 1.2, type: report.lines[i === 0 ? 0 : 1 + (i % 2)] } })) };
        },
    };

    const curves = [["tokens/s/user at equal tokens/s/GPU", "interactivity", "tok_s_gpu", "tokens/s/GPU"],
        ["tokens/s/GPU at equal TTL", "concurrency", "tok_s_user", "tokens/s/user"]];
    const ratio = {
        choices: [{ label: "Of", options: () => curves.map((curve) => curve[0]) }],
        missing: () => (curves.every(([, name]) => result.ratio[name].curve.length === 0) ? "The two have no range in common." : null),
        tables: ([c]) => ({ [`ratio, ${curves[c][1]}`]: { columns: [curves[c][2], "ratio"], rows: result.ratio[curves[c][1]].curve } }),
        option: ([c]) => ({ ...report.base(), grid: { left: 48, right: 18, top: 16, bottom: 44 },
            tooltip: report.tooltip({ trigger: "axis", formatter: ([{ data: [x, y] }]) => `${digits(y)}x at ${digits(x)} ${curves[c][3]}` }),
            xAxis: report.valueAxis({ type: "log", name: curves[c][3] }),
            yAxis: report.valueAxis({ name: "ratio", nameGap: 34, scale: true }),
            series: [{ type: "line", step: "start", symbol: "none", lineStyle: { width: 2 }, data: result.ratio[curves[c][1]].curve,
                markLine: { silent: true, symbol: "none", lineStyle: { color: css("dim") }, label: { show: false }, data: [{ yAxis: 1 }] } }] }),
    };

    const steps = result.ratio.steps_over_tp_pp;
    const gainSteps = {
        tables: () => ({ choices: { columns: ["choice", "tok_s_user most", "tok_s_user median", "tok_s_gpu most", "tok_s_gpu median"],
            rows: Object.entries(steps).map(([name, g]) =>
                [name, g.interactivity.max, g.interactivity.median, g.concurrency.max, g.concurrency.median]) } }),
        height: () => 330,
        option: () => {
            const option = report.bars(gainSteps.tables().choices, "ratio");
            option.xAxis = report.valueAxis({ type: "log", name: "ratio" });
            return option;
        },
    };

    // Both ways of one mapping, as rows of computing and of the link.
    const rows = ["lockstep: computing", "lockstep: link", "HOP-B: computing", "HOP-B: link"];
    function bars(p) {
        const of = (spans, first) => spans.flatMap(([a, b, c, d], i) => [[first, a, b, i + 1], [first + 1, c, d, i + 1]]);
        return [...of(p.lockstep, 0), ...of(p.hopb, 2)];
    }

    function drawBar(params, api) {
        const [left, middle] = api.coord([api.value(1), api.value(0)]);
        const right = api.coord([api.value(2), api.value(0)])[0];
        const height = api.size([0, 1])[1] * 0.6;
        const shape = { x: left, y: middle - height / 2, width: Math.max(1, right - left), height };
        const isLink = api.value(0) % 2 === 1;
        return { type: "rect", shape,
            style: { fill: css(isLink ? "c1" : "c0"), stroke: css("bg") },
            textContent: { style: { text: shape.width > 16 ? String(api.value(3)) : "", fill: css("bg"), fontSize: 11 } },
            textConfig: { position: "inside" } };
    }

    const pipeline = {
        missing: () => (pipelines.length === 0 ? "No mapping on the frontier has sub-batches." : null),
        choices: [{ label: "Mapping", options: () => pipelines.map((p) => `${p.mapping}, batch ${p.batch}`),
            first: () => Math.floor(pipelines.length / 2) }],
        tables: ([i]) => ({ pipeline: { columns: ["resource", "from_us", "to_us", "sub-batch"],
            rows: bars(pipelines[i]).map(([row, from, to, part]) => [rows[row], from, to, part]) } }),
        height: () => 240,
        option: ([i]) => ({ ...report.base(), grid: { left: 4, right: 18, top: 8, bottom: 36, containLabel: true },
            tooltip: report.tooltip({ trigger: "item", formatter: ({ value: [row, from, to, part] }) =>
                `${rows[row]}, sub-batch ${part}\n${digits(from)} to ${digits(to)} us` }),
            xAxis: report.valueAxis({ name: "us of one layer" }),
            yAxis: report.names(rows, { inverse: true, axisLabel: { ...text(), width: 140 } }),
            series: [{ type: "custom", renderItem: drawBar, encode: { x: [1, 2], y: 0 }, data: bars(pipelines[i]) }] }),
    };

    report.show({ frontier, ratio, "gain-steps": gainSteps, pipeline });
})();
