// SPDX-License-Identifier: Apache-2.0
// The views. Names of strangers become text nodes and never markup.

// Makes an element. Properties are those of the DOM; texts among the children become text nodes.
function el(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function button(text, onClick, className = "") {
  const element = el("button", {type: "button", className}, text);
  element.addEventListener("click", onClick);
  return element;
}

// A button that has to be pressed twice.
function deleteButton(text, action) {
  const element = button(text, async () => {
    if (element.dataset.sure) {
      await attempt(action);
      return;
    }
    element.dataset.sure = "yes";
    element.textContent = `${text}: really?`;
    setTimeout(() => {
      delete element.dataset.sure;
      element.textContent = text;
    }, 4000);
  });
  return element;
}

// Runs what a button does, and shows the reason where that fails.
async function attempt(action) {
  try {
    say("");
    await action();
  } catch (error) {
    if (error instanceof Problem)
      say(error.message, "wrong");
    else if (!(error instanceof TypeError) && !isAbort(error))
      throw error;
  }
}

// Makes the element of a stranger's name. The name neither turns the text around it nor leaves its
// lines, and the title has all of it.
function nameElement(name) {
  return el("bdi", {className: "name", title: name}, name);
}

// Returns a sentence with the names of strangers, in which the characters that turn the text behind
// them can be seen and do nothing.
function plainText(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

// Returns a name for a place that cannot have elements.
function plainName(name) {
  const characters = [...plainText(name)];
  return characters.length > 80 ? `${characters.slice(0, 79).join("")}…` : characters.join("");
}

const shortId = (id) => (id ? id.slice(id.indexOf(":") + 1).slice(0, 12) : "–");
const timeOf = (text) => (text ? new Date(text).toLocaleString() : "–");
const nameOf = (job) => job.labels?.name || session.names.get(job.model) || shortId(job.model);
// A list omits a long spec, and so its target.
const targetOf = (job) => job.targets?.map((one) => one.target).join(", ") ??
  (job.omitted?.includes("spec") ? "–" : job.spec?.target ?? "default");

function bytesOf(n) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let at = 0;
  for (; n >= 1000 && at < 4; at++)
    n /= 1000;
  return `${at ? n.toFixed(2) : n} ${units[at]}`;
}

const MOST_ROWS = 300;

// Makes a table of rows of texts and elements, with a field to filter it by where it is long.
function makeTable(label, columns, rows) {
  const body = el("tbody");
  const note = el("p", {className: "note"});
  function fill(wanted) {
    const found = wanted === "" ? rows : rows.filter((row) => row.some((cell) =>
      String(cell.textContent ?? cell).toLowerCase().includes(wanted)));
    body.replaceChildren(...found.slice(0, MOST_ROWS).map((row) =>
      el("tr", {}, ...row.map((cell) => el("td", {}, cell)))));
    note.textContent = found.length > MOST_ROWS
      ? `${found.length} rows; the first ${MOST_ROWS} are shown. Filter to see others.` : "";
  }
  const scroll = el("div", {className: "scroll", tabIndex: 0, role: "region", ariaLabel: label},
    el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((column) =>
      el("th", {scope: "col"}, column)))), body));
  const field = el("input", {type: "search"});
  field.addEventListener("input", () => fill(field.value.toLowerCase()));
  fill("");
  return el("div", {}, rows.length > 12 ? el("label", {className: "filter"}, "Filter", field) : "",
            scroll, note);
}

// --- jobs --------------------------------------------------------------------------------

const isOver = (job) => ["succeeded", "failed", "cancelled"].includes(job.state);

function progressOf({stage, done, total, eta_s: eta}) {
  const bar = el("progress", {ariaLabel: `Progress of ${stage}`});
  if (total > 0)
    Object.assign(bar, {max: total, value: done});
  const left = eta === null ? "" : `, about ${eta} s left`;
  return [bar, el("small", {}, ` ${stage}${total > 0 ? ` ${done} of ${total}` : ""}${left}`)];
}

// Returns what is to be said about a job beside its state.
function outcomeOf(job) {
  const summary = job.result?.summary;
  if (job.state === "running")
    return job.progress ? progressOf(job.progress) : [el("progress", {ariaLabel: "Progress"})];
  if (job.state === "queued") {
    const {position, waiting_for: waiting} = job.queue || {};
    return [waiting === "gpu" ? "waits for a GPU" : waiting ? `waits for ${shortId(waiting)}`
      : `number ${position ?? "?"} in the queue`];
  }
  if (job.targets && job.state === "succeeded")
    return job.targets.flatMap((one) => [`${one.target} `, el("strong",
      {className: `verdict ${one.verdict ?? ""}`}, one.verdict ?? "–"), " "]);
  if (summary) {
    const share = Math.round(100 * summary.size_after / summary.size_before);
    return [summary.verdict ? el("strong", {className: `verdict ${summary.verdict}`},
                                 summary.verdict) : "",
            summary.judged_by === "literal" ? " (not run in the target's runtime)," : "",
            ` ${summary.quantized_layers} of ${summary.layers} layers, ${share} % of the size`];
  }
  return [job.error ? plainText(job.error.detail) : ""];
}

const stateOf = (job) => el("span", {className: `state ${job.state}`}, job.state);

// Makes the row of a job. Its cells are filled again when the job changes, and only then: the focus
// stays where it is, and a list of many jobs costs nothing while they rest.
function makeJobRow(id, picked, onPick) {
  const pick = el("input", {type: "checkbox", ariaLabel: "Select for a comparison"});
  const link = el("a", {href: `#/job/${id}`});
  const target = el("td"), state = el("td", {className: "outcome"}), made = el("td");
  const cancel = button("Cancel", () => attempt(() => request("POST", `/v1/jobs/${id}/cancel`)));
  let known = "";
  pick.addEventListener("change", () => {
    if (pick.checked)
      picked.add(id);
    else
      picked.delete(id);
    onPick();
  });
  return {
    row: el("tr", {}, el("td", {}, pick),
            el("td", {}, link, el("br"), el("small", {}, shortId(id))), target, state, made,
            el("td", {}, cancel)),
    update(job) {
      const now = JSON.stringify([nameOf(job), job]);
      if (now === known)
        return;
      known = now;
      link.replaceChildren(nameElement(nameOf(job)));
      link.title = id;
      pick.ariaLabel = `Compare ${nameOf(job)} of ${timeOf(job.created_at)}`;
      cancel.ariaLabel = `Cancel ${nameOf(job)}`;
      target.textContent = targetOf(job);
      state.replaceChildren(stateOf(job), " ", ...outcomeOf(job));
      made.textContent = timeOf(job.created_at);
      cancel.hidden = isOver(job);
      pick.disabled = !isOver(job);
    },
    setProgress: (progress) =>
      state.replaceChildren(stateOf({state: "running"}), " ", ...progressOf(progress)),
  };
}

const MOST_STREAMS = 3; // a browser has six connections to one server

async function showJobs(root, signal) {
  const picked = new Set(), rows = new Map(), followed = new Set();
  const body = el("tbody");
  const counts = el("p", {id: "counts", className: "note"});
  const compare = button("Compare", () => {
    location.hash = `#/compare/${[...picked].join("/")}`;
  });
  const more = button("Older jobs", () => {
    limit = 500;
    wake.abort();
  });
  let limit = 50, wake = new AbortController();
  const onPick = () => {
    compare.disabled = picked.size < 2;
  };
  onPick();
  root.append(el("h2", {}, "Jobs"), counts, el("p", {}, compare), el("div",
    {className: "scroll tall", tabIndex: 0, role: "region", ariaLabel: "Jobs"},
    el("table", {}, el("thead", {}, el("tr", {}, ...["compare", "job", "target", "state", "sent", ""].map(
      (text) => el("th", {scope: "col"}, text)))), body)), more);

  async function watch(id) {
    followed.add(id);
    await attempt(() => follow(id, (event, data) => {
      if (event === "progress")
        rows.get(id)?.setProgress(data);
      else
        rows.get(id)?.update(data);
      if (event === "end")
        wake.abort();
    }, signal));
    followed.delete(id);
  }
  // The running jobs are the oldest of a long queue, so they are asked for where the newest jobs
  // are not all.
  async function newest() {
    const {jobs, next_cursor: next} = await getJson(`/v1/jobs?limit=${limit}`, {signal});
    const ids = new Set(jobs.map((job) => job.id));
    const running = next ? (await getJson("/v1/jobs?state=running&limit=500", {signal})).jobs : [];
    return {jobs: [...jobs, ...running.filter((job) => !ids.has(job.id))], next};
  }
  async function refresh() {
    const {jobs, next} = await newest();
    const there = new Set(jobs.map((job) => job.id));
    for (const [id, {row}] of rows)
      if (!there.has(id)) {
        row.remove();
        rows.delete(id);
      }
    jobs.forEach((job, i) => {
      if (!rows.has(job.id))
        rows.set(job.id, makeJobRow(job.id, picked, onPick));
      const {row, update} = rows.get(job.id);
      update(job);
      if (body.rows[i] !== row)
        body.insertBefore(row, body.rows[i] || null);
      if (job.state === "running" && followed.size < MOST_STREAMS && !followed.has(job.id))
        watch(job.id);
    });
    const count = (state) => jobs.filter((job) => job.state === state).length;
    counts.textContent = jobs.length === 0 ? "There are no jobs yet."
      : `${count("running")} running, ${count("queued")}${next ? " or more" : ""} queued.`
        + (next ? ` Older jobs than the newest ${limit} are not shown unless they run.` : "");
    more.hidden = !next || limit === 500;
    return jobs.some((job) => !isOver(job));
  }
  while (!signal.aborted) {
    let busy = true;
    wake = new AbortController();
    if (!document.hidden)
      await attempt(async () => {
        busy = await refresh();
      });
    await sleep(busy ? 1000 : 3000, AbortSignal.any([signal, wake.signal]));
  }
}

function frameOf(title, page) {
  const frame = el("iframe", {title, className: "report"});
  frame.setAttribute("sandbox", "allow-scripts");
  frame.srcdoc = page;
  return frame;
}

function factsOf(rows) {
  return el("dl", {className: "facts"}, ...rows.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// Returns the buttons for a job in its state.
function actionsOf(job, signal) {
  const path = `/v1/jobs/${job.id}`, name = nameOf(job).replace(/\.onnx$/i, "");
  const parts = [];
  if (!isOver(job))
    parts.push(button("Cancel", () => attempt(() => request("POST", `${path}/cancel`))));
  parts.push(el("a", {className: "button", href: `#/new/${job.id}`}, "Run again with changes"));
  if (job.state === "succeeded" && job.result)
    parts.push(button("Save model", () => attempt(() =>
      save(`${path}/model`, name + (job.result.files ? "-int8.tar" : "-int8.onnx")))));
  if (hasReport(job))
    parts.push(
      button("Save report", () => attempt(() => save(`${path}/report`, `${name}.html`, "text/html"))),
      button("Save as JSON", () => attempt(() => save(`${path}/report`, `${name}.json`))),
      button("Save frozen spec", () => attempt(() => save(`${path}/spec`, `${name}-spec.json`))),
      compareChoice(job, signal));
  if (isOver(job))
    parts.push(deleteButton("Delete", async () => {
      await request("DELETE", path);
      location.hash = "#/jobs";
    }));
  return parts;
}

const hasReport = (job) =>
  !job.targets && (job.state === "succeeded" || job.error?.code === "accuracy");

function compareChoice(job, signal) {
  const choice = el("select", {ariaLabel: "Compare with"}, el("option", {value: ""}, "Compare with…"));
  choice.addEventListener("change", () => {
    location.hash = `#/compare/${job.id}/${choice.value}`;
  });
  attempt(async () => {
    const {jobs} = await getJson("/v1/jobs?limit=100", {signal});
    choice.append(...jobs.filter((other) => hasReport(other) && other.id !== job.id)
      .map((other) => el("option", {value: other.id},
                         `${plainName(nameOf(other))}, ${targetOf(other)}, ${timeOf(other.created_at)}`)));
    choice.hidden = choice.length === 1;
  });
  return choice;
}

const figureOf = (value, digits) => typeof value === "number" ? value.toFixed(digits) : "–";

// Makes the table of a job's targets. `figures` are the rows of the comparison, when there is one.
function makeTargets(job, figures) {
  const rows = job.targets.map((one) => {
    const path = `/v1/jobs/${job.id}/targets/${one.target}`;
    const name = `${nameOf(job).replace(/\.onnx$/i, "")}.${one.target}`;
    const figure = figures.find((row) => row.target === one.target) ?? {};
    const links = el("td", {}, el("a", {href: `#/job/${one.job}`}, "Report"));
    if (one.result)
      links.append(" ", button("Save model", () => attempt(() =>
        save(`${path}/model`, name + (one.result.files ? ".tar" : ".onnx")))));
    const verdict = one.verdict ? el("strong", {className: `verdict ${one.verdict}`}, one.verdict) : "";
    return el("tr", {}, el("th", {scope: "row"}, one.target),
              el("td", {}, stateOf(one), " ", one.error ? plainText(one.error.detail) : ""),
              el("td", {}, verdict), el("td", {className: "n"}, figureOf(figure.sqnr_db, 1)),
              el("td", {className: "n", title: plainText(figure.latency_omitted ?? "")},
                 figureOf(figure.latency_ratio, 2)),
              el("td", {}, plainText(figure.latency_runtime ?? "")),
              el("td", {className: "n"}, figureOf(figure.size_ratio, 2)), links);
  });
  const heads = ["target", "state", "verdict", "SQNR (dB)", "latency (ratio)", "timed by", "size (ratio)", ""];
  const scroll = {className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Targets"};
  return el("div", scroll, el("table", {id: "targets"},
    el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))),
    el("tbody", {}, ...rows)));
}

// Shows what the targets of a job that has ended came to: their figures, and the picture.
async function compareTargets(job, targets, report, signal) {
  const path = `/v1/jobs/${job.id}/compare`;
  const {results} = await getJson(path, {signal});
  targets.replaceChildren(makeTargets(job, results));
  if (results.length > 0)
    report.append(frameOf("Comparison", await getHtml(path, {signal})));
}

async function showJob(root, signal, id) {
  const title = el("h2"), state = el("p", {id: "job-state", ariaLive: "polite"});
  const actions = el("p", {className: "actions"}), facts = el("div"), report = el("div");
  const targets = el("div");
  root.append(title, state, actions, targets, facts, report);
  let job = await getJson(`/v1/jobs/${id}`, {signal});
  function update(now) {
    const changed = now.state !== job.state || actions.childNodes.length === 0;
    job = {...job, ...now, spec: job.spec, labels: job.labels};
    title.replaceChildren(nameElement(nameOf(job)));
    state.replaceChildren(stateOf(job), " ", ...outcomeOf(job));
    if (job.targets)
      targets.replaceChildren(makeTargets(job, []));
    if (!changed)
      return;
    actions.replaceChildren(...actionsOf(job, signal));
    facts.replaceChildren(factsOf([
      ["job", el("code", {}, id)],
      ["model", el("code", {}, job.model ?? "–")],
      ["data", el("code", {}, job.calibration ?? "none")],
      ["sent", timeOf(job.created_at)],
      ["ended", timeOf(job.ended_at)],
      ["spec", el("code", {}, JSON.stringify(job.spec ?? {}))],
    ]));
  }
  update(job);
  if (!isOver(job))
    await follow(id, (event, data) => {
      if (event === "progress")
        state.replaceChildren(stateOf(job), " ", ...progressOf(data));
      else
        update(data);
    }, signal);
  if (job.targets && isOver(job))
    await attempt(() => compareTargets(job, targets, report, signal));
  if (hasReport(job))
    await attempt(async () => report.append(
      frameOf("Report", await getHtml(`/v1/jobs/${id}/report`, {signal}))));
}

// Shows the results of jobs in one table and picture, and of two what differs between them.
async function showComparison(root, signal, ...ids) {
  const path = (others) => `/v1/jobs/${ids[0]}/compare?with=${encodeURIComponent(others)}`;
  const jobs = await Promise.all(ids.map((id) => getJson(`/v1/jobs/${id}`, {signal})));
  root.append(el("h2", {}, "Comparison"), el("ul", {}, ...jobs.map((job) => el("li", {},
    el("a", {href: `#/job/${job.id}`}, nameElement(nameOf(job))), ` ${shortId(job.id)}, ${targetOf(job)}`))));
  root.append(frameOf("Results", await getHtml(path(ids.join()), {signal})));
  if (jobs.length === 2 && jobs.every(hasReport))
    root.append(frameOf("Comparison", await getHtml(path(ids[1]), {signal})));
}

// --- a new job -----------------------------------------------------------------------------

// Returns the models and datasets that jobs name or that were uploaded here:
// {models: Map of id -> {name, jobs}, datasets: the same}.
async function knownFiles(signal) {
  const known = {models: new Map(), datasets: new Map()};
  for (const [id, kind] of session.files)
    known[kind].set(id, {name: session.names.get(id), jobs: []});
  const {jobs} = await getJson("/v1/jobs?limit=500", {signal});
  for (const job of jobs)
    for (const [kind, id, name] of [["models", job.model, job.labels?.name],
                                    ["datasets", job.calibration, job.labels?.data]]) {
      if (!id)
        continue;
      if (!known[kind].has(id))
        known[kind].set(id, {name: name || shortId(id), jobs: []});
      known[kind].get(id).jobs.push(job);
    }
  return known;
}

// Makes the field for files. Its `sent()` waits for those that are on the way, and tells whether all
// of them were stored.
function makeUploader(onStored) {
  const input = el("input", {type: "file", multiple: true, id: "files"});
  const list = el("ul", {id: "uploads", ariaLive: "polite"});
  const zone = el("div", {className: "drop"},
    el("label", {htmlFor: "files"}, "Drop a model and its data here, or choose files: "), input);
  const underWay = new Set();
  async function take(files) {
    let uploads = [], allStored = true;
    try {
      uploads = uploadsOf([...files]);
    } catch (error) {
      allStored = false;
      list.append(el("li", {className: "wrong"}, error.message));
    }
    for (const one of uploads) {
      const bar = el("progress", {max: 1, value: 0, ariaLabel: `Upload of ${one.name}`});
      const text = el("span", {}, " is sent");
      list.append(el("li", {}, el("code", {}, one.name), " ", bar, text));
      try {
        const stored = await upload(one, (done, total) => {
          Object.assign(bar, {max: total, value: done});
          text.textContent = done === total ? " is checked" : ` ${bytesOf(done)} of ${bytesOf(total)}`;
        });
        text.textContent = ` is stored, ${bytesOf(stored.size)}`;
        onStored(one.kind, stored.id, one.name);
      } catch (error) {
        allStored = false;
        text.textContent = ` ${error.message}`;
        text.className = "wrong";
      }
      bar.remove();
    }
    return allStored;
  }
  async function begin(files) {
    const taken = take(files);
    underWay.add(taken);
    await taken;
    underWay.delete(taken);
  }
  input.addEventListener("change", async () => {
    await begin(input.files);
    input.value = "";
  });
  for (const name of ["dragenter", "dragover", "dragleave", "drop"])
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", name.startsWith("drage") || name === "dragover");
    });
  zone.addEventListener("drop", (event) => begin(event.dataTransfer.files));
  return {
    element: el("div", {}, zone, list),
    sent: async () => (await Promise.all(underWay)).every(Boolean),
  };
}

function makeChoice(label, id, none) {
  const choice = el("select", {id}, el("option", {value: ""}, none));
  return {
    element: el("p", {className: "choice"}, el("label", {htmlFor: id}, label), choice),
    select: choice,
    set(value, name) {
      if (![...choice.options].some((option) => option.value === value))
        choice.append(el("option", {value}, plainName(name)));
      choice.value = value;
    },
    add(files) {
      for (const [value, {name}] of files)
        if (![...choice.options].some((option) => option.value === value))
          choice.append(el("option", {value}, `${plainName(name)} (${shortId(value)})`));
    },
  };
}

async function showNew(root, signal, from) {
  const model = makeChoice("Model", "model", "Choose a model");
  const data = makeChoice("Calibration data", "data", "None");
  const target = makeChoice("Target", "target", "As the spec says");
  const panel = el("div", {id: "plan", ariaLive: "polite"});
  const fresh = el("input", {type: "checkbox", id: "fresh"});
  const planner = makePlanner(panel, (problem) => editor.showProblem(problem));
  const check = () => planner.plan(model.select.value, editor.get());
  const editor = makeEditor((spec) => {
    target.select.value = typeof spec?.target === "string" ? spec.target : "";
    planner.plan(model.select.value, spec);
  });
  const kinds = {models: model, datasets: data};
  const run = button("Run", () => attempt(() => submit()), "main");
  const uploader = makeUploader((kind, id, name) => {
    kinds[kind].set(id, name);
    check();
  });
  async function submit() {
    run.disabled = true;
    run.textContent = "Waits for the files";
    const allStored = await uploader.sent();
    run.disabled = false;
    run.textContent = "Run";
    if (signal.aborted || !allStored)
      return;
    const spec = editor.get();
    if (!spec || !model.select.value) {
      (spec ? model.select : document.getElementById("spec")).focus();
      return;
    }
    const names = {...(old?.model === model.select.value && old.labels)};
    for (const [key, id] of [["name", model.select.value], ["data", data.select.value]])
      if (session.names.has(id))
        names[key] = [...session.names.get(id)].slice(0, 200).join("");
    try {
      const answer = await request("POST", "/v1/jobs", {json: {
        model: model.select.value, calibration: data.select.value || null, spec, labels: names,
        fresh: fresh.checked}});
      location.hash = `#/job/${(await answer.json()).id}`;
    } catch (error) {
      if (error instanceof Problem)
        editor.showProblem(error);
      throw error;
    }
  }
  let old = null;
  signal.addEventListener("abort", planner.stop);
  model.select.addEventListener("change", check);
  target.select.addEventListener("change", () => {
    const {target: _, targets: several, ...rest} = editor.get() || {};
    editor.set(target.select.value ? {target: target.select.value, ...rest} : rest);
  });
  root.append(el("h2", {}, "New job"), uploader.element, el("div", {className: "columns"},
    el("div", {}, model.element, data.element, target.element, editor.element,
       el("p", {className: "actions"}, run,
          el("label", {}, fresh, " even where an equal job has run"))),
    el("div", {}, el("h3", {}, "Plan"), panel)));
  const [known, {targets}] = await Promise.all(
    [knownFiles(signal), getJson("/v1/targets", {signal})]);
  model.add(known.models);
  data.add(known.datasets);
  for (const {name, title} of targets)
    target.select.append(el("option", {value: name}, title));
  if (from) {
    old = await getJson(`/v1/jobs/${from}`, {signal});
    model.set(old.model, nameOf(old));
    if (old.calibration)
      data.set(old.calibration, old.labels?.data || shortId(old.calibration));
    editor.set(old.spec || {});
  } else {
    check();
  }
}

// --- files and reference ---------------------------------------------------------------------

// Returns the description of a file as texts and elements.
async function describe(kind, id) {
  const describeInput = ({name, dtype, shape}, i) => [i ? "; " : "",
    name ? nameElement(name) : "the input", kind === "datasets" ? ` ${dtype}` : "",
    plainText(` [${(shape || []).join(", ")}]`)];
  if (kind === "datasets") {
    const info = await getJson(`/v1/datasets/${id}`);
    return [`${info.samples} samples, ${bytesOf(info.size)}: `, ...info.inputs.flatMap(describeInput)];
  }
  const info = await getJson(`/v1/models/${id}/info`);
  return [nameElement(info.name), `: ${info.nodes} nodes, opset ${info.opset}, `
          + `${bytesOf(info.size)}; inputs `, ...info.inputs.flatMap(describeInput)];
}

function fileRow(kind, id, {name, jobs}) {
  const facts = el("span");
  const links = jobs.slice(0, 5).flatMap((job) =>
    [el("a", {href: `#/job/${job.id}`}, `${job.state} ${timeOf(job.created_at)}`), el("br")]);
  const row = [
    el("span", {}, nameElement(name), el("br"), el("code", {title: id}, shortId(id))),
    el("span", {}, ...links, jobs.length > 5 ? `and ${jobs.length - 5} more` : ""),
    el("span", {}, facts, button("Describe", (event) => attempt(async () => {
      facts.replaceChildren(...await describe(kind, id));
      event.target.remove();
    }))),
    deleteButton("Delete", async () => {
      await request("DELETE", `/v1/${kind}/${id}`);
      session.files.delete(id);
      row[0].closest("tr").remove();
    }),
  ];
  return row;
}

async function showFiles(root, signal) {
  root.append(el("h2", {}, "Models and data"), el("p", {className: "note"},
    "The files that jobs name, and those that were uploaded since this page was opened."));
  const known = await knownFiles(signal);
  for (const [kind, title] of [["models", "Models"], ["datasets", "Data"]])
    root.append(el("h3", {}, title), makeTable(title, ["file", "used by", "contents", ""],
      [...known[kind]].map(([id, file]) => fileRow(kind, id, file))));
}

async function showReference(root, signal) {
  const code = (text) => el("code", {}, text);
  const [{layers}, {cases}, {targets}, {errors}] = await Promise.all(
    ["layers", "cases", "targets", "errors"].map((name) => getJson(`/v1/${name}`, {signal})));
  const formats = document.getElementById("formats").cloneNode(true);
  formats.hidden = false;
  formats.removeAttribute("id");
  root.append(el("h2", {}, "Reference"),
    el("h3", {}, "Layers"), makeTable("Layers",
      ["class", "operator", "input", "weight", "selected by", "recognized as"],
      layers.map((row) => [code(row.class), row.op, row.quantize_input ? "yes" : "no",
                           row.quantize_weight ? "yes" : "no", row.selected_by, row.note])),
    el("h3", {}, "Cases"), makeTable("Cases", ["case", "does", "from"],
      cases.map((row) => [code(row.name), row.info, row.source])),
    el("h3", {}, "Number formats"), formats,
    el("h3", {}, "Targets"), makeTable("Targets", ["target", "weights", "activations", "about"],
      targets.map((row) => [code(row.name), row.weights.dtype, row.activations.dtype, row.info])),
    ...targets.map((row) => makeTable(`Rules of ${row.title}`, [`rule of ${row.title}`, "state", "text"],
      row.rules.map((rule) => [code(rule.id), rule.state, rule.text]))),
    el("h3", {}, "Errors"), makeTable("Errors", ["code", "status", "meaning"],
      errors.map((row) => [code(row.code), row.status, row.meaning])));
}

// --- the address ---------------------------------------------------------------------------

const views = {
  jobs: ["Jobs", showJobs], job: ["Job", showJob], new: ["New job", showNew],
  compare: ["Comparison", showComparison], files: ["Models and data", showFiles],
  reference: ["Reference", showReference],
};
let shown = new AbortController();

// Returns the name of the view and the ids that the address has. It may come from a stranger's link:
// an address without a view, or with another text where an id stands, is that of the jobs.
function readAddress() {
  const [name, ...ids] = location.hash.replace(/^#\//, "").split("/");
  return Object.hasOwn(views, name) && ids.every((id) => /^\w+$/.test(id)) ? [name, ...ids] : ["jobs"];
}

async function show(focus) {
  const [name, ...ids] = readAddress();
  const [title, view] = views[name];
  const root = document.getElementById("view");
  shown.abort();
  shown = new AbortController();
  const {signal} = shown;
  root.replaceChildren();
  document.title = `${title} – qdqd`;
  for (const link of document.querySelectorAll("nav a"))
    link.ariaCurrent = link.hash === `#/${name}` ? "page" : null;
  if (focus)
    root.focus();
  for (;;) {
    try {
      say("");
      await view(root, signal, ...ids);
      return;
    } catch (error) {
      if (signal.aborted || isAbort(error))
        return;
      if (error instanceof Problem || !(error instanceof TypeError)) {
        say(error.message, "wrong");
        return;
      }
    }
    await sleep(1000, signal);
    if (signal.aborted)
      return;
    root.replaceChildren();
  }
}

window.addEventListener("hashchange", () => show(true));
show(false);
attempt(async () => {
  document.getElementById("version").textContent = (await getJson("/version")).version;
});
