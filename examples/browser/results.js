// SPDX-License-Identifier: Apache-2.0
// The list of results, the newest first: the worker's answer, and the time of the chunk in each stage.

const most = 200; // rows

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// JSON; fractions have six significant digits, which is less than many models give.
const compact = (data) => JSON.stringify(data, (_, value) =>
  (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value));

// Milliseconds with about three significant digits.
const short = (time) => time.toFixed(time < 10 ? 2 : time < 100 ? 1 : 0);

export class Results {
  constructor(body, stages, count) {
    Object.assign(this, { body, stages, count });
    this.clear();
  }

  clear() {
    this.number = 0;
    this.longest = 1; // ms
    this.body.replaceChildren();
    this.stages.replaceChildren();
    this.count.textContent = "";
  }

  add({ begin_s, end_s, flags, data, error, explain }) {
    this.count.textContent = `${++this.number}`;
    const total = explain ? Object.values(explain.ms).reduce((sum, ms) => sum + ms, 0) : null;
    this.body.prepend(element("tr", {},
      element("td", {}, `${begin_s.toFixed(2)}–${end_s.toFixed(2)} s`),
      element("td", {}, ...flags.map((flag) => element("span", { className: "flag" }, flag))),
      element("td", { className: error ? "result error" : "result" }, error ?? compact(data)),
      element("td", { className: "times" }, ...(explain ? this.times(explain, total) : [])),
      element("td", { className: "number" }, explain ? `${short(total)} ms` : "")));
    if (this.body.rows.length > most) this.body.lastChild.remove();
  }

  // A bar with a part for each stage. Its length is relative to the longest total so far.
  times({ slot, batch, rows, trigger, ms }, total) {
    if (!this.stages.hasChildNodes())
      this.stages.append(...Object.keys(ms).map((stage) => element("li", { className: stage }, stage)));
    this.longest = Math.max(this.longest, total);
    const bar = element("div", { className: "bar" });
    for (const [stage, time] of Object.entries(ms)) {
      const part = element("span", { className: stage, title: `${stage}: ${time} ms` });
      part.style.width = `${(100 * time) / this.longest}%`;
      bar.append(part);
    }
    const text = Object.entries(ms).map(([stage, time]) => `${stage} ${short(time)}`).join(" · ");
    return [bar, element("small", {}, `${text} ms`),
      element("small", {}, `batch ${batch}: ${rows} ${rows === 1 ? "row" : "rows"}, ${trigger}; slot ${slot}`)];
  }
}
