// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon. The access token is in memory only.

let token = "";
let asked = null; // the promise of a token, while the page asks for one
const session = {names: new Map(), files: new Map()}; // of files: id -> name, id -> kind

// An answer that is a problem document.
class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The daemon answered with status ${status}.`);
    this.status = status;
    this.code = document.code;
    this.errors = document.errors || [];
  }
}

function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

function say(text, kind = "") {
  const notice = document.getElementById("notice");
  notice.textContent = plainText(text);
  notice.className = `notice ${kind}`;
  notice.hidden = text === "";
}

// Tells whether the daemon answers.
function setReachable(reachable) {
  const notice = document.getElementById("notice");
  if (!reachable)
    say("The daemon does not answer. The page tries again.", "lost");
  else if (notice.classList.contains("lost"))
    say("");
}

// Asks for a token once, however many requests need one.
function askToken() {
  if (asked)
    return asked;
  const dialog = document.getElementById("sign-in");
  const field = document.getElementById("token");
  document.getElementById("sign-in-reason").textContent = token
    ? "The daemon does not accept the token any more. It may have expired."
    : "This daemon answers requests with an access token.";
  field.value = "";
  dialog.showModal();
  asked = new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      token = field.value.trim();
      field.value = "";
      asked = null;
      resolve();
    }, {once: true});
  });
  return asked;
}

document.getElementById("sign-in").addEventListener("cancel", (event) => event.preventDefault());

function authorization() {
  return token ? {Authorization: `Bearer ${token}`} : {};
}

async function problemOf(answer) {
  const type = answer.headers.get("Content-Type") || "";
  return new Problem(answer.status, type.includes("json") ? await answer.json() : {});
}

// Sends a request, after asking for a token where the daemon wants one. Throws a Problem, or the
// TypeError of fetch() when the daemon does not answer.
async function request(method, path, {json, accept, signal, headers} = {}) {
  for (;;) {
    if (asked)
      await asked;
    const sent = token;
    let answer;
    try {
      answer = await fetch(path, {
        method, signal, cache: "no-store", redirect: "error",
        headers: {
          ...authorization(), ...headers, ...(accept && {Accept: accept}),
          ...(json !== undefined && {"Content-Type": "application/json"}),
        },
        body: json === undefined ? undefined : JSON.stringify(json),
      });
    } catch (error) {
      if (!isAbort(error))
        setReachable(false);
      throw error;
    }
    setReachable(true);
    if (answer.ok)
      return answer;
    if (answer.status !== 401)
      throw await problemOf(answer);
    if (sent === token)
      await askToken();
  }
}

async function getJson(path, options) {
  return (await request("GET", path, options)).json();
}

async function getHtml(path, options) {
  return (await request("GET", path, {...options, accept: "text/html"})).text();
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, {once: true});
  });
}

// Yields the server-sent events of an answer.
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done)
      return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
      if (fields.event)
        yield fields;
    }
  }
}

// Calls onEvent(event, data) for each event of a job until its end. Continues behind the last
// event after a lost connection.
async function follow(id, onEvent, signal) {
  let last = "", pause = 250;
  while (!signal.aborted) {
    try {
      const headers = last ? {"Last-Event-ID": last} : {};
      const answer = await request("GET", `/v1/jobs/${id}/events`, {headers, signal});
      if (answer.status === 204)
        return;
      for await (const event of eventsOf(answer)) {
        last = event.id;
        pause = 250;
        onEvent(event.event, JSON.parse(event.data));
        if (event.event === "end")
          return;
      }
    } catch (error) {
      if (signal.aborted)
        return;
      if (error instanceof Problem && error.status < 500)
        throw error;
    }
    await sleep(pause, signal);
    pause = Math.min(2 * pause, 5000);
  }
}

// Sends a body with XMLHttpRequest, which tells how much of it was sent.
function sendOnce(path, body, onProgress) {
  return new Promise((resolve, reject) => {
    const sender = new XMLHttpRequest();
    sender.open("POST", path);
    for (const [name, value] of Object.entries(authorization()))
      sender.setRequestHeader(name, value);
    if (!(body instanceof FormData))
      sender.setRequestHeader("Content-Type", "application/octet-stream");
    sender.upload.addEventListener("progress", (event) => onProgress(event.loaded, event.total));
    sender.addEventListener("error", () => reject(new TypeError("The connection was lost.")));
    sender.addEventListener("load", () => {
      let document = {};
      try {
        document = JSON.parse(sender.responseText);
      } catch { /* an answer without a document */ }
      if (sender.status < 300)
        resolve(document);
      else
        reject(new Problem(sender.status, document));
    });
    sender.send(body);
  });
}

async function send(path, body, onProgress) {
  for (;;) {
    try {
      return await sendOnce(path, body, onProgress);
    } catch (error) {
      if (error.status !== 401)
        throw error;
      await askToken();
    }
  }
}

// --- files -----------------------------------------------------------------------------

const IS_MODEL = /\.(onnx|pb)$/i;
const IS_DATA = /\.(npz|npy|parquet|zip|tar|tgz|tar\.gz)$/i;
const MAY_BE_DATA = /\.safetensors$/i; // beside a model it may hold the weights

// Sorts the files that were dropped into uploads. A file of another type is a part of the model
// beside it.
function uploadsOf(files) {
  const models = files.filter((file) => IS_MODEL.test(file.name));
  const isData = (file) => IS_DATA.test(file.name) || (!models.length && MAY_BE_DATA.test(file.name));
  const parts = files.filter((file) => !IS_MODEL.test(file.name) && !isData(file));
  const uploads = files.filter(isData)
    .map((file) => ({kind: "datasets", name: file.name, body: file}));
  if (parts.length && models.length !== 1) {
    const names = parts.map((file) => file.name).join(", ");
    throw new Error(`${names}: neither a model (.onnx) nor data (.npz, .npy, .parquet, .safetensors, ` +
                    ".zip, .tar, .tgz). " +
                    "Files with the weights of a model are sent together with it.");
  }
  for (const file of models) {
    let body = file;
    if (parts.length) {
      body = new FormData();
      body.append("model", file, file.name);
      for (const part of parts)
        body.append("external", part, part.name);
    }
    uploads.push({kind: "models", name: file.name, body});
  }
  return uploads;
}

async function upload({kind, name, body}, onProgress) {
  const stored = await send(`/v1/${kind}`, body, onProgress);
  session.names.set(stored.id, name);
  session.files.set(stored.id, kind);
  return stored;
}

// Has the browser save what a route answers.
async function save(path, name, accept) {
  const answer = await request("GET", path, {accept});
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
