// What every page has: times in the browser's own zone, the choice of light or dark, values to copy.
"use strict";

(() => {
  const root = document.documentElement;
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  function localTimes(element) {
    for (const time of element.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (!Number.isNaN(moment.valueOf())) {
        time.title = time.dateTime;
        time.textContent = moment.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
      }
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button === null) return;
    if ("themeSwitch" in button.dataset) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
    } else if (button.dataset.copy !== undefined) {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => {
        const said = button.textContent;
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = said; }, 1500);
      });
    }
  });

  document.addEventListener("DOMContentLoaded", () => localTimes(document));
  document.addEventListener("htmx:afterSwap", (event) => localTimes(event.target));
})();
