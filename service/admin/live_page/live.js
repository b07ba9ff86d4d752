// SPDX-License-Identifier: Apache-2.0
// Reads the service's metrics once a second and shows them.

import { cardsOf, longestLatency, late, latencies } from "./figures.js";
import { number } from "./format.js";
import { rate, restarted, Scrape, scrapesOf } from "./metrics.js";
import { span } from "./plots.js";
import { Cards, showLog, showPipelines, showService, showState, showStreams, showWorkers } from "./view.js";

const period = 1000; // ms
const timeout = 5000; // ms, of a request
const windowLength = 10; // s, for rates and quantiles

let scrapes = []; // in the window, the newest last
let baselines = []; // latencies in the last five minutes, at least 5 s apart, the newest last
let points = new Map(); // pipeline -> [{ time, values }] of the last five minutes
let definitions = []; // definitions of the cards
let cards = null;
let selected = null; // name of a pipeline
let status = null; // the last answer of /status
// Pipelines that are late -> p99 of the last five minutes, in ms. Over five minutes, as in the alert, the state does not
// change back and forth. A stall of more than 3 s makes 1% of the results late, and is shown at once.
let slow = new Map();
let goneSince = null;

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(timeout) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

const json = async (path) => (await get(path)).json();

async function scrape() {
  const answer = await get("metrics");
  return new Scrape(await answer.text(), Number(answer.headers.get("Millrace-Collected")));
}

// Adds a scrape, and before it the samples that the service kept while the page did not read: before it was opened, or
// while it slept.
async function follow(newer) {
  const now = Date.now();
  if (scrapes.length && restarted(newer, scrapes.at(-1))) [scrapes, baselines] = [[], []];
  const since = scrapes.at(-1)?.time ?? -Infinity;
  if (newer.time === since) return; // the service answered from its cache
  if (newer.time - since > windowLength)
    for (const older of scrapesOf(await json("history").catch(() => ({ times: [], series: {} }))))
      if (older.time > since && older.time < newer.time && !restarted(newer, older)) add(older, now - 1000 * (newer.time - older.time));
  add(newer, now);
}

// Adds a scrape to the window, and its figures to the points. `at`: its time by the clock of the browser, in ms.
function add(newer, at) {
  scrapes.push(newer);
  while (scrapes.length > 2 && scrapes[1].time <= newer.time - windowLength) scrapes.shift();
  if (!(newer.time < baselines.at(-1)?.time + 5)) baselines.push(latencies(newer));
  while (baselines[0].time < newer.time - span / 1000) baselines.shift();
  if (!cards) {
    definitions = cardsOf(newer);
    cards = new Cards(definitions);
  }
  for (const pipeline of newer.values("millrace_streams", "pipeline")) {
    const values = {};
    for (const { lines } of definitions)
      for (const { key, value } of lines) values[key] = value(newer, scrapes[0], pipeline);
    const kept = (points.get(pipeline) ?? []).filter(({ time }) => time >= at - span);
    points.set(pipeline, [...kept, { time: at, values }]);
  }
}

function draw() {
  if (document.hidden || !cards) return;
  const names = Object.keys(status.pipelines);
  if (!names.includes(selected)) selected = names[0];
  showPipelines(names.map((name) => [name, stateOf(name)]), selected, (name) => {
    selected = name;
    draw();
  });
  const [newer, older] = [scrapes.at(-1), scrapes[0]];
  showService(newer, rate(newer, older, "process_cpu_seconds_total"));
  cards.show(points.get(selected) ?? [], Date.now());
}

function stateOf(pipeline) {
  const state = status.pipelines[pipeline];
  return state === "ready" && slow.has(pipeline) ? "degraded" : state;
}

function showReadiness({ ready, draining, reasons, degraded }) {
  const faults = [...degraded, ...[...slow].map(([pipeline, p99]) =>
    `pipeline ${pipeline}: the p99 of chunk to result in the last 5 min is ${number(p99)} ms, above ${1000 * longestLatency} ms`)];
  if (draining) showState("draining", "stopping", [...reasons, ...faults]);
  else if (!ready) showState("unready", "not ready", [...reasons, ...faults]);
  else if (faults.length) showState("degraded", "degraded", faults);
  else showState("ready", "ready");
}

async function update() {
  // In parallel, so that a slow list does not delay the figures.
  const [newer, state, workers, streams, log] = await Promise.allSettled(
    [scrape(), json("status"), json("workers"), json("streams?order=held&limit=10"), json("log")]);
  if (newer.status === "rejected" || state.status === "rejected") {
    goneSince ??= new Date();
    return showState("gone", `no answer since ${goneSince.toLocaleTimeString()}`, ["the page tries again each second"]);
  }
  goneSince = null;
  status = state.value;
  await follow(newer.value);
  slow = late(scrapes.at(-1), baselines[0]);
  showReadiness(status);
  draw();
  if (document.hidden) return;
  if (workers.status === "fulfilled") showWorkers(workers.value);
  if (streams.status === "fulfilled") showStreams(streams.value);
  if (log.status === "fulfilled") showLog(log.value);
}

document.addEventListener("visibilitychange", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cards?.repaint());

for (;;) {
  const began = performance.now();
  await update().catch(console.error); // after a bad answer the page continues
  const left = Math.max(100, period - (performance.now() - began));
  await new Promise((resolve) => setTimeout(resolve, left));
}
