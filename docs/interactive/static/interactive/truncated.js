// The panel of truncated gradient: learns again whenever a control moves.

"use strict";

(() => {
  const { learn, unpacked, errorShare, shrunk } = globalThis.thresher_learn;
  const { chart, short, grouped, ticks } = globalThis.thresher_draw;
  const { bound, announced, filled } = globalThis.thresher_controls;
  const { words, train, test } = globalThis.thresher_newsgroups;

  const [RATE, PASSES, SHOWN] = [1, 10, 20];
  const ENDLESS = "none";
  const gravities = [1e-5, 1e-4, 1e-3, 1e-2].flatMap((ten) =>
    [1, 1.5, 2, 3, 5, 7].map((n) => Number((n * ten).toPrecision(2))),
  );
  const CHOICES = {
    gravity: [0, ...gravities.filter((g) => g <= 0.03)].map((g) => [g, plain(g)]),
    period: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((K) => [K, grouped(K)]),
    ceiling: [
      ...[0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].map((theta) => [theta, String(theta)]),
      [Infinity, ENDLESS],
    ],
  };

  /** A small number without an exponent, so 0.00001 and not 1e-5. */
  function plain(value) {
    return value === 0 ? "0" : value.toFixed(8).replace(/0+$/, "");
  }

  const rows = unpacked(train);
  const testRows = unpacked(test);
  const steps = rows.count * PASSES;
  const panel = document.getElementById("ti-truncated");
  const part = (name) => panel.querySelector(`[data-part="${name}"]`);

  function learned(params) {
    const trace = [];
    const w = learn(rows, words.length, { ...params, rate: RATE, passes: PASSES }, (seen) =>
      trace.push({
        steps: seen.steps,
        nonzeros: seen.nonzeros,
        least: seen.least,
        most: seen.most,
        error: 100 * errorShare(seen.w, testRows),
      }),
    );
    return { w, trace };
  }

  const plainSgd = learned({ gravity: 0, period: 1, ceiling: Infinity });

  function changed(params) {
    const { w, trace } = learned(params);
    const last = trace.at(-1);
    const share = Math.round((100 * last.nonzeros) / words.length);
    part("nonzeros").textContent = grouped(last.nonzeros);
    part("error").textContent = last.error.toFixed(1);
    announced(
      part("announced"),
      `${grouped(last.nonzeros)} of ${grouped(words.length)} words have a weight, ` +
        `${share} percent. ` +
        `The test error is ${last.error.toFixed(1)} percent.`,
    );
    drawSteps(trace, last);
    drawShrinkage(params, w);
    const order = [...w.keys()].filter((j) => w[j]).sort((a, b) => Math.abs(w[b]) - Math.abs(w[a]));
    const scale = Math.max(...order.slice(0, 1).map((j) => Math.abs(w[j])));
    filled(
      part("words"),
      order.slice(0, SHOWN).map((j) => {
        const look = w[j] > 0 ? "ti-mac" : "ti-pc";
        return [words[j], { bar: w[j], text: w[j].toFixed(2).replace("-", "−"), scale, look }];
      }),
    );
    const rest = order.length - SHOWN;
    part("rest").textContent = order.length
      ? rest > 0 ? `and ${grouped(rest)} more` : ""
      : "No word has a weight. Every message is taken for one on Macs.";
  }

  function drawSteps(trace, last) {
    const x = {
      from: 0, to: steps, label: "steps (messages learned)",
      ticks: ticks(steps, (n) => grouped(n)),
    };
    chart(part("chart-nonzeros"), {
      says: `Words with a weight along the steps, at the end ${last.nonzeros}`,
      height: 190,
      x,
      y: { from: 0, to: words.length * 1.03, ticks: ticks(words.length, (n) => grouped(n)) },
      bands: [{ points: trace.map((t) => [t.steps, t.least, t.most]), look: "ti-band" }],
      lines: [
        { points: plainSgd.trace.map((t) => [t.steps, t.nonzeros]), look: "ti-plain" },
        { points: trace.map((t) => [t.steps, t.nonzeros]), look: "ti-now" },
      ],
    });
    chart(part("chart-error"), {
      says: `Test error in percent along the steps, at the end ${last.error.toFixed(1)}`,
      height: 190,
      x,
      y: { from: 0, to: 52, ticks: ticks(50) },
      lines: [
        { points: plainSgd.trace.map((t) => [t.steps, t.error]), look: "ti-plain" },
        { points: trace.map((t) => [t.steps, t.error]), look: "ti-now" },
      ],
    });
  }

  function meaning(amount, ceiling) {
    if (amount === 0) return "Gravity is 0: weights are not shrunk, this is plain SGD.";
    if (amount >= ceiling) {
      return "η K g is at least θ: weights up to θ become 0, larger ones stay. This is rounding.";
    }
    if (ceiling === Infinity) {
      return "There is no ceiling: all weights are shrunk, as by an l1 penalty.";
    }
    return "Weights up to θ are shrunk, larger ones stay.";
  }

  function drawShrinkage({ gravity, period, ceiling }, w) {
    const amount = RATE * period * gravity;
    const wanted = Math.max(2 * amount, ceiling === Infinity ? 0 : 1.5 * ceiling, 0.1);
    const to = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].find((size) => size >= wanted);
    const points = [];
    const edges = [-to, -Math.min(ceiling, to), -amount, 0, amount, Math.min(ceiling, to), to];
    for (const edge of edges.filter((v) => Math.abs(v) <= to).sort((a, b) => a - b)) {
      // on both sides of the jump at the ceiling
      const beside = to * 1e-6;
      for (const v of [edge - beside, edge, edge + beside]) {
        points.push([v, shrunk(v, amount, ceiling)]);
      }
    }
    const sides = [-to, -to / 2, 0, to / 2, to].map((v) => [v, short(v).replace("-", "−")]);
    const factors = `${RATE} × ${grouped(period)} × ${plain(gravity)}`;
    part("amount").textContent = `η K g = ${factors} = ${short(amount)}`;
    part("meaning").textContent = meaning(amount, ceiling);
    chart(part("chart-shrinkage"), {
      says: `Truncation takes ${short(amount)} from a weight of at most ${ceiling}`,
      height: 230,
      x: { from: -to, to, ticks: sides, label: "weight before; short lines: the final weights" },
      y: { from: -to, to, ticks: sides },
      marks: ceiling <= to ? [-ceiling, ceiling].map((at) => ({ at, look: "ti-ceiling" })) : [],
      lines: [
        { points: [[-to, -to], [to, to]], look: "ti-plain" },
        { points, look: "ti-now" },
      ],
      rug: [...w].filter((v) => v && Math.abs(v) <= to),
    });
  }

  bound(panel, CHOICES, changed);
})();
