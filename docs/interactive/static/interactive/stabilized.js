// The panel of the stabilized rule: shows what make.py computed for the setting that is chosen.

"use strict";

(() => {
  const { chart, grouped } = globalThis.thresher_draw;
  const { bound, announced, filled } = globalThis.thresher_controls;
  const grid = globalThis.thresher_grid;
  const { words } = globalThis.thresher_newsgroups;

  const panel = document.getElementById("ti-stabilized");
  const part = (name) => panel.querySelector(`[data-part="${name}"]`);

  /** The values that a parameter has in the grid, with their texts. */
  function choices(curve, name) {
    const values = [...new Set(grid[curve].map((point) => point[name]))];
    return values.map((value) => [value, value === null ? "auto" : grouped(value)]);
  }

  // by the name of a control; controls of different curves have different names
  const CONTROLS = {
    size: ["robust", "target_nnz"],
    share: ["robust", "rejection"],
    rejection: ["paper", "rejection"],
    annealing: ["paper", "annealing"],
    keep: ["paper", "keep"],
    gravity: ["truncated", "gravity"],
  };
  const CHOICES = Object.fromEntries(
    Object.entries(CONTROLS).map(([control, [curve, name]]) => [control, choices(curve, name)]),
  );
  CHOICES.gravity = CHOICES.gravity.map(([value]) => [value, String(value)]);

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  for (const points of Object.values(grid)) {
    for (const point of points) {
      point.size = mean(point.nonzeros);
      point.percent = mean(point.error);
    }
  }

  function chosen(values) {
    const mine = Object.entries(CONTROLS).filter(([, [curve]]) => curve === values.rule);
    return grid[values.rule].find((point) =>
      mine.every(([control, [, name]]) => point[name] === values[control]),
    );
  }

  function changed(values) {
    const point = chosen(values);
    for (const group of panel.querySelectorAll("[data-of-rule]")) {
      group.hidden = group.dataset.ofRule !== values.rule;
    }
    const size = grouped(Math.round(point.size));
    part("nonzeros").textContent = size;
    part("error").textContent = point.percent.toFixed(1);
    part("kappa").textContent = point.kappa.toFixed(2);
    announced(
      part("announced"),
      `On average ${size} words have a weight. The test error is ${point.percent.toFixed(1)} ` +
        `percent, kappa between the runs is ${point.kappa.toFixed(2)}.`,
    );
    drawPoints(part("chart-error"), values.rule, point, {
      of: (p) => p.percent,
      range: [Math.min(...point.error), Math.max(...point.error)],
      axis: { from: 0, to: 52, ticks: [0, 10, 20, 30, 40, 50].map((n) => [n, String(n)]) },
      says: `Test error against the number of words; chosen: ${point.percent.toFixed(1)} percent`,
    });
    drawPoints(part("chart-kappa"), values.rule, point, {
      of: (p) => p.kappa,
      range: [point.kappa, point.kappa],
      axis: { from: 0, to: 1.02, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1].map((n) => [n, String(n)]) },
      says: `Kappa between runs against the number of words; chosen: ${point.kappa.toFixed(2)}`,
    });
    part("left").hidden = !point.left;
    if (point.left) drawLeft(point);
    const scale = Math.max(...point.words.map((word) => Math.abs(word[1])));
    filled(
      part("words"),
      point.words.map(([j, weight, share, probability]) => [
        words[j],
        {
          bar: weight,
          text: weight.toFixed(2).replace("-", "−"),
          scale,
          look: weight > 0 ? "ti-mac" : "ti-pc",
        },
        `${Math.round(10 * share)} / 10`,
        probability === undefined ? "–" : probability.toFixed(2),
      ]),
    );
  }

  const TENS = [10, 100, 1000].map((n) => [n, grouped(n)]);
  const MANY = [10, 100, 1000, 10000].map((n) => [n, grouped(n)]);

  function drawPoints(figure, rule, point, { of, range, axis, says }) {
    const shown = grid[rule].map((p) => ({ x: p.size, y: of(p), look: "ti-other" }));
    const now = { x: point.size, y: of(point), low: range[0], high: range[1], look: "ti-now" };
    chart(figure, {
      says,
      height: 220,
      x: { from: 4, to: words.length, log: true, ticks: TENS, label: "words with a weight" },
      y: axis,
      lines: [{ points: grid.truncated.map((p) => [p.size, of(p)]), look: "ti-plain" }],
      dots: [...shown, now],
    });
  }

  function drawLeft({ left }) {
    const points = [[10, words.length]];
    for (const [steps, count] of left) points.push([steps, points.at(-1)[1]], [steps, count]);
    chart(part("chart-left"), {
      says: `Words that are left along the steps of one run, at the end ${left.at(-1)[1]}`,
      height: 190,
      x: { from: 10, to: 30000, log: true, ticks: MANY, label: "steps of a path" },
      y: {
        from: 0, to: words.length * 1.03,
        ticks: [0, 500, 1000].map((n) => [n, grouped(n)]),
      },
      lines: [{ points, look: "ti-now" }],
    });
  }

  bound(panel, CHOICES, changed);
})();
