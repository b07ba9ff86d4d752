// SPDX-License-Identifier: Apache-2.0
// The curves of numeric results: one for a number; in a list or an object, one for each of the first numbers. All have the same
// scale, which the legend states: 0 to 1 for values in this range, wider if a value is outside.

const colors = ["batch", "copy", "handover", "compute"]; // names in page.css, one for each curve
const most = 1000; // results

// The numbers of an answer, by name. A transcript is shown as text.
function numbersOf(data) {
  if (typeof data === "number") return [["result", data]];
  if (typeof data !== "object" || typeof data?.text === "string") return [];
  return Object.entries(data ?? {}).filter(([, value]) => typeof value === "number").slice(0, colors.length);
}

export class Curves {
  constructor(legend) {
    this.legend = legend;
    this.clear();
  }

  clear() {
    this.points = []; // { second, numbers }
    this.names = [];
    [this.lowest, this.highest] = [0, 1];
    this.legend.replaceChildren();
  }

  add({ begin_s, end_s, data }) {
    const numbers = numbersOf(data);
    if (numbers.length === 0) return;
    this.points.push({ second: (begin_s + end_s) / 2, numbers: new Map(numbers) });
    if (this.points.length > most) this.points.shift();
    for (const [name] of numbers)
      if (!this.names.includes(name) && this.names.length < colors.length) this.names.push(name);
    const values = numbers.map(([, value]) => value);
    [this.lowest, this.highest] = [Math.min(this.lowest, ...values), Math.max(this.highest, ...values)];
    this.label();
  }

  label() {
    const named = this.names.map((name, i) => Object.assign(document.createElement("span"), { className: colors[i], textContent: name }));
    const limits = [this.lowest, this.highest].map((value) => Number(value.toPrecision(3)));
    this.legend.replaceChildren(...named, `scale from ${limits[0]} to ${limits[1]}`);
  }

  // Draws the curves between two heights in pixels. `x` gives the place of a second, `color` that of a name.
  paint(context, x, top, bottom, color) {
    context.lineWidth = 1.5;
    this.names.forEach((name, i) => {
      context.strokeStyle = color(colors[i]);
      context.beginPath();
      for (const { second, numbers } of this.points) {
        const part = (numbers.get(name) - this.lowest) / (this.highest - this.lowest);
        if (!Number.isNaN(part)) context.lineTo(x(second), bottom - part * (bottom - top));
      }
      context.stroke();
    });
  }
}
