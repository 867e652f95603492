// Truncated gradient, as Langford, Li and Zhang print it: eq 3 and Algorithm 1 (docs/theory.md,
// ), with logistic loss. It visits every weight at every truncation; the C++ core gives the
// same weights and visits only those of the row. tests/docs compares the two.
//
//   w <- T1(w - eta L'(p, y) x, eta g_i, theta)     p = w.x
//   g_i = K g if K divides i, else 0
//
// i counts the steps from 1, eta is the learning rate, g the gravity, K the period, theta the
// ceiling; w = 0 at the start and there is no intercept.

"use strict";

globalThis.thresher_learn = (() => {
  /** T1(v, a, theta) of: towards zero by a, not beyond it; v itself if |v| > theta. */
  function shrunk(v, a, theta) {
    if (v >= 0 && v <= theta) return Math.max(0, v - a);
    if (v < 0 && v >= -theta) return Math.min(0, v + a);
    return v;
  }

  /** Rows from a file: numbers of words and labels -1 or 1. Each word of a row of n words has the
   * value 1 / sqrt(n), so that the row has norm 1. */
  function unpacked(part) {
    const starts = [0];
    const words = [];
    for (const differences of part.rows) {
      let word = 0;
      for (const difference of differences) words.push((word += difference));
      starts.push(words.length);
    }
    return {
      count: part.rows.length,
      starts: Uint32Array.from(starts),
      words: Uint16Array.from(words),
      values: Float64Array.from(part.rows, (row) => (row.length ? 1 / Math.sqrt(row.length) : 0)),
      labels: Int8Array.from(part.labels, (label) => (label === "1" ? 1 : -1)),
    };
  }

  /** The prediction p = w.x of a row. */
  function predicted(w, rows, row) {
    const x = rows.values[row];
    let p = 0;
    for (let at = rows.starts[row]; at < rows.starts[row + 1]; at++) p += w[rows.words[at]] * x;
    return p;
  }

  /** The share of rows whose label is not the sign of p; p = 0 predicts 1, as thresher does. */
  function errorShare(w, rows) {
    let wrong = 0;
    for (let row = 0; row < rows.count; row++) {
      if ((predicted(w, rows, row) >= 0 ? 1 : -1) !== rows.labels[row]) wrong++;
    }
    return wrong / rows.count;
  }

  /** The derivative of ln(1 + exp(-p y)) in p (R-1.7: exp of no positive number). */
  function slope(p, y) {
    const m = p * y;
    return m > 0 ? (-y * Math.exp(-m)) / (1 + Math.exp(-m)) : -y / (1 + Math.exp(m));
  }

  /**
   * Learn rows in their order, again and again. After every tenth of a pass, `observe` gets the
   * number of steps, the weights, and the least and largest number of nonzero weights since the
   * last call. Returns the weights.
   */
  function learn(rows, width, { gravity, period, ceiling, rate, passes }, observe = () => {}) {
    const w = new Float64Array(width);
    const every = Math.max(1, Math.floor(rows.count / 10));
    const amount = rate * period * gravity; // eta K g
    let nonzeros = 0;
    let [least, most] = [width, 0];
    let i = 0;
    for (let pass = 0; pass < passes; pass++) {
      for (let row = 0; row < rows.count; row++) {
        i++;
        const u = -rate * slope(predicted(w, rows, row), rows.labels[row]) * rows.values[row];
        for (let at = rows.starts[row]; at < rows.starts[row + 1]; at++) {
          const j = rows.words[at];
          const before = w[j];
          w[j] = before + u;
          nonzeros += (w[j] !== 0) - (before !== 0);
        }
        if (amount > 0 && i % period === 0) {
          nonzeros = 0;
          for (let j = 0; j < width; j++) {
            if (w[j] === 0) continue;
            w[j] = shrunk(w[j], amount, ceiling);
            if (w[j] !== 0) nonzeros++;
          }
        }
        if (nonzeros < least) least = nonzeros;
        if (nonzeros > most) most = nonzeros;
        if (i % every === 0) {
          observe({ steps: i, w, nonzeros, least, most });
          [least, most] = [nonzeros, nonzeros];
        }
      }
    }
    return w;
  }

  return { shrunk, unpacked, errorShare, learn };
})();
