// SPDX-License-Identifier: Apache-2.0
//
// Report pages in Chromium: every figure is drawn or says why not, at 1200 and 360 px, light and dark; tables open,
// CSV comes out, keys zoom. usage: node reports.mjs SCREENSHOTS|- FILE.html...
//
// Any console error, any exception in a page and any request but for the file itself fails the test.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
const { chromium } = createRequire(`${process.env.NODE_FOLDER}/`)("playwright-core");

const [pictures, ...files] = process.argv.slice(2);
const faults = [];
let passed = 0;

function listen(context, url) {
    context.on("request", (request) => {
        if (request.url() !== url && !/^(data|blob):/.test(request.url())) faults.push(`request to ${request.url()}`);
    });
    context.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) faults.push(message.text());
    });
    context.on("weberror", (event) => faults.push(String(event.error())));
}

// Canvases whose pixels are all alike.
const blankPlots = (page) => page.$$eval(".plot canvas", (all) => all.filter((canvas) => {
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return !pixels.some((pixel) => pixel !== pixels[0]);
}).length);

async function look(browser, file, width, colorScheme) {
    const url = `file://${path.resolve(file)}`;
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    listen(context, url);
    const page = await context.newPage();
    await page.goto(url);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(overflow <= 0, `${file} at ${width}: scrolls sideways by ${overflow} px`);
    assert.equal(await blankPlots(page), 0, `${file}: blank charts`);
    if (pictures !== "-") {
        const name = `${path.basename(file, ".html")}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: `${pictures}/${name}`, fullPage: true });
    }
    return { context, page };
}

const csvCells = (text) => text.trimEnd().split("\n").slice(1).flatMap((line) =>
    [...`${line},`.matchAll(/(?:"((?:[^"]|"")*)"|([^,]*)),/g)].map((m) => m[1]?.replaceAll('""', '"') ?? m[2]));

// Charts without a script carry their data in a link: as many rows as the chart has marks and points, or more.
async function follow(page) {
    const links = page.locator("a.csv");
    const [download] = await Promise.all([page.waitForEvent("download"), links.first().click()]);
    for (let i = 0; i < await links.count(); i++) {
        const name = await links.nth(i).getAttribute("download");
        const text = decodeURIComponent((await links.nth(i).getAttribute("href")).replace("data:text/csv;charset=utf-8,", ""));
        const marks = await links.nth(i).locator("xpath=ancestor::figure").locator("use").count();
        if (i === 0) assert.deepEqual([download.suggestedFilename(), await readFile(await download.path(), "utf8")], [name, text]);
        const lines = text.trimEnd().split("\n");
        assert.match(name, /^[a-z0-9-]+\.csv$/);
        assert.ok(lines.length > Math.max(1, marks), `${name}: ${lines.length} lines, ${marks} marks`);
        assert.deepEqual([...new Set(lines.map((line) => csvCells(`\n${line}`).length))].length, 1, "rows of one length");
    }
    return links.count();
}

// A chart's data as a table and as CSV are the same; the keys zoom where a chart can.
async function use(page) {
    const figure = page.locator("figure:has(details)").first();
    const figures = await page.locator("figure svg, figure canvas").count();
    assert.ok(figures > 0, "a page without a chart");
    if (await figure.count() === 0) return assert.ok(await follow(page) > 0, "charts without data");
    await figure.locator("summary").first().click();
    await figure.locator("td").first().waitFor();
    const cells = await figure.locator("table").first().locator("td").allTextContents();
    const [download] = await Promise.all([page.waitForEvent("download"), figure.locator("button").first().click()]);
    assert.deepEqual(csvCells(await readFile(await download.path(), "utf8")), cells);
    const course = page.locator('figure[data-chart="course"] .plot');
    if (await course.count() === 0) return;
    await course.focus();
    const range = () => course.evaluate((box) => {
        const { start, end } = globalThis.echarts.getInstanceByDom(box).getOption().dataZoom[0];
        return end - start;
    });
    await page.keyboard.press("+");
    assert.equal(await range(), 50);
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
for (const file of files) {
    for (const width of [1200, 360])
        for (const scheme of ["light", "dark"]) {
            const { context, page } = await look(browser, file, width, scheme);
            if (width === 1200 && scheme === "light") await use(page);
            await context.close();
            assert.deepEqual(faults, [], file);
            passed++;
        }
}
await browser.close();
console.log(`${passed} passed, 0 failed`);
