// SPDX-License-Identifier: Apache-2.0
// The page: connects the inputs, the stream, and the views of the results.

import { fromFile, fromMicrophone } from "./audio.js";
import { stream } from "./client.js";
import { Curves } from "./curves.js";
import { available, opus } from "./opus.js";
import { Pipelines } from "./pipelines.js";
import { Results } from "./results.js";
import { closing, sentence } from "./sentences.js";
import { Transcript } from "./transcript.js";
import { Wave } from "./wave.js";

const $ = (id) => document.getElementById(id);
const [url, listen, stop, file, state] = ["url", "listen", "stop", "file", "state"].map($);
const [chunk, channel, encode, token] = ["chunk", "channel", "opus", "token"].map($);
const commands = [...document.querySelectorAll(".command")];
const curves = new Curves($("curves"));
const wave = new Wave($("wave"), curves);
const results = new Results($("results"), $("stages"), $("count"));
const transcript = new Transcript($("text"), $("transcript"));

// The default is the service that serves the page: it allows explain=1.
url.value = new URLSearchParams(location.search).get("url") ??
  `${location.origin.replace(/^http/, "ws")}/v1/stream?explain=1`;

// Kept until the tab is closed.
token.value = sessionStorage.getItem("token") ?? "";
token.addEventListener("change", () => sessionStorage.setItem("token", token.value));

const pipelines = new Pipelines(url, token, $("pipelines"), $("pipeline"), chunk);

encode.disabled = !available;

function show(message) {
  if (message.type === "result") {
    results.add(message);
    transcript.add(message);
    curves.add(message);
    wave.mark(message);
  } else {
    state.textContent = sentence(message, pipelines.named(message.pipeline));
  }
}

function enable(buttons, enabled) {
  for (const button of buttons) button.disabled = !enabled;
}

// A transform that draws the packets that pass. send(command) inserts a command between two packets.
function tap() {
  let controller;
  const through = new TransformStream({
    start: (made) => (controller = made),
    transform: (part) => send(part),
    flush: () => enable(commands, false), // nothing may follow the end
  });
  function send(part) {
    wave.add(part);
    $("position").textContent = `${wave.seconds.toFixed(1)} s`;
    controller.enqueue(part);
  }
  return { through, send };
}

// The parameters that the page's fields select.
function selected(channels) {
  const parameters = {};
  if (chunk.value) parameters.chunk = chunk.value;
  if (channels > 1 && channel.value !== "all") parameters.channel = channel.value;
  return parameters;
}

async function run(source) {
  enable([listen, file], false);
  results.clear();
  transcript.clear();
  curves.clear();
  state.textContent = "";
  const { through, send } = tap();
  try {
    const { audio, rate, channels } = await source();
    wave.clear(rate, channels);
    const half = Math.round(rate / 2); // a second
    const command = { flush: { type: "flush" }, reset: { type: "reset" }, gap: { type: "gap", frames: half } };
    const sound = { audio: audio.pipeThrough(through), rate, channels };
    for (const button of commands) button.onclick = () => send(command[button.id]);
    enable(commands, true);
    const sent = encode.checked ? opus(sound) : sound;
    const end = await stream(url.value, { ...sent, ...selected(channels), token: token.value }, show);
    state.textContent += closing(end);
  } catch (error) {
    state.textContent = error.message ?? error;
  }
  enable([listen, file], true);
  enable([stop, ...commands], false);
}

listen.onclick = () => {
  const stopped = new AbortController();
  stop.onclick = () => stopped.abort();
  run(async () => {
    const sound = await fromMicrophone(stopped.signal);
    stop.disabled = false;
    return sound;
  });
};
file.onchange = () => {
  const [chosen] = file.files;
  file.value = ""; // so that the same file can be chosen again
  if (chosen) run(() => fromFile(chosen));
};
