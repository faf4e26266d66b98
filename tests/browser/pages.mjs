// SPDX-License-Identifier: Apache-2.0
//
// The pages of wavetank serve, in Chromium: upload, run, progress, result, compare, shared link, cancel,
// charts, both themes, 360 px. usage: node pages.mjs ORIGIN TRACE [SCREENSHOTS]
//
// Any console error, any exception in a page and any request to another origin fails the test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { chromium } = createRequire(`${process.env.NODE_FOLDER}/`)("playwright-core");

const [origin, trace, pictures] = process.argv.slice(2);
const wide = { width: 1200, height: 900 }, narrow = { width: 360, height: 740 };
const faults = [];
let passed = 0;

async function test(what, body) {
    await body();
    assert.deepEqual(faults, [], what);
    passed++;
    console.log(`ok   ${what}`);
}

function listen(context) {
    context.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(origin) && !url.startsWith("data:")) faults.push(`request to ${url}`);
    });
    context.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) faults.push(message.text());
    });
    context.on("weberror", (event) => faults.push(String(event.error())));
}

async function open(browser, options) {
    const context = await browser.newContext({ viewport: wide, ...options });
    listen(context);
    return context.newPage();
}

const state = (page, wanted) =>
    page.waitForFunction((text) => document.querySelector("#state")?.textContent === text, wanted);

// Canvases whose pixels are not all alike.
const drawnCharts = (page) => page.$$eval(".chart canvas", (all) => all.filter((canvas) => {
    const pixels = new Uint32Array(
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return pixels.some((pixel) => pixel !== pixels[0]);
}).length);

const overflow = (page) =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const shoot = async (page, name) =>
    pictures && page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });

// Some twenty seconds of work, by the API: too short a run could end before it is cancelled.
const longRun = (page) => page.evaluate(async () => {
    const policy = Array.from({ length: 16 }, (_, i) => `splash:margin=${(i + 1) / 100}`);
    const scenario = { model: "deepseek-v3.2", cluster: "b200x8", exact: true, rate: 0.05, policy };
    const response = await fetch("/api/runs", { method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ trace: "sample:mooncake_conversation.jsonl.gz", scenario }) });
    return (await response.json()).id;
});

// From the form as it stands; the address of the run's page.
async function run(page, trace, limit) {
    await page.goto(`${origin}/`);
    await page.waitForSelector("#trace option", { state: "attached" });
    if (trace) await page.selectOption("#trace", trace);
    if (limit) {
        await page.click("text=More");
        await page.fill("#in-limit", String(limit));
    }
    await page.click("#run");
    await page.waitForURL(/\/runs\/[0-9a-f]{32}$/);
    return page.url();
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"] });
try {
    const page = await open(browser, { colorScheme: "light" });
    let first, second;
    await test("the home page loads", async () => {
        await page.goto(`${origin}/`);
        await page.waitForSelector("#trace option", { state: "attached" });
        assert.equal(await page.title(), "wavetank");
        await shoot(page, "home-light-1200");
    });
    await test("a file is uploaded and becomes the form's trace", async () => {
        await page.click("text=Upload a trace");
        await page.setInputFiles("#file", trace);
        await page.click("#upload");
        await page.waitForSelector("text=is ready.");
        assert.match(await page.$eval("#trace", (select) => select.value), /^[0-9a-f]{32}$/);
    });
    await test("it runs and shows a result", async () => {
        await page.click("#run");
        await page.waitForURL(/\/runs\/[0-9a-f]{32}$/);
        first = page.url();
        await state(page, "done");
        await page.waitForSelector("#result table");
        const rows = await page.$$eval("#result table:first-of-type tbody tr", (all) => all.length);
        assert.ok(rows >= 7, `${rows} rows`);
    });
    await test("charts are drawn", async () => {
        await page.waitForSelector(".chart canvas");
        assert.equal(await drawnCharts(page), 5);
        await shoot(page, "run-light-1200");
    });
    await test("the slider asks again and shows the answer", async () => {
        await page.$eval("#margin", (input) => { input.value = "0.3"; input.dispatchEvent(new Event("input")); });
        await page.waitForSelector("#margins >> text=margin 0.3");
    });
    await test("a report and a timeline are made when asked for, and downloaded", async () => {
        const before = await page.$$eval("#files li", (all) => all.length);
        await page.click("#make-report");
        await page.waitForSelector("#files >> text=report.html");
        await page.selectOption("#timeline-policy", "splash");
        await page.click("#make-timeline");
        await page.waitForSelector("#files >> text=timeline.json.gz");
        assert.equal(await page.$$eval("#files li", (all) => all.length), before + 2);
        for (const [name, begin] of [["report.html", "<!doctype html>"], ["timeline.json.gz", "\x1f\x8b"]]) {
            const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#files >> text=${name}`)]);
            assert.equal(download.suggestedFilename(), name);
            const file = readFileSync(await download.path(), "latin1");
            assert.equal(file.slice(0, begin.length).toLowerCase(), begin);
        }
        await page.locator("#files").scrollIntoViewIfNeeded();
        await shoot(page, "downloads-light-1200");
    });
    await test("a preset is drawn", async () => {
        await page.goto(`${origin}/`);
        await page.click("text=Upload a trace");
        await page.selectOption("#preset", "mixed-chat").catch(() => {});
        await page.fill("#count", "5");
        await page.click("#draw");
        await page.waitForSelector("text=is ready.");
    });
    await test("progress is shown while it runs, and a run is cancelled", async () => {
        await page.goto(`${origin}/runs/${await longRun(page)}`);
        await page.waitForFunction(() => /: [1-9][\d,]* of [\d,]+ requests/.test(document.querySelector("#at").textContent));
        await shoot(page, "progress-light-1200");
        await page.click("#cancel");
        await state(page, "cancelled");
        assert.equal(await page.isVisible("#cancel"), false);
    });
    await test("runs are compared", async () => {
        second = await run(page, "sample:azure_2023_code.csv", 100);
        await state(page, "done");
        await page.goto(`${origin}/`);
        await page.waitForSelector("#runs table");
        const ids = [first, second].map((url) => url.split("/").pop());
        for (const id of ids)
            await page.locator(`#runs tr:has(a[href="/runs/${id}"]) input`).check();
        await shoot(page, "runs-light-1200");
        await page.click("#compare");
        await page.waitForSelector(".chart canvas");
        assert.equal(await drawnCharts(page), 5);
        assert.ok(await page.locator("text=A splash").count() > 0 && await page.locator("text=B splash").count() > 0);
        await shoot(page, "compare-light-1200");
    });
    await test("a shared link shows the run to somebody else, in the dark", async () => {
        const other = await open(browser, { colorScheme: "dark" });
        await other.goto(first);
        await other.waitForSelector(".chart canvas");
        assert.equal(await drawnCharts(other), 5);
        assert.equal(await other.$eval("body", (body) => getComputedStyle(body).backgroundColor), "rgb(21, 25, 29)");
        await shoot(other, "run-dark-1200");
        await other.goto(`${origin}/`);
        await other.waitForSelector("#trace option", { state: "attached" });
        await shoot(other, "home-dark-1200");
    });
    await test("everything fits 360 px, in both themes", async () => {
        for (const colorScheme of ["light", "dark"]) {
            const phone = await open(browser, { colorScheme, viewport: narrow });
            for (const [name, url] of [["home", `${origin}/`], ["run", first],
                ["compare", `${origin}/compare?ids=${first.split("/").pop()},${second.split("/").pop()}`]]) {
                await phone.goto(url);
                await phone.waitForSelector(name === "home" ? "#runs table" : ".chart canvas");
                assert.ok(await overflow(phone) <= 0, `${name} is wider than 360 px`);
                await shoot(phone, `${name}-${colorScheme}-360`);
            }
        }
    });
    await test("older runs are a button away", async () => {
        const many = await open(browser, {});
        const run = (n) => ({ id: String(n).padStart(32, "0"), state: "failed", name: `run ${n}`, created_s: n });
        await many.route("**/api/runs*", (route) => route.fulfill({ json: { runs: route.request().url().endsWith(`before=${run(51).id}`)
            ? [run(50)] : Array.from({ length: 50 }, (_, i) => run(100 - i)) } }));
        await many.goto(`${origin}/`);
        await many.click("#older");
        await many.waitForSelector("#runs >> text=run 50");
        assert.equal(await many.$$eval("#runs tbody tr", (all) => all.length), 51);
        assert.equal(await many.isVisible("#older"), false);
    });
    await test("what is not there says so", async () => {
        const lost = await browser.newPage();
        await lost.goto(`${origin}/compare?ids=nothing`);
        await lost.waitForSelector("text=there is no such run");
    });
    console.log(`${passed} passed, 0 failed`);
} catch (fault) {
    console.log(`FAIL ${fault.message}\n${faults.join("\n")}\n${passed} passed, 1 failed`);
    process.exitCode = 1;
} finally {
    await browser.close();
}
