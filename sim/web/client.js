// SPDX-License-Identifier: Apache-2.0
//
// The server's API, as functions. Every failure is an Error whose message is for the user.

const tokenKey = "wavetank-token";

export const token = {
    get: () => sessionStorage.getItem(tokenKey),
    set: (text) => sessionStorage.setItem(tokenKey, text),
};

async function call(method, path, body, type = "application/json") {
    const headers = {};
    if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
    if (body !== undefined) headers["Content-Type"] = type;
    let response;
    try {
        response = await fetch(path, { method, headers, body });
    } catch {
        throw new Error("The server does not answer.");
    }
    const text = await response.text();
    const answer = text ? JSON.parse(text) : {};
    if (!response.ok) {
        const fault = new Error(answer.error ?? `The server says ${response.status}.`);
        fault.status = response.status;
        throw fault;
    }
    return answer;
}

const post = (path, value = {}) => call("POST", path, JSON.stringify(value));

export const about = () => call("GET", "/api/about");
export const choices = () => call("GET", "/api/choices");
export const runs = async (before) => (await call("GET", `/api/runs${before ? `?before=${before}` : ""}`)).runs;
export const traces = async () => (await call("GET", "/api/traces")).traces;
export const compare = async (ids) => (await call("GET", `/api/compare?ids=${ids.join(",")}`)).runs;
export const startRun = (order) => post("/api/runs", order);
export const cancelRun = (id) => post(`/api/runs/${id}/cancel`);
export const removeRun = (id) => call("DELETE", `/api/runs/${id}`);
export const drawTrace = (order) => post("/api/traces", order);

export const hasEnded = (job) => !["open", "queued", "running"].includes(job.state);

// Resolves when the trace is ready or was refused.
export async function settleTrace(trace) {
    while (!hasEnded(trace)) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        trace = await call("GET", `/api/traces/${trace.id}`);
    }
    if (trace.state !== "done") throw new Error(trace.message ?? `The trace was ${trace.state}.`);
    return trace;
}

// In parts, so that neither side holds the whole file; onPart gets the share that is sent.
export async function upload(file, partBytes, onPart) {
    const trace = await post("/api/traces", { name: file.name.slice(0, 60) });
    for (let n = 0; n === 0 || n * partBytes < file.size; n++) {
        const part = file.slice(n * partBytes, (n + 1) * partBytes);
        await call("PUT", `/api/traces/${trace.id}/parts/${n}`, part, "application/octet-stream");
        onPart(Math.min(1, ((n + 1) * partBytes) / Math.max(1, file.size)));
    }
    return settleTrace(await post(`/api/traces/${trace.id}/check`));
}

// Calls onState and onProgress as things happen, until the run has ended.
export function watchRun(id, onState, onProgress) {
    const source = new EventSource(`/api/runs/${id}/events`);
    source.addEventListener("state", (event) => {
        const run = JSON.parse(event.data);
        if (hasEnded(run)) source.close();
        onState(run);
    });
    source.addEventListener("progress", (event) => onProgress(JSON.parse(event.data)));
    return source;
}
