// SPDX-License-Identifier: Apache-2.0
// A client of Millrace for a web page: sends audio of a ReadableStream, and receives messages.

const unsent = 192000; // bytes: the most that waits in the socket; 2 s of one channel at 48 kHz

// Sends the chunks of `audio`, then `end`. A chunk is a Float32Array with samples in -1 … 1, a Uint8Array with an Opus
// packet, or any other object, which is a command. `parameters` are those of the stream: rate, channels, chunk …; without
// `format`, samples are sent as s16le. `token` may be empty. Calls `received` with each message. When the connection is closed, the promise
// resolves to the CloseEvent. After success its code is 1000, and the last message is `closed`. If the service refuses the
// stream, the promise is rejected with an Error that says why.
export async function stream(url, { audio, token, ...parameters }, received) {
  const query = new URLSearchParams({ format: "s16le", ...parameters });
  // A page cannot set the field Authorization of a WebSocket, so a subprotocol carries the token.
  const protocols = ["millrace.v1", ...(token ? ["token", token] : [])];
  const socket = new WebSocket(url + (url.includes("?") ? "&" : "?") + query, protocols);
  const closed = new Promise((resolve) => (socket.onclose = resolve));
  let opened = false;
  socket.onmessage = ({ data }) => received(typeof data === "string" ? JSON.parse(data) : data);
  const service = new WritableStream({
    start: async () => {
      opened = await Promise.race([closed.then(() => false), new Promise((resolve) => (socket.onopen = () => resolve(true)))]);
    },
    write: async (part) => {
      while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount > unsent) {
        await new Promise((resolve) => setTimeout(resolve, 20)); // there is no event for it
      }
      if (socket.readyState !== WebSocket.OPEN) throw new Error("the connection is closed");
      socket.send(message(part));
    },
    close: () => socket.send('{"type":"end"}'),
    abort: () => socket.close(4000), // the audio failed: not a regular end
  });
  await audio.pipeTo(service).catch((error) => console.warn(error));
  const end = await closed;
  if (!opened) throw new Error(await refusal(socket.url, token));
  return end;
}

// The address of the service over HTTP: ws://HOST/v1/stream?… becomes http://HOST/v1/NAME, by default with path and query.
export const overHttp = (url, name = "") => new URL(name, url.replace(/^ws/, "http"));

// Asks the service over HTTP, with the token if there is one.
export const ask = (url, token) => fetch(url, token ? { headers: { Authorization: `Bearer ${token}` } } : {});

// Why the service refuses a stream of this URL. A browser hides the answer to a refused upgrade from a page, so this asks
// again without an upgrade, which opens no stream.
async function refusal(url, token) {
  try {
    const answer = await ask(overHttp(url), token);
    if (answer.status === 426) return "The service refused the stream, but would accept it now. Try again.";
    const { message, parameter } = (await answer.json()).error;
    return `The service refused the stream: ${parameter ? `${parameter}: ` : ""}${message}.`;
  } catch {
    return "The service cannot be reached, or does not allow this page: its origin must be in [listen] origins.";
  }
}

function message(part) {
  if (part instanceof Float32Array) return s16le(part);
  return part instanceof Uint8Array ? part : JSON.stringify(part);
}

// Typed arrays have the machine's byte order, which is little-endian on all machines with browsers.
function s16le(samples) {
  return Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768))));
}
