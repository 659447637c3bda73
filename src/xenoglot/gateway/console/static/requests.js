// The list of requests: rows of requests that end while "Live" is pressed, and the filters in the link to the file.
"use strict";

(() => {
  const MOST_ROWS = 200;
  let source = null;

  function query() {
    const given = new URLSearchParams(new FormData(document.querySelector("form.filters")));
    for (const [name, value] of [...given]) if (value === "") given.delete(name);
    return given;
  }

  function cell(row, text, kind) {
    const made = row.insertCell();
    made.textContent = text ?? "–";
    if (kind) made.className = kind;
    return made;
  }

  const duration = (ms) => (ms === null || ms === undefined ? "–" : ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms > 0 && ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`);

  function add(body, one) {
    const row = body.insertRow(0);
    const link = document.createElement("a");
    link.href = `/console/requests/${encodeURIComponent(one.id)}`;
    link.textContent = new Date(one.at * 1000).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
    cell(row, "").replaceChildren(link);
    const failed = one.failure || (one.status ?? 0) >= 400;
    cell(row, [one.status ?? "–", one.failure].filter(Boolean).join(" ")).className = failed ? "bad" : "good";
    cell(row, one.model);
    cell(row, one.upstream_dialect && one.upstream_dialect !== one.dialect ? `${one.dialect} → ${one.upstream_dialect}` : one.dialect);
    cell(row, one.upstream);
    cell(row, [one.tenant, one.key].filter(Boolean).join(" "));
    cell(row, duration(one.ttfb_ms), "n");
    cell(row, duration(one.total_ms), "n");
    cell(row, `${one.input ?? "–"} / ${one.output ?? "–"}`, "n");
    cell(row, one.cost === null || one.cost === undefined ? "–" : `${(one.cost / 1e6).toFixed(6)} ${one.currency ?? ""}`, "n");
    cell(row, one.losses || "", "n");
    while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
  }

  function follow(button) {
    source = new EventSource(`${button.dataset.live}?${query()}`);
    source.addEventListener("request", (event) => {
      const body = document.querySelector("[data-rows]");
      if (body.rows.length === 1 && body.querySelector("td[colspan]")) body.deleteRow(0);
      add(body, JSON.parse(event.data));
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // else the browser connects again
      end(button);
      document.querySelector("form.filters").requestSubmit(); // without a session, it leads to the page to sign in
    });
    button.setAttribute("aria-pressed", "true");
  }

  function end(button) {
    source?.close();
    source = null;
    button.setAttribute("aria-pressed", "false");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-live]");
    if (button !== null) source === null ? follow(button) : end(button);
  });

  document.addEventListener("change", () => {
    const file = document.querySelector("[data-export]");
    file.href = `${file.dataset.export}?${query()}`;
    const live = document.querySelector("[data-live]");
    if (source !== null) { end(live); follow(live); }
  });

  addEventListener("pagehide", () => source?.close());
})();
