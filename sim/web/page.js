// SPDX-License-Identifier: Apache-2.0
//
// The pages: a form and the list of runs (/), one run (/runs/ID), several side by side (/compare?ids=).

import * as client from "/assets/client.js";
import { count, el, field, table, time } from "/assets/dom.js";
import { showComparison, showResult } from "/assets/results.js";

const main = document.getElementById("main");
const fixed = ["tp", "cp", "dp", "dop"];

function options(select, groups) {
    select.replaceChildren(...groups.filter(([, items]) => items.length > 0).map(([label, items]) =>
        el("optgroup", { label }, items.map(([value, text]) => el("option", { value }, text)))));
}

async function fillTraces(select, samples, wanted) {
    const ready = (await client.traces()).filter((trace) => trace.state === "done");
    const as = (list) => list.map((trace) => [trace.id, `${trace.name} (${count(trace.bytes)} bytes)`]);
    options(select, [
        ["Samples", samples.map((sample) => [`sample:${sample.name}`, sample.what])],
        ["Uploaded", as(ready.filter((trace) => trace.order.upload))],
        ["Drawn", as(ready.filter((trace) => !trace.order.upload))],
    ]);
    if (wanted) select.value = wanted;
}

// Upload a file or draw from a preset: either becomes the form's trace.
function newTrace(known, select) {
    const said = el("p", { role: "status", class: "dim" });
    const file = el("input", { type: "file", id: "file" });
    const preset = el("select", { id: "preset" },
        known.presets.map((p) => el("option", { value: p.name }, `${p.name} (${p.workload})`)));
    const size = el("input", { type: "number", id: "count", min: 1, max: 20000, value: 20 });
    async function settle(what, work) {
        said.className = "dim";
        said.textContent = what;
        try {
            const trace = await work();
            await fillTraces(select, known.samples, trace.id);
            said.textContent = `${trace.name} is ready.`;
        } catch (fault) {
            said.className = "bad";
            said.textContent = fault.message;
        }
    }
    const send = () => file.files[0] && settle("Uploading ...", () => client.upload(file.files[0], known.about.part_bytes,
        (frac) => { said.textContent = frac < 1 ? `Uploading: ${Math.floor(frac * 100)}%` : "Checking ..."; }));
    const draw = () => settle("Drawing ...", async () => client.settleTrace(
        await client.drawTrace({ preset: preset.value, count: Number(size.value) })));
    return el("details", {}, el("summary", {}, "Upload a trace, or draw one"),
        field(`File, up to ${known.about.upload_mib} MiB (any format that the program reads)`, file),
        el("button", { type: "button", id: "upload", onclick: send }, "Upload"),
        el("div", { class: "pair" }, field("Preset", preset), field("Sessions, steps or documents", size)),
        el("button", { type: "button", id: "draw", onclick: draw }, "Draw"), said);
}

function policyChecks() {
    const check = (value, text) => el("label", {},
        el("input", { type: "checkbox", name: "policy", value, checked: true }), text);
    return el("div", { class: "checks" }, fixed.map((layout) => check(`fixed:${layout}`, layout)),
        check("splash", "splash"), check("greedy", "greedy"), check("best-fixed", "best fixed"));
}

function readOrder(form) {
    const data = new FormData(form);
    const scenario = { model: data.get("model"), cluster: data.get("cluster"), policy: data.getAll("policy") };
    for (const key of ["limit", "rate"]) if (data.get(key)) scenario[key] = Number(data.get(key));
    if (data.get("slo").trim()) scenario.slo = data.get("slo").trim();
    if (data.get("prefix_cache")) scenario.prefix_cache = true;
    const margin = data.get("margin");
    if (margin) scenario.policy = scenario.policy.map((p) => (p === "splash" ? `splash:margin=${margin}` : p));
    const order = { trace: data.get("trace"), scenario };
    if (data.get("name").trim()) order.name = data.get("name").trim();
    return order;
}

function runForm(known) {
    const trace = el("select", { name: "trace", id: "trace", required: true });
    const named = (name, list, wanted) => el("select", { name, id: name },
        list.map((value) => el("option", { value, selected: value === wanted }, value)));
    const number = (name, attributes) => el("input", { type: "number", name, id: `in-${name}`, ...attributes });
    const said = el("p", { class: "bad", role: "alert" });
    async function submit(event) {
        event.preventDefault();
        said.textContent = "";
        try {
            location.href = `/runs/${(await client.startRun(readOrder(event.target))).id}`;
        } catch (fault) {
            said.textContent = fault.message;
        }
    }
    fillTraces(trace, known.samples).catch((fault) => { said.textContent = fault.message; });
    return el("form", { onsubmit: submit, id: "order" },
        el("fieldset", {}, el("legend", {}, "Load"), field("Trace", trace), newTrace(known, trace)),
        el("fieldset", {}, el("legend", {}, "Machine"), el("div", { class: "pair" },
            field("Model", named("model", known.models, "deepseek-v3.2")),
            field("Cluster", named("cluster", known.clusters, "b200x8")))),
        el("fieldset", {}, el("legend", {}, "Policies"), policyChecks()),
        el("details", {}, el("summary", {}, "More"), el("div", { class: "pair" },
            field("First requests only", number("limit", { min: 1 })),
            field("Times the recorded rate", number("rate", { min: 0.01, step: "any" })),
            field("Margin of splash", number("margin", { min: 0, step: "any" })),
            field("SLO, as ttft=2s,tpot=50ms", el("input", { type: "text", name: "slo" })),
            field("Name of the run", el("input", { type: "text", name: "name", maxlength: 90 })),
            el("label", { class: "row" }, el("input", { type: "checkbox", name: "prefix_cache" }), "Prefix cache"))),
        el("div", {}, el("button", { class: "main", id: "run" }, "Run")), said);
}

function runList(runs, listMax) {
    const chosen = new Set();
    const go = el("button", { type: "button", id: "compare", disabled: true,
        onclick: () => { location.href = `/compare?ids=${[...chosen].join(",")}`; } }, "Compare");
    const choose = (id) => (event) => {
        chosen[event.target.checked ? "add" : "delete"](id);
        go.disabled = chosen.size < 2 || chosen.size > 8;
    };
    const row = (run) => [
        el("input", { type: "checkbox", "aria-label": `Compare ${run.name}`,
            disabled: run.state !== "done", onchange: choose(run.id) }),
        el("span", { class: "state" }, run.state), el("a", { href: `/runs/${run.id}` }, run.name), time(run.created_s)];
    const place = el("div", {}), said = el("span", { class: "bad", role: "alert" });
    const older = el("button", { type: "button", id: "older", onclick: () => add(runs[runs.length - 1].id) }, "Older");
    function show(more) {
        if (more.length > 0) place.append(table("Runs", ["", "state", "run", "asked for"], more.map(row), "names"));
        older.hidden = more.length < listMax;
    }
    async function add(before) {
        said.textContent = "";
        try {
            const more = await client.runs(before);
            runs.push(...more);
            show(more);
        } catch (fault) {
            said.textContent = fault.message;
        }
    }
    show(runs);
    return el("section", { id: "runs" }, el("h2", {}, "Runs"),
        runs.length === 0 ? el("p", { class: "dim" }, "None yet.") : place, el("p", { class: "row" }, go, older, said));
}

async function showHome(about) {
    const [known, runs] = await Promise.all([client.choices(), client.runs()]);
    main.replaceChildren(el("h1", {}, "Try layouts on a load"),
        el("div", { class: "columns" }, runForm({ ...known, about }), runList(runs, about.list_max)));
}

function showRun(id, about) {
    const title = el("h1", {}, "Run"), state = el("span", { class: "state", id: "state", role: "status" });
    const bar = el("progress", { max: 1, value: 0, "aria-label": "Progress" }), at = el("p", { class: "dim", id: "at" });
    const cancel = el("button", { type: "button", id: "cancel",
        onclick: () => client.cancelRun(id).catch((fault) => { at.textContent = fault.message; }) }, "Cancel");
    const going = el("div", { id: "going" }, bar, at, cancel), result = el("div", { id: "result" });
    main.replaceChildren(title, el("p", {}, state), going, result);

    async function onState(run) {
        title.textContent = run.name;
        document.title = `${run.name}: wavetank`;
        state.textContent = run.state;
        going.hidden = client.hasEnded(run);
        if (run.message) result.replaceChildren(el("p", { class: "bad" }, run.message));
        if (run.state !== "done") return;
        const [whole] = await client.compare([id]);
        await showResult(result, whole, about.charts);
    }
    function onProgress(p) {
        bar.value = p.total > 0 ? p.done / p.total : 0;
        at.textContent = `${p.policy}: ${count(p.done)} of ${count(p.total)} requests`;
    }
    client.watchRun(id, (run) => onState(run).catch(showFault), onProgress);
}

async function showCompare(ids, about) {
    const place = el("div", {});
    main.replaceChildren(el("h1", {}, "Side by side"), place);
    await showComparison(place, await client.compare(ids), about.charts);
}

function askToken() {
    const input = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
    main.replaceChildren(el("h1", {}, "This server asks for a token"),
        el("form", { onsubmit: (event) => { event.preventDefault(); client.token.set(input.value); location.reload(); } },
            field("Token", input), el("div", {}, el("button", { class: "main" }, "Go on"))));
}

function showFault(fault) {
    if (fault.status === 401) askToken();
    else main.append(el("p", { class: "bad", role: "alert" }, fault.message));
}

function showLicences(about) {
    const links = about.licences.map((name) => [" · ", el("a", { href: `/assets/${name}` }, name)]);
    document.getElementById("licences").append(...links.flat());
}

async function start() {
    const about = await client.about();
    const run = location.pathname.match(/^\/runs\/([0-9a-f]{32})$/);
    showLicences(about);
    if (run) showRun(run[1], about);
    else if (location.pathname === "/compare")
        await showCompare((new URLSearchParams(location.search).get("ids") ?? "").split(","), about);
    else await showHome(about);
}

start().catch(showFault);
