// The page Translate: translates what is typed, marks what is lost, keeps everything in the fragment of the address.
"use strict";

(() => {
  const WAIT = 200;
  const MOST = 4_000_000;
  const form = document.querySelector("[data-translate]");
  const fields = form.elements;
  const marks = form.querySelector("[data-marks]");
  const examples = JSON.parse(form.dataset.examples);
  let timer = 0;
  let running = null;

  const token = () => JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");

  async function deflated(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    let binary = "";
    for (const byte of new Uint8Array(await new Response(stream).arrayBuffer())) binary += String.fromCharCode(byte);
    return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  async function inflated(fragment) {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const stream = new Blob([Uint8Array.from(binary, (one) => one.charCodeAt(0))]).stream();
    const reader = stream.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const pieces = [];
    for (let size = 0, piece = await reader.read(); !piece.done; piece = await reader.read()) {
      size += piece.value.length;
      if (size > MOST) throw new RangeError("too long");
      pieces.push(piece.value);
    }
    return new Blob(pieces).text();
  }

  const state = () => ({ from: fields.from.value, to: fields.to.value, text: fields.text.value, target: fields.target.value });

  function mark(losses) {
    const text = fields.text.value;
    const tree = losses.length ? jsonRanges.parse(text) : null;
    const ranges = tree ? losses.map((one) => jsonRanges.find(tree, one)) : losses.map(() => null);
    const sorted = ranges.filter(Boolean).sort((a, b) => a[0] - b[0]);
    const pieces = [];
    let at = 0;
    for (const [start, end] of sorted) {
      if (start < at) continue;
      const made = document.createElement("mark");
      made.textContent = text.slice(start, end);
      pieces.push(text.slice(at, start), made);
      at = end;
    }
    marks.replaceChildren(...pieces, `${text.slice(at)}\n`);
    marks.scrollTop = fields.text.scrollTop;
    return ranges;
  }

  function list(losses, ranges) {
    const rows = losses.map((one, index) => {
      const row = document.createElement("li");
      const what = document.createElement(ranges[index] ? "button" : "code");
      what.textContent = one.what;
      if (ranges[index]) {
        what.type = "button";
        what.className = "quiet";
        what.addEventListener("click", () => {
          fields.text.focus();
          fields.text.setSelectionRange(...ranges[index]);
        });
      }
      const how = document.createElement("strong");
      how.textContent = ` ${one.how}`;
      how.className = one.how === "dropped" ? "bad" : "warn";
      const where = document.createElement("code");
      where.textContent = one.where;
      row.append(what, how, " at ", where, one.why ? `: ${one.why}` : "");
      return row;
    });
    form.querySelector("[data-losses]").replaceChildren(...rows);
  }

  function show(found) {
    const losses = found.losses ?? [];
    form.querySelector("[data-problem]").textContent = found.problem ? [found.path, found.problem].filter(Boolean).join(": ") : "";
    if (found.text !== undefined) document.getElementById("translated").textContent = found.text;
    form.querySelector("[data-none]").hidden = losses.length > 0 || found.text === undefined;
    list(losses, mark(losses));
    form.dataset.state = "done";
  }

  async function translate() {
    const wanted = state();
    history.replaceState(null, "", `#${await deflated(JSON.stringify(wanted))}`);
    if (wanted.text.trim() === "") return show({ text: "" });
    running?.abort();
    running = new AbortController();
    try {
      const headers = { "content-type": "application/json", ...token() };
      const answer = await fetch(form.dataset.translate, { method: "POST", headers, body: JSON.stringify(wanted), signal: running.signal });
      show(answer.ok ? await answer.json() : { problem: `the gateway answered with status ${answer.status}; reload the page` });
    } catch (error) {
      if (error.name !== "AbortError") show({ problem: "the gateway cannot be reached" });
    }
  }

  function later() {
    form.dataset.state = "typing";
    mark([]);
    clearTimeout(timer);
    timer = setTimeout(translate, WAIT);
  }

  async function restore() {
    try {
      const found = JSON.parse(await inflated(location.hash.slice(1)));
      for (const name of ["from", "to", "text", "target"]) if (typeof found[name] === "string") fields[name].value = found[name];
      for (const name of ["from", "to"]) if (fields[name].selectedIndex < 0) fields[name].selectedIndex = 0;
      if (fields.target.value) form.querySelector("details").open = true;
    } catch {
      fields.text.value = examples[fields.from.value];
    }
    translate();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target === fields.from && Object.values(examples).includes(fields.text.value)) {
      fields.text.value = examples[fields.from.value];
    }
    if (event.target.dataset.provider !== undefined || event.target === fields.to) {
      const chosen = form.querySelector("[data-provider]");
      const facts = JSON.parse(chosen.dataset.provider)[chosen.value];
      if (facts) fields.target.value = JSON.stringify(facts[fields.to.value] ?? {});
      else if (event.target === chosen) fields.target.value = "";
    }
    later();
  });
  fields.text.addEventListener("scroll", () => { marks.scrollTop = fields.text.scrollTop; });
  form.querySelector("[data-swap]").addEventListener("click", () => {
    const made = document.getElementById("translated").textContent;
    [fields.from.value, fields.to.value] = [fields.to.value, fields.from.value];
    if (made) fields.text.value = made;
    translate();
  });
  form.querySelector("[data-example]").addEventListener("click", () => { fields.text.value = examples[fields.from.value]; translate(); });
  form.querySelector("[data-link]").addEventListener("click", async (event) => {
    const button = event.target;
    await navigator.clipboard.writeText(`${location.origin}${location.pathname}#${await deflated(JSON.stringify(state()))}`);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy link"; }, 1500);
  });
  addEventListener("hashchange", restore);
  restore();
})();
