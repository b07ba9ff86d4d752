// SPDX-License-Identifier: Apache-2.0
// A client of Millrace for a web page: sends audio of a ReadableStream, and receives messages.

import { head, Progress } from "./resume.js";

const unsent = 192000; // bytes: the most that waits in the socket; 2 s of one channel at 48 kHz
const patience = 15000; // ms without a connection after which a stream is lost
const [shortest, longest, answer] = [100, 2000, 5000]; // ms: between two attempts to connect; for an answer to one

// Sends the chunks of `audio`, then `end`. A chunk is a Float32Array with whole frames of samples in -1 … 1, a Uint8Array with
// an Opus packet, or any other object, which is a command. `parameters` are those of the stream: rate, channels, chunk …; without
// `format`, samples are sent as s16le. `token` may be empty. Calls `received` with each message. If the connection is lost, the
// stream continues over another one: then `received` gets {type: "resumed", kept}, and no message is missing or comes again.
// `kept` is false if the service had lost the stream and opened it anew. When the last connection is closed, the promise
// resolves to its CloseEvent. After success its code is 1000, and the last message is `closed`. If the service refuses the
// stream, the promise is rejected with an Error that says why.
export async function stream(url, { audio, token, ...parameters }, received) {
  const progress = new Progress(parameters.options);
  let socket; // the newest one
  let ready = 0; // when `ready` came over it; 0: it has not come, or the connection is closed
  let over = false; // no connection follows
  let attempts = 0; // to continue the stream, since a message was received
  let acked = 0; // when the last `ack` was sent
  let timer; // for the next one
  let start;
  const started = new Promise((resolve) => (start = resolve));

  function send(part) {
    const message = progress.add(part instanceof Float32Array ? s16le(part) : part);
    if (ready) socket.send(message);
  }

  function acknowledge() {
    timer = clearTimeout(timer);
    acked = performance.now();
    if (ready && !over) socket.send(JSON.stringify({ type: "ack", n: progress.n }));
  }

  function receive({ data }) {
    const message = typeof data === "string" ? JSON.parse(data) : head(data);
    if (message.type === "ready") {
      for (const missing of progress.open(message)) socket.send(missing);
      ready = performance.now();
      start();
      received("resumed" in message ? { type: "resumed", kept: message.resumed } : message);
      return;
    }
    // An older connection of this page has continued the stream. The next one continues it from there.
    if (message.code === "conflict" && message.n === undefined && progress.token) return;
    const isNew = progress.receive(message);
    over ||= message.type === "closed" || message.type === "error";
    if (message.n !== undefined || message.type === "ack") attempts = 0;
    if (message.n !== undefined) {
      if (performance.now() > acked + 1000) acknowledge();
      else timer ??= setTimeout(acknowledge, 1000);
    }
    if (isNew) received(typeof data === "string" ? message : new Blob([data]));
  }

  // Resolves to the CloseEvent of a connection.
  const connect = (more) => new Promise((resolve) => {
    const target = new URL(url);
    for (const [name, value] of Object.entries({ format: "s16le", ...parameters, ...more })) target.searchParams.set(name, value);
    // A page cannot set the field Authorization of a WebSocket, so subprotocols carry the tokens.
    const tokens = [...(token ? ["token", token] : []), ...(progress.token ? [`resume.${progress.token}`] : [])];
    socket = new WebSocket(target.href, ["millrace.v1", ...tokens]);
    socket.binaryType = "arraybuffer";
    socket.onmessage = receive;
    socket.onclose = (end) => {
      if (ready && performance.now() > ready + patience) attempts = 0;
      ready = 0;
      resolve(end);
    };
  });

  // The first connection. An older service refuses the parameter `resume`.
  async function open(more) {
    let opened = false;
    const end = connect(more);
    socket.onopen = () => (opened = true);
    await end;
    if (opened || over) return end;
    const { why, parameter } = await refusal(socket.url, token);
    if (parameter !== "resume" || !more.resume) throw new Error(why);
    return open({});
  }

  // The connections, one after the other. Resolves to the CloseEvent of the last one.
  async function connections() {
    let end = await open({ resume: 1 });
    let lost; // when
    while (progress.token && !over && end.code !== 1000) {
      if (attempts === 0) lost = performance.now();
      const delay = attempts && Math.min(longest, shortest * 2 ** (attempts - 1)) * (0.75 + Math.random() / 2);
      if (performance.now() + delay > lost + patience) break;
      await pause(delay);
      if (over) break;
      ++attempts;
      const limit = setTimeout(() => ready || socket.close(), answer);
      end = await connect({ resume: 1, ...progress.parameters });
      clearTimeout(limit);
    }
    return end;
  }

  const closed = connections().finally(() => (over = true));
  const service = new WritableStream({
    start: () => Promise.race([started, closed]),
    write: async (part) => {
      // There is no event for it.
      while (!over && (progress.full || (ready && socket.bufferedAmount > unsent))) await pause(20);
      if (over) throw new Error("the connection is closed");
      send(part);
    },
    close: () => send({ type: "end" }),
    abort: () => { // the audio failed: not a regular end
      over = true;
      socket.close(4000);
    },
  });
  await audio.pipeTo(service).catch((error) => console.warn(error));
  return closed;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The address of the service over HTTP: ws://HOST/v1/stream?… becomes http://HOST/v1/NAME, by default with path and query.
export const overHttp = (url, name = "") => new URL(name, url.replace(/^ws/, "http"));

// Asks the service over HTTP, with the token if there is one.
export const ask = (url, token) => fetch(url, token ? { headers: { Authorization: `Bearer ${token}` } } : {});

// Why the service refuses a stream of this URL, and the parameter at fault. A browser hides the answer to a refused upgrade
// from a page, so this asks again without an upgrade, which opens no stream.
async function refusal(url, token) {
  try {
    const answer = await ask(overHttp(url), token);
    if (answer.status === 426) return { why: "The service refused the stream, but would accept it now. Try again." };
    const { message, parameter } = (await answer.json()).error;
    return { why: `The service refused the stream: ${parameter ? `${parameter}: ` : ""}${message}.`, parameter };
  } catch {
    return { why: "The service cannot be reached, or does not allow this page: its origin must be in [listen] origins." };
  }
}

// Typed arrays have the machine's byte order, which is little-endian on all machines with browsers.
function s16le(samples) {
  return new Uint8Array(Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768)))).buffer);
}
