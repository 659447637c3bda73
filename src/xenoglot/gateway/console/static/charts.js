// Charts from `data-chart`: {"x": [Unix seconds], "series": [{"label", "values"}]}.
"use strict";

(() => {
  const made = new Set();

  function draw(element) {
    const data = JSON.parse(element.dataset.chart);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const strokes = [colour("--accent"), colour("--bad"), colour("--good"), colour("--warn"), colour("--muted")];
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const step = data.x.length > 1 ? data.x[1] - data.x[0] : 3600;
    const bars = uPlot.paths.bars({ size: [0.8, 60] });
    element.replaceChildren();
    const chart = new uPlot({
      width: Math.max(280, element.clientWidth), height: 180,
      scales: { x: { range: (_, low, high) => data.lines ? [low, high] : [low - step / 2, high + step / 2] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, high ?? 1)] } },
      axes: [axis, { ...axis, size: 60 }],
      series: [{}, ...data.series.map((one, index) => ({
        label: one.label, stroke: strokes[index % strokes.length], fill: strokes[index % strokes.length] + "55",
        paths: data.lines ? undefined : bars, points: { show: Boolean(data.lines) && data.x.length < 60 },
      }))],
    }, [data.x, ...data.series.map((one) => one.values)], element);
    made.add({ element, chart });
  }

  function drawAll(root) {
    for (const one of made) if (!one.element.isConnected) { one.chart.destroy(); made.delete(one); }
    for (const element of root.querySelectorAll("[data-chart]")) draw(element);
  }

  document.addEventListener("DOMContentLoaded", () => drawAll(document));
  document.addEventListener("htmx:afterSwap", (event) => drawAll(event.target));
  addEventListener("resize", () => {
    for (const { element, chart } of made) chart.setSize({ width: Math.max(280, element.clientWidth), height: 180 });
  });
})();
