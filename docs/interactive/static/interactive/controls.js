// Range inputs that pick from a list, buttons that set several of them, and what is announced.

"use strict";

globalThis.thresher_controls = (() => {
  /**
   * Bind the controls of a panel.
   *
   * choices: by the name of a control, a list of [value, text]. An input of the type range with
   * data-control="gravity" moves along the list of gravity. A button with
   * data-set="gravity=0.001 period=10" sets controls to values, as `text` writes them without
   * commas. `changed` is called with { name: value } at most once a frame.
   */
  function bound(panel, choices, changed) {
    const ranges = new Map();
    let waiting = false;
    const values = () => {
      const found = {};
      for (const [name, range] of ranges) found[name] = choices[name][range.value][0];
      for (const radio of panel.querySelectorAll("input[type=radio]:checked")) {
        found[radio.dataset.control] = radio.value;
      }
      return found;
    };
    const later = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        changed(values());
      });
    };
    const write = (range) => {
      const text = choices[range.dataset.control][range.value][1];
      range.setAttribute("aria-valuetext", text);
      panel.querySelector(`[data-value-of="${range.dataset.control}"]`).textContent = text;
    };
    for (const range of panel.querySelectorAll("input[type=range]")) {
      const list = choices[range.dataset.control];
      ranges.set(range.dataset.control, range);
      range.min = 0;
      range.max = list.length - 1;
      range.step = 1;
      range.value = place(list, range.dataset.start);
      write(range);
      range.addEventListener("input", () => {
        write(range);
        later();
      });
    }
    for (const radio of panel.querySelectorAll("input[type=radio]")) {
      radio.addEventListener("change", later);
    }
    for (const button of panel.querySelectorAll("button[data-set]")) {
      button.addEventListener("click", () => {
        for (const [name, text] of settings(button.dataset.set)) {
          const range = ranges.get(name);
          if (range) {
            range.value = place(choices[name], text);
            write(range);
          } else {
            panel.querySelector(`input[data-control="${name}"][value="${text}"]`).checked = true;
          }
        }
        later();
      });
    }
    changed(values());
  }

  function settings(text) {
    return text.split(" ").map((pair) => pair.split("="));
  }

  function place(list, text) {
    return list.findIndex((choice) => choice[1].replaceAll(",", "") === text);
  }

  const announcing = new WeakMap();

  /** Show a sentence in a live region, once nothing has changed for half a second. */
  function announced(region, sentence) {
    clearTimeout(announcing.get(region));
    announcing.set(region, setTimeout(() => (region.textContent = sentence), 500));
  }

  /** Lines of a table: texts, or { bar, scale, look } for a bar from the middle or the left. */
  function filled(body, lines) {
    body.replaceChildren(
      ...lines.map((cells) => {
        const row = document.createElement("tr");
        for (const [number, cell] of cells.entries()) {
          const made = document.createElement(number ? "td" : "th");
          if (!number) made.scope = "row";
          if (typeof cell === "string") made.textContent = cell;
          else made.append(...bars(cell));
          row.append(made);
        }
        return row;
      }),
    );
  }

  function bars({ bar, text, scale, look }) {
    const made = document.createElement("span");
    made.className = `ti-bar ${look}`;
    made.style.setProperty("--length", Math.min(1, Math.abs(bar) / scale));
    const written = document.createElement("span");
    written.className = "ti-number";
    written.textContent = text;
    return [written, made];
  }

  return { bound, announced, filled };
})();
