// SPDX-License-Identifier: Apache-2.0
// The figures of a pipeline on the page: cards with lines, and the value of each line at a scrape. Pure functions.

import { buckets, increase, quantile, rate } from "./metrics.js";

const wait = "millrace_queue_wait_seconds";
const latency = "millrace_result_latency_seconds";
export const longestLatency = 0.3; // s, of the p99; as in the alert MillraceResultLatencyHigh
const quantiles = [["p50", 0.5], ["p99", 0.99]];

// Cards of { title, unit, lines: [{ key, label, value(newer, older, pipeline) }] }. value() returns a number, or null
// without data. The lines for reasons and stages are those that the scrape contains.
export function cardsOf(scrape) {
  const lines = (name, label, value) =>
    scrape.values(name, label).map((one) => ({ key: `${name}:${one}`, label: words(one), value: value(name, { [label]: one }) }));
  const stages = (q) => ({ lines: lines(wait + "_count", "stage", (_, labels) => quantileOf(q, wait, labels))
    .map((line) => ({ ...line, key: `${line.key}:${q}` })) });
  return [
    card("Streams and workers", "", [
      { key: "streams", label: "open streams", value: gauge("millrace_streams") },
      { key: "free", label: "free slots", value: gauge("millrace_slots", { state: "free" }) },
      { key: "workers", label: "attached workers", value: gauge("millrace_workers") },
    ]),
    card("Signal per second", "s/s", [
      { key: "signal", label: "accepted", value: counter("millrace_ingest_audio_seconds_total") },
    ]),
    card("Chunk to result", "ms", quantiles.map(([name, q]) =>
      ({ key: `latency:${q}`, label: name, value: quantileOf(q, latency) }))),
    card("Median of each stage (p50)", "ms", stages(0.5).lines, true),
    card("p99 of each stage", "ms", stages(0.99).lines, true),
    card("Resets, by reason", "/s", lines("millrace_stream_resets_total", "reason", counter)),
    card("Batches closed, by reason", "/s", lines("millrace_batches_total", "trigger", counter)),
    card("Rows per batch", "", [
      { key: "rows", label: "mean", value: ratio("millrace_batch_rows_sum", "millrace_batch_rows_count") },
    ]),
    card("Padding", "%", [
      { key: "padding", label: "of the frames in batches",
        value: ratio("millrace_batch_frames_padded_total", "millrace_batch_frames_total", 100) },
    ]),
  ];
}

// The part of a scrape that late() needs.
export const latencies = (scrape) => scrape.only(latency + "_bucket");

// The pipelines whose p99 of chunk-to-result between two scrapes is above that of the alert: pipeline -> p99 in ms.
export function late(newer, older) {
  const p99 = quantileOf(0.99, latency);
  const all = newer.values(latency + "_bucket", "pipeline").map((pipeline) => [pipeline, p99(newer, older, pipeline)]);
  return new Map(all.filter(([, value]) => value > 1000 * longestLatency));
}

const card = (title, unit, lines, logscale = false) => ({ title, unit, lines, logscale });
const words = (name) => name.replaceAll("_", " ");

function gauge(name, labels) {
  return (newer, older, pipeline) => newer.sum(name, { pipeline, ...labels });
}

function counter(name, labels) {
  return (newer, older, pipeline) => rate(newer, older, name, { pipeline, ...labels });
}

function ratio(part, whole, factor = 1) {
  return (newer, older, pipeline) => {
    const all = increase(newer, older, whole, { pipeline });
    return all > 0 ? (factor * increase(newer, older, part, { pipeline })) / all : null;
  };
}

// In milliseconds.
function quantileOf(q, name, labels) {
  return (newer, older, pipeline) => {
    const seconds = quantile(q, buckets(newer, older, name, { pipeline, ...labels }));
    return seconds === null ? null : 1000 * seconds;
  };
}
