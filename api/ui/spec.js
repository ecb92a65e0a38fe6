// SPDX-License-Identifier: Apache-2.0
// The editor of a spec: where in its text an error is, and the plan that it gives.

// Reads JSON. Returns {error: {at, text}} for the first mistake, or {spans}: for each JSON pointer
// where its value stands, and for a member's where its name begins.
function readJson(text) {
  const token = /[ \t\r\n]*(?:("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|([{}[\]:,])|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)(?![\w.+-])|$)/gy;
  const spans = new Map();
  let at = 0, end = 0, next = null;

  function fail(wanted) {
    throw {at, text: `Expected ${wanted}.`};
  }
  function advance() {
    token.lastIndex = end;
    const match = token.exec(text);
    if (!match) {
      at = end + text.slice(end).match(/^[ \t\r\n]*/)[0].length;
      fail("a value; texts stand in double quotes");
    }
    end = token.lastIndex;
    at = end - (match[1] || match[2] || match[3] || "").length;
    next = match[1] ? "text" : match[2] || (match[3] ? "word" : "end");
  }
  function members(close, pointer, member) {
    advance();
    for (let i = 0; next !== close; i++) {
      if (i) {
        if (next !== ",")
          fail(`a comma or ${close}`);
        advance();
      }
      member(pointer, i);
      advance();
    }
  }
  function value(pointer, from = at) {
    if (next === "{")
      members("}", pointer, namedMember);
    else if (next === "[")
      members("]", pointer, (up, i) => value(`${up}/${i}`));
    else if (next !== "text" && next !== "word")
      fail("a value");
    spans.set(pointer, [from, end]);
  }
  function namedMember(pointer) {
    const from = at;
    if (next !== "text")
      fail("a member's name in double quotes");
    const name = JSON.parse(text.slice(at, end)).replace(/~/g, "~0").replace(/\//g, "~1");
    advance();
    if (next !== ":")
      fail("a colon");
    advance();
    value(`${pointer}/${name}`, from);
  }

  try {
    advance();
    value("");
    advance();
    if (next !== "end")
      fail("nothing more");
  } catch (error) {
    if (error instanceof Error)
      throw error;
    return {error};
  }
  return {spans};
}

// Returns the span of what a pointer names, or of the nearest value around it.
function spanOf(spans, pointer) {
  for (let path = pointer; ; path = path.slice(0, path.lastIndexOf("/"))) {
    if (spans.has(path) || path === "")
      return spans.get(path);
  }
}

function lineOf(text, at) {
  const before = text.slice(0, at).split("\n");
  return [before.length, before.at(-1).length + 1];
}

// Makes the editor. onChange is called with the spec, or with null while its text is no JSON.
function makeEditor(onChange) {
  const marks = el("pre", {className: "marks", ariaHidden: "true"});
  const field = el("textarea", {
    id: "spec", spellcheck: false, rows: 12, value: "{\n}", autocomplete: "off",
  });
  const errors = el("ul", {id: "spec-errors", className: "errors"});
  field.setAttribute("aria-describedby", "spec-errors");
  errors.setAttribute("aria-live", "polite");
  let spans = new Map();

  function mark(found) {
    const text = field.value;
    let at = 0;
    marks.replaceChildren();
    for (const {span} of found.filter((row) => row.span).sort((a, b) => a.span[0] - b.span[0])) {
      if (span[0] < at)
        continue;
      marks.append(text.slice(at, span[0]), el("mark", {}, text.slice(span[0], span[1]) || " "));
      at = span[1];
    }
    marks.append(text.slice(at), "\n");
    field.setAttribute("aria-invalid", found.length ? "true" : "false");
  }
  function show(found) {
    mark(found);
    errors.replaceChildren(...found.map(({span, detail}) => {
      if (!span)
        return el("li", {}, detail);
      const [line, column] = lineOf(field.value, span[0]);
      return el("li", {}, button(`Line ${line}, column ${column}`, () => {
        field.focus();
        field.setSelectionRange(span[0], span[1]);
      }, "link"), ` ${detail}`);
    }));
  }
  function read() {
    const text = field.value.trim() === "" ? "{}" : field.value;
    const found = readJson(text);
    spans = found.spans || new Map();
    const error = found.error;
    show(error ? [{span: [error.at, error.at + 1], detail: error.text}] : []);
    return error ? null : JSON.parse(text);
  }
  field.addEventListener("input", () => onChange(read()));
  field.addEventListener("scroll", () => {
    marks.scrollTop = field.scrollTop;
    marks.scrollLeft = field.scrollLeft;
  });
  return {
    element: el("div", {}, el("label", {htmlFor: "spec"}, "Spec, as JSON"),
                el("div", {className: "editor"}, marks, field), errors),
    get: read,
    set(spec) {
      const text = JSON.stringify(spec, null, 2);
      field.value = text === "{}" ? "{\n}" : text;
      onChange(read());
    },
    // Shows where the places of a problem are in the text.
    showProblem(problem) {
      const places = problem.errors?.length ? problem.errors : [{detail: problem.message}];
      show(places.map(({pointer, node, tensor, detail}) => ({
        span: pointer && spans.has(`/${pointer.split("/")[1]}`) ? spanOf(spans, pointer) : null,
        detail: plainText([node || tensor, detail].filter(Boolean).join(": ")),
      })));
    },
  };
}

// Asks for the plan of what is typed, a moment after the last key.
function makePlanner(panel, onProblem) {
  let running = new AbortController();
  // Tells that the plan which is shown is not that of the text.
  function setOutdated() {
    const summary = panel.querySelector("#plan-summary");
    if (summary && summary.childNodes.length === 1)
      summary.append(" This is the plan from before the mistake.");
  }
  // Returns the spec that is planned: a plan is for one target, and of several that of the first is shown.
  function planned(spec) {
    const {targets, ...rest} = spec;
    const [first] = Array.isArray(targets) ? targets : [];
    return typeof first === "string" && !("target" in rest) ? {...rest, target: first} : spec;
  }
  async function ask(model, spec) {
    const {signal} = running = new AbortController();
    await sleep(250, signal);
    if (signal.aborted)
      return;
    try {
      const answer = await request("POST", "/v1/plan", {json: {model, spec: planned(spec)}, signal});
      const plan = await answer.json();
      if (!signal.aborted)
        panel.replaceChildren(...planParts(plan));
    } catch (error) {
      if (signal.aborted || !(error instanceof Problem))
        return;
      setOutdated();
      onProblem(error);
    }
  }
  return {
    stop: () => running.abort(),
    plan(model, spec) {
      running.abort();
      if (!model)
        panel.replaceChildren(el("p", {className: "note"}, "Choose a model to see its plan."));
      else if (spec)
        ask(model, spec);
      else
        setOutdated();
    },
  };
}

// Returns whether weights have different formats, which are shown then.
function areMixed(layers) {
  const formats = layers.filter((layer) => layer.weight_quantized)
    .map((layer) => `${layer.weight_dtype} ${layer.weight_block}`);
  return new Set(formats).size > 1;
}

// Returns the format of a layer's weight behind a space.
function formatOf(layer) {
  return layer.weight_block ? ` ${layer.weight_dtype} in blocks of ${layer.weight_block}`
    : ` ${layer.weight_dtype}`;
}

// Returns where a layer has pairs, in words.
function pairsOf(layer, mixed) {
  const parts = [["input", layer.quantized_inputs], ["output", layer.quantized_outputs]]
    .filter(([, list]) => list.length)
    .map(([what, list]) => `${what}${list.length > 1 ? "s" : ""} ${list.join(", ")}`);
  if (layer.weight_quantized) {
    const weight = `weight${mixed ? formatOf(layer) : ""}`;
    parts.push(layer.weight_axis === null ? weight : `${weight} by axis ${layer.weight_axis}`);
  }
  return parts.join("; ") || "float";
}

function planParts({summary, layers: all, warnings}) {
  const layers = all.filter((layer) => !layer.constant);
  const mixed = areMixed(layers);
  return [
    el("p", {id: "plan-summary"}, `${summary.quantized_layers} of ${summary.layers} layers are ` +
       `quantized, with ${summary.qdq_pairs} Q/DQ pairs.`),
    warnings.length ? el("ul", {className: "warnings"}, ...warnings.map((warning) =>
      el("li", {}, el("code", {}, warning.code), ` ${plainText(warning.detail)}`,
         ...(warning.node ? [" (", nameElement(warning.node), ")"] : [])))) : "",
    makeTable("Plan", ["layer", "operator", "pairs", "reason"], layers.map((layer) =>
      [el("code", {}, nameElement(layer.name)), layer.op, pairsOf(layer, mixed), layer.reason])),
    el("p", {className: "note"}, layers.length < all.length
      ? `${all.length - layers.length} nodes that compute constants alone are left out.` : ""),
  ];
}
