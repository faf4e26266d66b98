// SPDX-License-Identifier: Apache-2.0
//
// A finished run as tables, a comparison of several, and the slider that asks what another margin gives.

import * as client from "/assets/client.js";
import { draw } from "/assets/charts.js";
import { count, digits, el, table } from "/assets/dom.js";

const head = ["policy", "done", "tok/s", "output tok/s", "TTFT p50 s", "p99", "TPOT p50 ms", "p99",
    "E2E mean s", "switches"];

const numbers = (r) => [count(r.completed), count(r.total_tok_s), count(r.output_tok_s),
    digits(r.ttft_s.p50), digits(r.ttft_s.p99), digits(r.tpot_s.p50 * 1000), digits(r.tpot_s.p99 * 1000),
    digits(r.e2e_s.mean), count(r.switches)];

const policyRows = (run, prefix = "") =>
    run.result.runs.map((result) => ({ label: prefix + result.policy, result }));

function tiles(run) {
    const best = run.result.runs.reduce((a, b) => (b.e2e_s.mean < a.e2e_s.mean ? b : a));
    const trace = run.result.trace;
    const tile = (number, what) => el("div", {}, el("b", {}, number), el("span", {}, what));
    return el("div", { class: "tiles" },
        tile(best.policy, "lowest mean end to end"),
        tile(`${digits(best.e2e_s.mean)} s`, "its mean end to end"),
        tile(count(trace.requests), `requests over ${digits(trace.span_s)} s`),
        tile(count(trace.input_tokens_total + trace.output_tokens_total), "tokens"),
        tile(run.result.cluster, run.result.model));
}

const fileItem = (file) =>
    el("li", {}, el("a", { href: file.href, download: file.name }, file.name), ` ${file.what}`);

// The same inputs with some options changed: a run of its own.
const runAgain = (run, what, scenario, more = {}) => client.startRun({ name: `${run.name}, ${what}`.slice(0, 90),
    trace: run.order.trace, scenario: { ...run.order.scenario, ...scenario }, ...more });

// A file that only a run that is asked for it writes: the same inputs, run again. `key` asks for it.
function makeButton(run, key, text, list, scenario) {
    const said = el("span", { class: "dim", role: "status" });
    const button = el("button", { type: "button", id: `make-${key}`, onclick: make }, text);
    function settle(state) {
        if (!client.hasEnded(state)) return;
        button.disabled = false;
        said.textContent = state.state === "done" ? "" : `The run was ${state.state}: ${state.message ?? ""}`;
        for (const file of state.files ?? []) if (file.name.startsWith(key)) list.append(fileItem(file));
    }
    async function make() {
        button.disabled = true;
        said.textContent = "Running ...";
        try {
            const next = await runAgain(run, key, scenario(), { [key]: true });
            client.watchRun(next.id, settle, (p) => { said.textContent = `${p.policy}: ${count(p.done)} of ${count(p.total)}`; });
        } catch (fault) {
            button.disabled = false;
            said.textContent = fault.message;
        }
    }
    return [button, said];
}

function downloads(run) {
    const list = el("ul", { id: "files" }, run.files.map(fileItem));
    const policies = run.result.runs.map((r) => r.policy).filter((policy) => policy !== "best-fixed");
    const policy = el("select", { id: "timeline-policy", "aria-label": "Policy of the timeline" },
        policies.map((name) => el("option", { value: name, selected: name.startsWith("splash") }, name)));
    return el("div", {}, list,
        el("p", { class: "row" }, makeButton(run, "report", "Make a page with charts over time", list, () => ({}))),
        el("p", { class: "row" }, makeButton(run, "timeline", "Make a timeline", list, () => ({ policy: [policy.value] })),
            el("label", { for: "timeline-policy" }, "of"), policy));
}

function share(run) {
    const link = `${location.origin}/runs/${run.id}`;
    const said = el("span", { class: "dim", role: "status" });
    const copy = () => navigator.clipboard.writeText(link).then(
        () => { said.textContent = "copied"; }, () => { said.textContent = "copy it from here"; });
    return el("p", { class: "row" }, el("code", { id: "link" }, link),
        el("button", { type: "button", onclick: copy }, "Copy the link"), said);
}

// What splash gives at another margin, on the same inputs: a run of its own.
function marginSlider(run) {
    const answers = el("div", { id: "margins" });
    const said = el("p", { class: "dim", role: "status" });
    const value = el("output", { for: "margin" }, "0.05");
    const rows = run.result.runs.filter((r) => r.policy.startsWith("splash"))
        .map((r) => [`${r.policy} (this run)`, ...numbers(r)]);
    const show = () => answers.replaceChildren(table("Margins", head, rows));
    let timer = 0;
    let source = null;
    let asked = 0;

    async function add(id, turn, margin) {
        const [done] = await client.compare([id]);
        if (turn !== asked) return;
        said.textContent = done.state === "done" ? "" : `The run was ${done.state}: ${done.message ?? ""}`;
        if (done.state !== "done") return;
        rows.push([el("a", { href: `/runs/${id}` }, `margin ${margin}`),
            ...numbers(done.result.runs[0])]);
        show();
    }
    async function ask(margin) {
        const turn = ++asked;
        source?.close();
        said.textContent = `Running margin ${margin} ...`;
        try {
            const next = await runAgain(run, `margin ${margin}`, { policy: [`splash:margin=${margin}`] });
            source = client.watchRun(next.id,
                (state) => client.hasEnded(state) && add(next.id, turn, margin), () => {});
        } catch (fault) {
            said.textContent = fault.message;
        }
    }
    const onInput = (event) => {
        value.textContent = event.target.value;
        clearTimeout(timer);
        timer = setTimeout(ask, 500, event.target.value);
    };
    show();
    return el("section", {}, el("h2", {}, "Another margin"),
        el("p", { class: "dim" }, "How much faster another layout must be before splash switches to it."),
        el("p", { class: "row" }, el("label", { for: "margin" }, "margin"),
            el("input", { type: "range", id: "margin", min: 0, max: 0.5, step: 0.01, value: 0.05, oninput: onInput }),
            value), said, answers);
}

export function showResult(place, run, charts) {
    const chartsPlace = el("div", { class: "charts" });
    const rows = policyRows(run);
    place.replaceChildren(tiles(run),
        table("Policies", head, rows.map((row) => [row.label, ...numbers(row.result)])),
        chartsPlace, marginSlider(run),
        el("h2", {}, "Share"), share(run), el("p", { class: "dim" }, "Whoever has the link sees this run."),
        el("h2", {}, "Download"), downloads(run));
    return draw(chartsPlace, rows, charts);
}

export function showComparison(place, runs, charts) {
    const done = runs.filter((run) => run.result);
    const letter = (i) => String.fromCharCode(65 + i);
    const rows = done.flatMap((run, i) => policyRows(run, `${letter(i)} `));
    const chartsPlace = el("div", { class: "charts" });
    place.replaceChildren(
        table("Runs", ["", "run", "model", "cluster", "trace"], done.map((run, i) => [letter(i),
            el("a", { href: `/runs/${run.id}` }, run.name), run.result.model, run.result.cluster,
            run.order.trace_name]), "names"),
        done.length < runs.length ? el("p", { class: "bad" }, "Some of these runs have no result.") : "",
        table("Policies of all runs", head, rows.map((row) => [row.label, ...numbers(row.result)])), chartsPlace);
    return draw(chartsPlace, rows, charts);
}
