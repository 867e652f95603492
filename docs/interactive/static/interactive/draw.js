// Charts as SVG, drawn for the width that their figure has, and drawn again when it changes.

"use strict";

globalThis.thresher_draw = (() => {
  const SPACE = { left: 46, right: 10, top: 8, bottom: 38 };

  function element(name, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  }

  /** The pixel of a value on an axis { from, to, log }. */
  function placed(axis, low, high) {
    const of = axis.log ? Math.log10 : (value) => value;
    const [from, to] = [of(axis.from), of(axis.to)];
    return (value) => low + ((of(value) - from) / (to - from)) * (high - low);
  }

  function path(points, x, y) {
    return points.map(([a, b], n) => `${n ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`);
  }

  /**
   * Draw a chart into a figure that has an <svg>.
   *
   * spec: `says`, what the picture shows, in words; `height`; the axes `x` and `y`, each
   * { from, to, label, ticks: [[value, text]], log }; and what is drawn, from the back:
   * `bands`: { points: [[x, low, high]], look }, `lines`: { points: [[x, y]], look },
   * `marks`: { at, look } (upright lines), `rug`: values of x,
   * `dots`: { x, y, low, high, look }, with a whisker from low to high.
   * A look is a class of interactive.css.
   */
  function chart(figure, spec) {
    figure.thresherChart = spec;
    if (!figure.thresherWatched) {
      figure.thresherWatched = new ResizeObserver(() => drawn(figure));
      figure.thresherWatched.observe(figure);
    }
    drawn(figure);
  }

  function drawn(figure) {
    const spec = figure.thresherChart;
    const [width, height] = [figure.clientWidth, spec.height];
    if (width < 100) return;
    const svg = figure.querySelector("svg");
    const x = placed(spec.x, SPACE.left, width - SPACE.right);
    const y = placed(spec.y, height - SPACE.bottom, SPACE.top);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", spec.says);
    svg.replaceChildren(...axes(spec, x, y, width, height));
    for (const { points, look } of spec.bands ?? []) {
      const upper = points.map(([a, , high]) => [a, high]);
      const lower = points.map(([a, low]) => [a, low]).reverse();
      const d = `${path([...upper, ...lower], x, y).join("")}Z`;
      svg.append(element("path", { class: look, d }));
    }
    for (const { at, look } of spec.marks ?? []) {
      const line = { x1: x(at), x2: x(at), y1: SPACE.top, y2: height - SPACE.bottom };
      svg.append(element("line", { class: look, ...line }));
    }
    for (const { points, look } of spec.lines ?? []) {
      svg.append(element("path", { class: look, d: path(points, x, y).join("") }));
    }
    if (spec.rug) {
      const foot = height - SPACE.bottom;
      const d = spec.rug.map((value) => `M${x(value).toFixed(1)} ${foot}v-7`).join("");
      svg.append(element("path", { class: "ti-rug", d }));
    }
    for (const { x: a, y: b, low, high, look } of spec.dots ?? []) {
      if (low !== undefined) {
        const whisker = { x1: x(a), x2: x(a), y1: y(low), y2: y(high) };
        svg.append(element("line", { class: `${look} ti-whisker`, ...whisker }));
      }
      const r = low === undefined ? 3 : 6;
      svg.append(element("circle", { class: look, cx: x(a), cy: y(b), r }));
    }
  }

  function axes(spec, x, y, width, height) {
    const found = [];
    const foot = height - SPACE.bottom;
    for (const [value, text] of spec.y.ticks) {
      const line = { x1: SPACE.left, x2: width - SPACE.right, y1: y(value), y2: y(value) };
      found.push(element("line", { class: "ti-grid", ...line }));
      const place = { x: SPACE.left - 6, y: y(value) + 4, "text-anchor": "end" };
      found.push(element("text", place, text));
    }
    for (const [value, text] of spec.x.ticks) {
      const line = { x1: x(value), x2: x(value), y1: foot, y2: foot + 4 };
      found.push(element("line", { class: "ti-grid", ...line }));
      const inside = Math.min(x(value), width - 4 * text.length); // half of the text's width
      found.push(element("text", { x: inside, y: foot + 17, "text-anchor": "middle" }, text));
    }
    const middle = (SPACE.left + width - SPACE.right) / 2;
    const place = { x: middle, y: height - 4, "text-anchor": "middle" };
    found.push(element("text", place, spec.x.label));
    return found;
  }

  /** A number of two significant digits, without an exponent. */
  function short(value) {
    return String(Number(value.toPrecision(2)));
  }

  function grouped(count) {
    return count.toLocaleString("en-US");
  }

  /** Round ticks from 0 to a number. */
  function ticks(to, write = short) {
    const raw = to / 4;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.99);
    const found = [];
    for (let n = 0; n * step <= to * 1.001; n++) found.push([n * step, write(n * step)]);
    return found;
  }

  return { chart, short, grouped, ticks };
})();
