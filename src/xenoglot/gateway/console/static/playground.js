// The page Playground: builds a request in any dialect, sends it to this gateway, shows the answer and its bytes.
"use strict";

(() => {
  const WAIT = 200;
  const MOST_WHILE_RUNNING = 200_000;
  const MOST_SHOWN = 1_000_000;
  const form = document.querySelector("[data-playground]");
  const fields = form.elements;
  const part = (name) => form.querySelector(`[data-${name}]`);
  const usual = form.dataset.usual;
  let turns = [];
  let edited = false;
  let address = "";
  let timer = 0;
  let running = null;

  async function ask(action, body) {
    const headers = { "content-type": "application/json", ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}") };
    const answer = await fetch(`${form.dataset.playground}/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.ok ? answer.json() : { problem: `the gateway answered with status ${answer.status}; reload the page` };
  }

  const authorized = () => (fields.key.value ? { authorization: `Bearer ${fields.key.value}` } : {});
  const problem = (text) => { part("problem").textContent = text ?? ""; };

  const dataUrl = (file) => new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });

  async function newTurn() {
    const text = fields.prompt.value;
    const images = await Promise.all([...fields.images.files].map(dataUrl));
    if (text === "" && images.length === 0) return [];
    const parts = [{ type: "text", text }, ...images.map((url) => ({ type: "image_url", image_url: { url } }))];
    return [{ role: "user", content: images.length ? parts : text }];
  }

  function toolResults() {
    return [...part("turns").querySelectorAll("[data-call]")].map((field) => ({ role: "tool", tool_call_id: field.dataset.call, content: field.value }));
  }

  async function wanted() {
    const system = fields.system.value ? [{ role: "system", content: fields.system.value }] : [];
    const body = { model: fields.model.value, messages: [...system, ...turns.map(({ reasoning, ...kept }) => kept), ...toolResults(), ...await newTurn()] };
    if (fields.tools.value.trim()) body.tools = JSON.parse(fields.tools.value).map((one) => (one.type ? one : { type: "function", function: one }));
    if (fields.max_tokens.value) body.max_tokens = Number(fields.max_tokens.value);
    if (fields.stream.checked) body.stream = true;
    return body;
  }

  async function build() {
    let body = null;
    try { body = await wanted(); } catch (error) { problem(`Tools: ${error.message}`); return false; }
    const made = await ask("write", { from: usual, to: fields.dialect.value, text: JSON.stringify(body) });
    problem(made.problem ? [made.path, made.problem].filter(Boolean).join(": ") : "");
    if (made.problem) return false;
    fields.body.value = made.body;
    address = made.path;
    part("path").textContent = `POST ${address}`;
    part("losses").textContent = made.losses.length ? `Lost in this dialect: ${made.losses.map((one) => `${one.what} (${one.how})`).join(", ")}` : "";
    edited = false;
    return true;
  }

  // The answer in the usual dialect, whole or as a stream of chunks, as one message.
  function folded(found) {
    if (found.body) {
      const message = found.body.choices?.[0]?.message ?? {};
      return { error: found.body.error?.message, text: message.content ?? "", reasoning: message.reasoning_content ?? "", calls: message.tool_calls ?? [] };
    }
    const made = { text: "", reasoning: "", calls: [] };
    for (const line of (found.stream ?? "").split("\n")) {
      if (!line.startsWith("data: {")) continue;
      const chunk = JSON.parse(line.slice(6));
      if (chunk.error) made.error = chunk.error.message;
      const delta = chunk.choices?.[0]?.delta ?? {};
      made.text += delta.content ?? "";
      made.reasoning += delta.reasoning_content ?? "";
      for (const call of delta.tool_calls ?? []) {
        const kept = made.calls[call.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } };
        kept.id ||= call.id ?? "";
        kept.function.name ||= call.function?.name ?? "";
        kept.function.arguments += call.function?.arguments ?? "";
      }
    }
    made.calls = made.calls.filter(Boolean);
    return made;
  }

  function shown(role, message) {
    const turn = document.createElement("div");
    turn.className = `turn ${role}`;
    const head = document.createElement("h3");
    head.textContent = role;
    turn.append(head);
    if (message.reasoning) {
      const thought = document.createElement("p");
      thought.className = "reasoning";
      thought.textContent = message.reasoning;
      turn.append(thought);
    }
    turn.append(message.text ?? "");
    for (const url of message.images ?? []) {
      const image = document.createElement("img");
      image.src = url;
      image.alt = "image of the message";
      turn.append(image);
    }
    for (const call of message.calls ?? []) {
      const name = document.createElement("code");
      name.textContent = `${call.function.name}(${call.function.arguments})`;
      turn.append(name);
      if (message.open) {
        const label = document.createElement("label");
        const field = document.createElement("input");
        field.dataset.call = call.id;
        label.append(`Result of ${call.function.name}`, field);
        turn.append(label);
      }
    }
    return turn;
  }

  function show(answer) {
    const made = turns.map((turn) => shown(turn.role, {
      text: typeof turn.content === "string" ? turn.content : turn.content?.[0].text,
      images: Array.isArray(turn.content) ? turn.content.slice(1).map((one) => one.image_url.url) : [],
      reasoning: turn.reasoning, calls: turn.tool_calls,
    }));
    part("turns").replaceChildren(...made, ...(answer ? [shown("assistant", answer)] : []));
  }

  async function read(raw, open) {
    const found = await ask("read", { from: fields.dialect.value, to: usual, text: raw });
    if (found.problem) return null;
    const message = { ...folded(found), open };
    show(message);
    return message;
  }

  async function receive(response) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let raw = "";
    let due = 0;
    let busy = null;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      raw += decoder.decode(piece.value, { stream: true });
      part("raw").textContent = raw.length > MOST_SHOWN ? `${raw.slice(0, MOST_SHOWN)}…` : raw;
      const whole = raw.slice(0, raw.lastIndexOf("\n") + 1);
      if (fields.stream.checked && response.ok && !busy && Date.now() >= due && whole && raw.length < MOST_WHILE_RUNNING) {
        due = Date.now() + WAIT;
        busy = read(whole, false).finally(() => { busy = null; });
      }
    }
    await busy;
    return raw + decoder.decode();
  }

  function refusal(raw) {
    try {
      const { error } = JSON.parse(raw);
      return error.message ?? String(error);
    } catch {
      return "the answer is no JSON";
    }
  }

  function keep(answer) {
    if (answer.text || answer.calls.length) {
      turns.push({ role: "assistant", content: answer.text, ...(answer.calls.length ? { tool_calls: answer.calls } : {}) });
    }
    const open = answer.calls.length > 0;
    if (answer.reasoning && turns.length) turns.at(-1).reasoning = answer.reasoning;
    show(null);
    if (open) part("turns").lastElementChild.replaceWith(shown("assistant", { ...answer, open: true }));
  }

  async function send() {
    if (!edited && !await build()) return;
    const sent = [...toolResults(), ...await newTurn()];
    running = new AbortController();
    part("stop").disabled = false;
    form.dataset.state = "running";
    part("raw").textContent = "";
    const began = performance.now();
    try {
      const headers = { "content-type": "application/json", ...authorized() };
      const response = await fetch(address, { method: "POST", headers, body: fields.body.value, signal: running.signal });
      turns.push(...sent);
      fields.prompt.value = "";
      fields.images.value = "";
      show(null);
      const raw = await receive(response);
      part("raw").textContent = raw.slice(0, MOST_SHOWN);
      const lost = response.headers.get("x-xenoglot-losses");
      part("status").textContent = `status ${response.status}, ${Math.round(performance.now() - began)} ms${lost ? `; losses: ${lost}` : ""}`;
      if (!response.ok) throw new Error(refusal(raw));
      const answer = await read(raw, false);
      problem(answer === null ? "the answer cannot be read; its text is on the right" : answer.error);
      if (answer !== null && !answer.error) keep(answer);
    } catch (error) {
      problem(error.name === "AbortError" ? "stopped" : `the request failed: ${error.message}`);
    }
    running = null;
    part("stop").disabled = true;
    form.dataset.state = "done";
  }

  async function list() {
    try {
      const answer = await fetch("/v1/models", { headers: authorized() });
      if (!answer.ok) return;
      const options = (await answer.json()).data.map((one) => Object.assign(document.createElement("option"), { value: one.id }));
      document.getElementById("models").replaceChildren(...options);
      if (!fields.model.value && options.length) fields.model.value = options[0].value;
    } catch { /* The list is a help; a name can be typed. */ }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) send();
  });
  form.addEventListener("input", (event) => {
    if (event.target === fields.body) { edited = true; return; }
    if (event.target === fields.key) return;
    clearTimeout(timer);
    timer = setTimeout(build, WAIT);
  });
  fields.key.addEventListener("change", list);
  part("stop").addEventListener("click", () => running?.abort());
  part("clear").addEventListener("click", () => { turns = []; show(null); problem(""); build(); });
  if (form.dataset.open) list();
})();
