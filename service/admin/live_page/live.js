// SPDX-License-Identifier: Apache-2.0
// Reads the service's metrics once a second and shows them.

import { cardsOf } from "./figures.js";
import { rate, restarted, Scrape } from "./metrics.js";
import { span } from "./plots.js";
import { Cards, showLog, showPipelines, showService, showState, showStreams } from "./view.js";

const period = 1000; // ms
const timeout = 5000; // ms, of a request
const windowLength = 10; // s, for rates and quantiles

let scrapes = []; // in the window, the newest last
let points = new Map(); // pipeline -> [{ time, values }] of the last five minutes
let definitions = []; // definitions of the cards
let cards = null;
let selected = null; // name of a pipeline
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

// Adds a scrape to the window, and its figures to the points.
function add(newer) {
  const last = scrapes.at(-1);
  if (last && restarted(newer, last)) scrapes = [];
  else if (last?.time === newer.time) return; // the service answered from its cache
  scrapes.push(newer);
  while (scrapes.length > 2 && scrapes[1].time <= newer.time - windowLength) scrapes.shift();
  if (!cards) {
    definitions = cardsOf(newer);
    cards = new Cards(definitions);
  }
  const now = Date.now();
  for (const pipeline of newer.values("millrace_streams", "pipeline")) {
    const values = {};
    for (const { lines } of definitions)
      for (const { key, value } of lines) values[key] = value(newer, scrapes[0], pipeline);
    const kept = (points.get(pipeline) ?? []).filter(({ time }) => time >= now - span);
    points.set(pipeline, [...kept, { time: now, values }]);
  }
}

function draw() {
  if (document.hidden || !cards) return;
  const names = [...points.keys()];
  selected ??= names[0];
  showPipelines(names, selected, (name) => {
    selected = name;
    draw();
  });
  const [newer, older] = [scrapes.at(-1), scrapes[0]];
  showService(newer, rate(newer, older, "process_cpu_seconds_total"));
  cards.show(points.get(selected) ?? [], Date.now());
}

function showReadiness({ ready, draining, reasons }) {
  if (draining) showState("draining", "stopping", reasons);
  else if (ready) showState("ready", "ready");
  else showState("unready", "not ready", reasons);
}

async function update() {
  // In parallel, so that a slow list does not delay the figures.
  const [newer, status, streams, log] =
    await Promise.allSettled([scrape(), json("status"), json("streams?order=held&limit=10"), json("log")]);
  if (newer.status === "rejected" || status.status === "rejected") {
    goneSince ??= new Date();
    return showState("gone", `no answer since ${goneSince.toLocaleTimeString()}`, ["the page tries again each second"]);
  }
  goneSince = null;
  add(newer.value);
  showReadiness(status.value);
  draw();
  if (document.hidden) return;
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
