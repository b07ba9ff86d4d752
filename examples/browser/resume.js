// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of a stream that survives its connection (docs/resume.md): the numbers that both sides count, and the
// parts that were sent and are not acknowledged. It sends and receives nothing itself.

const place = ["seq", "frames", "commands", "begin", "skip"]; // the numbers of a place, in the order of `ack`
const longestOptions = 4096; // bytes; the service rejects a longer set
const isAudio = (part) => part.command === undefined;

export class Progress {
  token = ""; // continues the stream; empty if it cannot be continued
  n = 0; // the messages before this number were received
  #options; // those of the open
  #stream = "";
  #bytes = 0; // size of a frame; 0: each part is a frame, an Opus packet
  #most = Infinity; // frames to keep
  #have = 0;
  #flushed = 0;
  #place = [0, 0, 0, 0, 0];
  #set = {}; // options that commands before the place have changed
  #parts = []; // not acknowledged: { data, frame, frames, command, options }; frame: the number of its first one
  #frames = 0; // that were added so far
  #commands = 0;
  #kept = 0; // frames in #parts, without those of gaps

  // `options`: those of the open, JSON.
  constructor(options = "{}") {
    this.#options = JSON.parse(options);
  }

  // The `ready` of a connection. Returns the messages that the service does not have, in their order.
  open({ stream, frames, commands, frame_bytes, keep, resume }) {
    this.token = resume ?? "";
    if (!this.token) return [];
    [this.#stream, this.#bytes, this.#most] = [stream, frame_bytes, keep];
    const missing = (this.#parts[0]?.frame ?? this.#frames) - frames;
    // The end of a gap that is done. It is shorter than a frame of the pipeline, so silence can replace it.
    if (missing > 0) {
      this.#parts.unshift({ data: new Uint8Array(missing * frame_bytes), frame: frames, frames: missing });
      this.#kept += missing;
    }
    const parts = this.#parts.filter((part) => (isAudio(part) ? part.frame + part.frames > frames : part.command >= commands));
    return parts.map((part) => (isAudio(part) ? this.#from(frames, part) : part.data));
  }

  // Frames that are sent, a Uint8Array, or a command. Returns the message, and keeps it until it is acknowledged.
  add(part) {
    const command = !(part instanceof Uint8Array);
    const data = command ? JSON.stringify(part) : part.slice(); // the owner may change it
    if (!this.token || part.type === "keepalive" || part.length === 0) return data;
    const kept = { data, frame: this.#frames };
    if (command) {
      kept.frames = part.type === "gap" ? part.frames : 0;
      kept.command = this.#commands++;
      if (part.type === "set") kept.options = part.options;
    } else {
      kept.frames = this.#bytes ? part.length / this.#bytes : 1;
      this.#kept += kept.frames;
    }
    this.#frames += kept.frames;
    this.#parts.push(kept);
    return data;
  }

  // As many frames are kept as may be: sending has to wait.
  get full() {
    return this.#kept >= this.#most;
  }

  // Counts a message of the service. False if it is no message for the user of the stream, or was received before.
  receive(message) {
    const { type, n, seq, ack } = message;
    if (type === "ack") this.#acknowledge(place.map((name) => message[name]));
    if (n === undefined) return type !== "ack";
    if (n < this.n) return false;
    this.n = n + 1;
    if (type === "result") this.#have = seq + 1;
    if (type === "flushed") this.#flushed = seq + 1;
    if (ack) this.#acknowledge(ack);
    return true;
  }

  // The parameters of a connection: a new one, or one that continues the stream.
  get parameters() {
    if (!this.token) return {};
    const [seq, from, commands, begin, skip] = this.#place;
    const numbers = { id: this.#stream, n: this.n, seq, from, commands, begin, skip, have: this.#have, flushed: this.#flushed };
    return Object.keys(this.#set).length > 0 ? { ...numbers, set: JSON.stringify(this.#set) } : numbers;
  }

  // Forgets what is before a place.
  #acknowledge(to) {
    this.#place = to;
    const [, frames, commands] = to;
    for (const part of this.#parts) {
      if (part.command >= commands) break;
      if (!part.options) continue;
      const set = { ...this.#set, ...part.options };
      const bytes = new TextEncoder().encode(JSON.stringify({ ...this.#options, ...set })).length;
      if (bytes <= longestOptions) this.#set = set;
      part.options = null;
    }
    const isDone = (part) => (isAudio(part) ? part.frame + part.frames <= frames : part.command < commands);
    while (this.#parts.length > 0 && isDone(this.#parts[0])) {
      const part = this.#parts.shift();
      if (isAudio(part)) this.#kept -= part.frames;
    }
    const [first] = this.#parts;
    if (!first || !isAudio(first) || first.frame >= frames) return;
    const done = frames - first.frame;
    this.#kept -= done;
    this.#parts[0] = { data: this.#from(frames, first), frame: frames, frames: first.frames - done };
  }

  // The bytes of a part from a frame on.
  #from(frame, part) {
    return part.data.subarray(Math.max(0, frame - part.frame) * this.#bytes);
  }
}

// The kind, the numbers and the place of a message of bytes: a FlatBuffer of schemas/client.fbs.
export function head(buffer) {
  const view = new DataView(buffer);
  const number = (at) => (at === undefined ? undefined : Number(view.getBigUint64(at, true)));
  const target = (at) => at + view.getUint32(at, true);
  const field = (table, index) => {
    const fields = table - view.getInt32(table, true);
    const at = 4 + 2 * index < view.getUint16(fields, true) && view.getUint16(fields + 4 + 2 * index, true);
    return at ? table + at : undefined;
  };
  const root = target(0);
  const body = target(field(root, 1));
  if (view.getUint8(field(root, 0)) !== 1) return { type: "message", n: number(field(body, 5)) };
  const ack = field(body, 10);
  return { type: "result", seq: number(field(body, 1)) ?? 0, n: number(field(body, 9)),
    ack: ack && place.map((_, index) => number(ack + 8 * index)) };
}
