// One request: counterparts of a field light up, events of streams are scrolled through, the request is sent again.
"use strict";

(() => {
  const SHOWN = 60;
  const MOST_CHARACTERS = 200000;

  function reveal(element) {
    const box = element.closest(".tree");
    if (box === null) return;
    const place = element.getBoundingClientRect();
    const frame = box.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) box.scrollTop += place.top - frame.top - frame.height / 3;
  }

  function select(group, chosen) {
    for (const element of document.querySelectorAll(".field.lit")) element.classList.remove("lit");
    for (const element of document.querySelectorAll(`[data-group="${CSS.escape(group)}"]`)) {
      element.classList.add("lit");
      if (element !== chosen) reveal(element);
    }
  }

  async function load(scrubber) {
    const range = scrubber.querySelector("input");
    const output = scrubber.querySelector("output");
    const list = scrubber.querySelector(".events");
    let events;
    try {
      const answer = await fetch(scrubber.dataset.events);
      if (!answer.ok) throw new Error(`${answer.status}`);
      events = await answer.json();
    } catch (error) {
      output.textContent = `not loaded: ${error.message}`;
      return;
    }
    const show = () => {
      const end = Number(range.value);
      output.textContent = `${end.toLocaleString()} of ${events.length.toLocaleString()}`;
      list.hidden = end === 0;
      const begin = Math.max(0, end - SHOWN);
      list.start = begin + 1;
      list.replaceChildren(...events.slice(begin, end).map(([name, data]) => {
        const item = document.createElement("li");
        const label = document.createElement("b");
        label.textContent = name;
        item.append(label, name ? " " : "", data);
        return item;
      }));
      list.scrollTop = list.scrollHeight;
    };
    range.max = events.length;
    range.disabled = false;
    range.addEventListener("input", show);
    show();
  }

  function changed(text, route, model) {
    const body = JSON.parse(text);
    const path = route.replace(/\{\+?model\}/, () => encodeURIComponent(model).replaceAll("%2F", "/"));
    return [path, JSON.stringify(path === route ? { ...body, model } : body)];
  }

  async function replay(form) {
    const section = document.querySelector("[data-answers]");
    const shown = section.querySelector("[data-new]");
    const status = section.querySelector("[data-status]");
    const old = section.querySelector("[data-old]");
    const made = section.querySelector("[data-request]");
    section.hidden = false;
    made.hidden = true;
    shown.textContent = "";
    status.textContent = "…";
    fetch(old.dataset.text).then((answer) => answer.text()).then((text) => { old.textContent = text.slice(0, MOST_CHARACTERS); });
    const headers = { "content-type": "application/json" };
    if (form.elements.key.value !== "") headers.authorization = `Bearer ${form.elements.key.value}`;
    try {
      const text = form.querySelector("[data-sent]").textContent;
      const [path, body] = changed(text, form.dataset.replay, form.elements.model.value.trim());
      const begun = performance.now();
      const answer = await fetch(path, { method: "POST", headers, body });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      status.textContent = `${answer.status}`;
      for (let size = 0; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (size < MOST_CHARACTERS) shown.append(value.slice(0, MOST_CHARACTERS - size));
        size += value.length;
      }
      const id = answer.headers.get("x-request-id"); // it has a page once it has ended
      made.hidden = id === null;
      if (id !== null) made.href = made.dataset.request + encodeURIComponent(id);
      status.textContent = `${answer.status}, ${Math.round(performance.now() - begun)} ms`;
    } catch (error) {
      status.textContent = `failed: ${error.message}`;
    }
  }

  document.addEventListener("click", (event) => {
    const field = event.target.closest("[data-group]");
    if (field !== null) select(field.dataset.group, field);
    const link = event.target.closest("[data-to]");
    if (link !== null) document.getElementById(link.dataset.to)?.classList.add("found");
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-replay]")) {
      event.preventDefault();
      replay(event.target);
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const scrubber of document.querySelectorAll("[data-events]")) load(scrubber);
  });
})();
