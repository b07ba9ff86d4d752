// SPDX-License-Identifier: Apache-2.0
// Parses Prometheus' text format and computes sums, increases and quantiles like PromQL. Pure functions.

const numbers = { "+Inf": Infinity, "-Inf": -Infinity };

// One answer of /metrics: the samples by the name of their family.
export class Scrape {
  // `time`: when the service collected the samples, in seconds of its steady clock.
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

  // The sum of these samples; null if there are none.
  sum(name, labels) {
    const samples = this.samples(name, labels);
    return samples.length ? samples.reduce((sum, { value }) => sum + value, 0) : null;
  }

  // The same scrape with the samples of one family only.
  only(name) {
    const one = new Scrape("", this.time);
    if (this.families.has(name)) one.families.set(name, this.families.get(name));
    return one;
  }

  // The different values of a label, in the order of the samples.
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

// The scrapes in an answer of /history, the oldest first. A series has a value for each time, or one for all of them.
export function scrapesOf({ times, series }) {
  const all = Object.entries(series);
  return times.map((time, i) => new Scrape(all.map(([name, values]) => `${name} ${values[i] ?? values}`).join("\n"), time));
}

// True if the process restarted between two scrapes, and the counters with it.
export function restarted(newer, older) {
  const start = "process_start_time_seconds";
  return newer.time < older.time || newer.sum(start) !== older.sum(start);
}

// The increase of counters between two scrapes of the same process; null if there are no such counters.
export function increase(newer, older, name, labels) {
  const sum = newer.sum(name, labels);
  return sum === null ? null : sum - (older.sum(name, labels) ?? 0);
}

// The increase per second; null also if no time has passed.
export function rate(newer, older, name, labels) {
  const grown = increase(newer, older, name, labels);
  return grown === null || newer.time <= older.time ? null : grown / (newer.time - older.time);
}

// The increases of the buckets of a histogram: [upper bound, cumulative count], sorted by bound.
export function buckets(newer, older, name, labels) {
  const counts = new Map();
  for (const [scrape, sign] of [[newer, 1], [older, -1]])
    for (const { labels: { le }, value } of scrape.samples(name + "_bucket", labels)) {
      const bound = numbers[le] ?? Number(le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  return [...counts].sort(([a], [b]) => a - b);
}

// Like histogram_quantile() of Prometheus: linear within a bucket; in the last bucket, its lower bound.
// Null if the counts are 0.
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
