// SPDX-License-Identifier: Apache-2.0
// The view of the page. Only this file changes the document.

import { bytes, duration, number } from "./format.js";
import { Plot } from "./plots.js";

const $ = (id) => document.getElementById(id);

// Makes an element with properties and children. Text is never parsed as HTML.
function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function showState(kind, text, reasons = []) {
  $("state").className = `state ${kind}`;
  $("state").textContent = text;
  $("reasons").replaceChildren(...reasons.map((reason) => element("li", {}, reason)));
  document.body.classList.toggle("stale", kind === "gone");
  document.title = kind === "ready" ? "Millrace" : `${text} – Millrace`;
}

// Shows the figures of the whole service.
export function showService(scrape, cpu) {
  const labels = scrape.samples("millrace_build_info")[0]?.labels ?? {};
  const facts = [
    ["version", labels.version ?? "–"],
    ["connections", number(scrape.sum("millrace_ingest_connections"))],
    ["CPU", cpu === null ? "–" : `${number(100 * cpu)} %`],
    ["memory", bytes(scrape.sum("process_resident_memory_bytes"))],
    ["warnings", number(scrape.sum("millrace_log_messages_total"))],
  ];
  $("service").replaceChildren(...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

// Each state has a shape besides its colour.
const shapes = { ready: "●", degraded: "▲", unready: "■" };

// `pipelines` are [name, state].
export function showPipelines(pipelines, selected, select) {
  const nav = $("pipelines");
  nav.hidden = pipelines.length < 2;
  const now = [...pipelines, selected].join("\n");
  if (nav.dataset.shown === now) return; // unchanged: do not replace a button under the pointer
  nav.dataset.shown = now;
  nav.replaceChildren(...pipelines.map(([name, state]) => {
    const text = state === "unready" ? "not ready" : state;
    const dot = element("span", { className: `dot ${state}`, role: "img", ariaLabel: text, title: text }, shapes[state]);
    return element("button", { type: "button", ariaPressed: String(name === selected), onclick: () => select(name) }, dot, name);
  }));
}

// The cards of one pipeline, each with a plot.
export class Cards {
  constructor(cards) {
    this.cards = cards.map((card) => this.make(card));
    $("cards").replaceChildren(...this.cards.map(({ section }) => section));
    for (const card of this.cards)
      card.plot = new Plot(card.canvas, card, (row) => this.hover(card, row));
  }

  make(card) {
    const values = card.lines.map(({ key }) => {
      const value = element("output", {}, "–");
      value.dataset.figure = key;
      return value;
    });
    const moment = element("small", {});
    const canvas = element("div", { className: "plot" });
    const lines = card.lines.map(({ label }, i) =>
      element("li", { className: `line-${i + 1}` }, element("span", {}, label), values[i], element("i", {}, card.unit)));
    const section = element("section", { className: "card" },
      element("h2", {}, card.title, moment), element("ul", {}, ...lines), canvas);
    return { ...card, section, values, moment, canvas, rows: [], hovered: null };
  }

  // `points` are { time, values by key } of the last five minutes; the last one is the present.
  show(points, now) {
    for (const card of this.cards) {
      card.rows = points.map(({ time, values }) => [time, ...card.lines.map(({ key }) => values[key])]);
      if (card.hovered !== null) card.hovered = null;
      this.write(card, card.rows.at(-1), "");
      card.plot.draw(card.rows, now);
    }
  }

  hover(card, row) {
    const last = card.rows.at(-1);
    const shown = row === null ? last : card.rows[row];
    if (shown) this.write(card, shown, shown === last ? "" : ` ${duration((last[0] - shown[0]) / 1000)} ago`);
  }

  write(card, row, moment) {
    card.moment.textContent = moment;
    card.values.forEach((value, i) => (value.textContent = number(row?.[i + 1])));
  }

  repaint() {
    for (const { plot } of this.cards) plot.repaint();
  }
}

const table = (id, heads, rows) => $(id).replaceChildren(
  element("thead", {}, element("tr", {}, ...heads.map(([text, className]) => element("th", { className }, text)))),
  element("tbody", {}, ...rows.map((cells) =>
    element("tr", {}, ...cells.map((text, i) => element("td", { className: heads[i][1] }, text))))));

export function showStreams({ total, streams }) {
  $("total").textContent = `${streams.length} of ${number(total)}`;
  table("streams",
    [["Stream", "name"], ["Pipeline", "wide"], ["Holds", "number"], ["Backlog", "number"], ["Age", "number"], ["Client", "wide"]],
    streams.map((one) => [
      one.stream, one.pipeline, bytes(one.held_bytes), `${one.held_s.toFixed(2)} s`, duration(one.age_s),
      !one.connected ? "disconnected" : one.paused ? `${one.peer} (paused)` : one.peer]));
}

export function showWorkers({ workers }) {
  $("attached").textContent = number(workers.length);
  table("workers",
    [["Worker", "name"], ["Pipeline", "wide"], ["Slots", "number"], ["Batches", "number"], ["In flight", "number wide"],
      ["Compute p99", "number wide"], ["Last failure", ""]],
    workers.map(({ last_failure: failure, ...one }) => [
      one.leaving ? `${one.worker} (leaving)` : one.worker, one.pipeline, `${number(one.slots_used)} of ${number(one.slots)}`,
      number(one.batches), number(one.in_flight), `${number(1000 * one.compute_p99_s)} ms`,
      failure ? `${failure.why}, ${duration(failure.ago_s)} ago` : "–"]));
}

export function showLog({ log }) {
  const rows = [...log].reverse().map(({ time, level, event, ...rest }) => [
    time.slice(0, 19).replace("T", " "), level, event,
    Object.entries(rest).map(([name, value]) => `${name}=${value}`).join("  ")]);
  table("log", [["Time (UTC)", ""], ["Level", "level"], ["Event", ""], ["Details", "details"]],
    rows.length ? rows : [["–", "", "none so far", ""]]);
}
