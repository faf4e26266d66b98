// SPDX-License-Identifier: Apache-2.0
//
// Elements and numbers. Text always goes in as text: what a user named a file never becomes markup.

export function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value != null) element.setAttribute(key, value);
    }
    element.append(...children.flat().filter((child) => child != null));
    return element;
}

export const field = (label, control) => el("label", { class: "field" }, el("span", {}, label), control);

export const count = (n) => Math.round(n).toLocaleString("en-US");

// Three digits, as the command's tables have them.
export function digits(x) {
    if (x === 0) return "0";
    return Math.abs(x) >= 1000 ? count(x) : String(Number(x.toPrecision(3)));
}

export const time = (s) => (s ? new Date(s * 1000).toLocaleString() : "");

export function table(label, head, rows, kind = "numbers") {
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
        el("table", { class: kind },
            el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
            el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value) => el("td", {}, value)))))));
}
