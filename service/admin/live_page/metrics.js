// SPDX-License-Identifier: Apache-2.0
// Prometheus' text format, and what PromQL computes of it: sums, increases, quantiles. Pure.

const numbers = { "+Inf": Infinity, "-Inf": -Infinity };

// One answer of /metrics: samples by the name of their family.
export class Scrape {
  // `time`: when the service collected them, in seconds of its steady clock.
  constructor(text, time) {
    this.time = time;
    this.families = new Map();
    for (const line of text.split("\n")) {
      const match = /^([\w:]+)(?:\{(.*)\})? (\S+)/.exec(line);
      if (!match) continue; // a comment
      const [, name, labels = "", value] = match;
      if (!this.families.has(name)) this.families.set(name, []);
      this.families.get(name).push({ labels: labelsOf(labels), value: numbers[value] ?? Number(value) });
    }
  }

  // The samples of a family that have these labels.
  samples(name, labels = {}) {
    const wanted = Object.entries(labels);
    return (this.families.get(name) ?? []).filter((one) =>
      wanted.every(([label, value]) => one.labels[label] === value));
  }

  // Their sum; null if there is none.
  sum(name, labels) {
    const samples = this.samples(name, labels);
    return samples.length ? samples.reduce((sum, { value }) => sum + value, 0) : null;
  }

  // The values of a label, in the order of the samples.
  values(name, label) {
    return [...new Set(this.samples(name).map(({ labels }) => labels[label]))];
  }
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
    labels[name] = value.replace(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter));
  return labels;
}

// Whether counters began again between two scrapes.
export function restarted(newer, older) {
  const start = "process_start_time_seconds";
  return newer.time < older.time || newer.sum(start) !== older.sum(start);
}

// By how much counters grew between two scrapes of the same process; null if there are none.
export function increase(newer, older, name, labels) {
  const sum = newer.sum(name, labels);
  return sum === null ? null : sum - (older.sum(name, labels) ?? 0);
}

// The same per second.
export function rate(newer, older, name, labels) {
  const grown = increase(newer, older, name, labels);
  return grown === null || newer.time <= older.time ? null : grown / (newer.time - older.time);
}

// By how much the buckets of a histogram grew: [upper bound, cumulative count], sorted.
export function buckets(newer, older, name, labels) {
  const counts = new Map();
  for (const [scrape, sign] of [[newer, 1], [older, -1]])
    for (const { labels: { le }, value } of scrape.samples(name + "_bucket", labels)) {
      const bound = numbers[le] ?? Number(le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  return [...counts].sort(([a], [b]) => a - b);
}

// As histogram_quantile() of Prometheus: linear within a bucket, the highest finite bound beyond it.
// Null if nothing was counted.
export function quantile(q, counts) {
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = q * total;
  const at = counts.findIndex(([, count]) => count >= rank);
  if (counts[at][0] === Infinity) return counts[at - 1]?.[0] ?? null;
  const [begin, before] = at > 0 ? counts[at - 1] : [0, 0];
  const [end, count] = counts[at];
  return begin + ((end - begin) * (rank - before)) / (count - before);
}
