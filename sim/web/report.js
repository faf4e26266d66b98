// SPDX-License-Identifier: Apache-2.0
//
// The figures of a report. Each has a kind, which says what tables its data are and how ECharts draws them; every
// table can be read and saved as CSV, with the chart library or without. A page's own script has the kinds.

"use strict";

const report = (() => {
    const drawn = [];

    function el(tag, attributes = {}, ...children) {
        const element = document.createElement(tag);
        for (const [key, value] of Object.entries(attributes)) {
            if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
            else element.setAttribute(key, value);
        }
        element.append(...children);
        return element;
    }

    function data(id) {
        const script = document.getElementById(id);
        return script === null ? null : JSON.parse(script.textContent);
    }

    const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const colours = () => [0, 1, 2, 3, 4, 5].map((i) => css(`c${i}`));
    const lines = ["solid", "dashed", "dotted"];

    // Three digits, as the command's tables have them.
    function digits(x) {
        if (typeof x !== "number") return x ?? "-";
        if (Math.abs(x) >= 1000) return Math.round(x).toLocaleString("en-US");
        return String(Number(x.toPrecision(3)));
    }

    const text = () => ({ color: css("fg"), fontSize: 12 });
    const dim = () => ({ color: css("dim"), fontSize: 11, hideOverlap: true });

    const valueAxis = (more = {}) => ({ type: "value", axisLabel: dim(), nameTextStyle: text(),
        nameLocation: "middle", nameGap: 26, splitLine: { lineStyle: { color: css("line") } }, ...more });
    const names = (data, more = {}) => ({ type: "category", data, axisTick: { show: false },
        axisLabel: { ...text(), width: 120, overflow: "truncate" },
        axisLine: { lineStyle: { color: css("dim") } }, ...more });
    const tooltip = (more = {}) => ({ trigger: "axis", confine: true, renderMode: "richText",
        backgroundColor: css("tile"), borderColor: css("line"), textStyle: text(), ...more });
    const legend = (data) => ({ data, top: 0, left: 0, itemWidth: 16, itemHeight: 10, textStyle: text(), type: "scroll" });

    // What most charts begin with.
    const base = () => ({ animation: false, useUTC: true, color: colours(),
        textStyle: { fontFamily: "system-ui, sans-serif" }, tooltip: tooltip() });

    // A bar per row and column behind the first.
    const bars = ({ columns, rows }, unit, more = {}) => ({ ...base(),
        aria: { enabled: true, label: { enabled: false }, decal: { show: true } },
        legend: legend(columns.slice(1)), grid: { left: 4, right: 18, top: 30, bottom: 24, containLabel: true },
        tooltip: tooltip({ axisPointer: { type: "shadow" }, valueFormatter: digits }),
        yAxis: names(rows.map((row) => row[0]), { inverse: true }),
        xAxis: valueAxis({ name: unit, splitNumber: 4 }),
        series: columns.slice(1).map((name, i) => ({ name, type: "bar", barMaxWidth: 18,
            data: rows.map((row) => row[i + 1]), ...more })) });

    const quoted = (cell) => (/[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell));
    const csv = ({ columns, rows }) =>
        [columns, ...rows].map((row) => row.map((cell) => quoted(cell ?? "")).join(",")).join("\n") + "\n";

    function save(name, table) {
        const href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
        const link = el("a", { href, download: `${name}.csv` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(href), 1000);
    }

    function htmlTable(name, { columns, rows }) {
        const row = (tag, cells) => el("tr", {}, ...cells.map((cell) => el(tag, {}, cell === null ? "" : String(cell))));
        return el("div", { class: "scroll number", tabindex: 0, role: "region", "aria-label": name },
            el("table", {}, el("thead", {}, row("th", columns)),
                el("tbody", {}, ...rows.map((cells) => row("td", cells)))));
    }

    // Filled when it is opened: it may have a thousand rows.
    function folded(name, table) {
        const box = el("details", {}, el("summary", {}, `Table: ${name}, ${table.rows.length} rows`));
        box.addEventListener("toggle", () => box.children.length === 1 && box.append(htmlTable(name, table)));
        return box;
    }

    // The tables of a figure's present choice.
    function showTables(place, kind, choice) {
        const tables = Object.entries(kind.tables(choice));
        place.replaceChildren(
            el("p", { class: "tools" }, ...tables.map(([name, table]) =>
                el("button", { type: "button", onclick: () => save(name, table) }, `CSV: ${name}`))),
            ...tables.map(([name, table]) => folded(name, table)));
    }

    function zoom(view, key) {
        const { start, end } = view.getOption().dataZoom[0];
        const width = end - start;
        const [from, to] = { "+": [start + width / 4, end - width / 4], "=": [start + width / 4, end - width / 4],
            "-": [start - width / 2, end + width / 2], ArrowLeft: [start - width / 4, end - width / 4],
            ArrowRight: [start + width / 4, end + width / 4] }[key] ?? [];
        if (from === undefined) return false;
        const shift = from < 0 ? -from : to > 100 ? 100 - to : 0;
        view.dispatchAction({ type: "dataZoom", start: Math.max(0, from + shift), end: Math.min(100, to + shift) });
        return true;
    }

    function plot(figure, kind, choice) {
        const box = el("div", { class: "plot", role: "img", tabindex: 0,
            "aria-label": `${figure.querySelector("b").textContent} The tables below hold the same data.` });
        figure.append(box);
        const size = () => { box.style.height = `${kind.height?.(choice()) ?? 300}px`; };
        size();
        const view = globalThis.echarts.init(box, null, { renderer: "canvas" });
        const draw = () => { size(); view.resize(); view.setOption(kind.option(choice(), box.clientWidth), { notMerge: true }); };
        box.addEventListener("keydown", (event) => {
            if (view.getOption().dataZoom?.length && zoom(view, event.key)) event.preventDefault();
        });
        drawn.push({ view, draw });
        return draw;
    }

    function select(label, options, onchange) {
        return el("label", {}, `${label} `, el("select", { onchange: (event) => onchange(event.target.value) },
            ...options.map((name, i) => el("option", { value: i }, name))));
    }

    function build(figure, kind) {
        const fault = kind.missing?.();
        if (fault) {
            figure.append(el("p", {}, fault));
            return;
        }
        const choice = (kind.choices ?? []).map((c) => c.first?.() ?? 0);
        const place = el("div");
        const show = () => { draw?.(); showTables(place, kind, choice); };
        if (choice.length > 0) {
            const selects = kind.choices.map(({ label, options }, i) => select(label, options(),
                (value) => { choice[i] = Number(value); show(); }));
            selects.forEach((s, i) => { s.querySelector("select").value = choice[i]; });
            figure.append(el("p", { class: "tools" }, ...selects));
        }
        const draw = globalThis.echarts ? plot(figure, kind, () => choice) : null;
        figure.append(place);
        show();
    }

    // Tables that the page itself has can be saved, too.
    function addSaves() {
        for (const box of document.querySelectorAll("body > .number .scroll")) {
            const cells = (row, tag) => [...row.querySelectorAll(tag)].map((cell) => cell.textContent);
            const table = { columns: cells(box, "th"), rows: [...box.querySelectorAll("tbody tr")].map((r) => cells(r, "td")) };
            const name = box.getAttribute("aria-label");
            box.after(el("p", { class: "tools" }, el("button", { type: "button", onclick: () => save(name, table) }, `CSV: ${name}`)));
        }
    }

    function show(kinds) {
        for (const figure of document.querySelectorAll("figure[data-chart]")) build(figure, kinds[figure.dataset.chart]);
        addSaves();
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((chart) => chart.draw()));
        addEventListener("resize", () => drawn.forEach((chart) => chart.draw()));
    }

    return { data, css, colours, lines, digits, text, dim, valueAxis, names, tooltip, legend, base, bars, show };
})();
