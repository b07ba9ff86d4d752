// SPDX-License-Identifier: Apache-2.0
// The plot of a card, drawn by dygraphs (global `Dygraph`).

const minute = 60_000;
export const span = 5 * minute;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colors = (count) => Array.from({ length: count }, (_, i) => style(`--line-${i + 1}`));

// The list in the card is the legend. That of dygraphs uses inline styles, which the page's
// Content-Security-Policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

export class Plot {
  // `hovered(i)` is called when the pointer is at point i of the last drawing, and with null when it leaves.
  constructor(element, card, hovered) {
    this.lines = card.lines.length;
    this.logscale = card.logscale;
    const short = (value) => String(Number(value.toPrecision(3)));
    this.plot = new Dygraph(element, this.empty(0), {
      labels: ["time", ...card.lines.map(({ key }) => key)],
      logscale: card.logscale,
      valueRange: this.range([]),
      interactionModel: {}, // no zoom: the window moves every second
      highlightCircleSize: 3,
      strokeWidth: 1.5,
      axisLabelFontSize: 11,
      rightGap: 8,
      highlightCallback: (event, x, points, row) => hovered(row),
      unhighlightCallback: () => hovered(null),
      axes: {
        x: { ticker: (from, to) => minutes(to), axisLabelWidth: 50, drawGrid: false },
        y: { axisLabelFormatter: short, axisLabelWidth: 42, pixelsPerLabel: 24,
          ...(card.logscale ? { ticker: (from, to) => powers(from, to, short) } : {}) },
      },
      ...this.palette(),
    });
  }

  palette() {
    return { colors: colors(this.lines), gridLineColor: style("--grid"), axisLineColor: style("--grid") };
  }

  repaint() {
    this.plot.updateOptions(this.palette());
  }

  empty(now) {
    return [[now, ...Array(this.lines).fill(null)]];
  }

  // `rows` are [time in ms, value of each line...], up to `now`.
  draw(rows, now) {
    const file = rows.length ? rows : this.empty(now);
    this.plot.updateOptions({ file, dateWindow: [now - span, now], valueRange: this.range(rows) });
  }

  // The range of the y axis: from 0 to a little above the highest value; if logarithmic, whole powers of ten.
  range(rows) {
    const values = rows.flatMap((row) => row.slice(1)).filter((value) => value > 0);
    if (values.length === 0) return this.logscale ? [0.01, 10] : [0, 1];
    if (!this.logscale) return [0, Math.max(...values) * 1.15];
    return [10 ** Math.floor(Math.log10(Math.min(...values))), 10 ** Math.ceil(Math.log10(Math.max(...values)) + 0.01)];
  }
}

function minutes(now) {
  return [4, 3, 2, 1].map((ago) => ({ v: now - ago * minute, label: `−${ago} min` }));
}

function powers(from, to, label) {
  const ticks = [];
  for (let power = Math.round(Math.log10(from)); 10 ** power <= to * 1.01; ++power)
    ticks.push({ v: 10 ** power, label: label(10 ** power) });
  return ticks;
}
