// SPDX-License-Identifier: Apache-2.0
// A client of Millrace in a page: audio goes in as a ReadableStream, messages come out.

export const rate = 16000; // frames per second, of one channel
const unsent = 64000; // bytes, 2 s: no more is left waiting in the socket

// Sends what `audio` gives, Float32Arrays in -1 … 1 and commands as objects, and `end` behind it;
// `received` gets each message. Resolves, when the connection is closed, to its CloseEvent: the code
// is 1000, and the last message was `closed`, where all went well.
export async function stream(url, audio, received) {
  const about = `format=s16le&rate=${rate}`;
  const socket = new WebSocket(url + (url.includes("?") ? "&" : "?") + about, "millrace.v1");
  const closed = new Promise((resolve) => (socket.onclose = resolve));
  socket.onmessage = ({ data }) => received(typeof data === "string" ? JSON.parse(data) : data);
  const service = new WritableStream({
    start: () => Promise.race([closed, new Promise((resolve) => (socket.onopen = resolve))]),
    write: async (part) => {
      while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount > unsent) {
        await new Promise((resolve) => setTimeout(resolve, 20)); // no event tells of it
      }
      if (socket.readyState !== WebSocket.OPEN) throw new Error("the connection is closed");
      socket.send(part instanceof Float32Array ? s16le(part) : JSON.stringify(part));
    },
    close: () => socket.send('{"type":"end"}'),
    abort: () => socket.close(4000), // the audio broke off, which is no end
  });
  await audio.pipeTo(service).catch((error) => console.warn(error));
  return closed;
}

// Typed arrays have the machine's byte order: little-endian wherever there are browsers.
function s16le(samples) {
  return Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768))));
}
