// SPDX-License-Identifier: Apache-2.0
// Messages of the service as sentences, for the status line.

const kilohertz = (rate) => `${rate / 1000} kHz`;
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const spaced = (sizes) => sizes.replace(/(\d)ms/g, "$1 ms");

// The sentence of a message other than a result. `pipeline` is the pipeline of a `ready`, undefined if the list has none.
export function sentence({ type, pipeline: name, frames, chunks, code, message, kept }, pipeline) {
  switch (type) {
    case "ready":
      return `Streaming to pipeline ${name}${pipeline ? `: chunks of ${spaced(pipeline.chunk)} at ${kilohertz(pipeline.rate)}` : ""}.`;
    case "rejected": return `The service rejected a message: ${message} (${code}).`;
    case "warning": return `Warning: ${message} (${code}).`;
    case "resumed":
      return `The connection was lost. The stream continues over a new one${kept ? "" : ", with a model that starts anew"}.`;
    case "goaway": return "The service will end the stream soon: it stops, or the connection is too old.";
    case "error": return `The service ended the stream: ${message} (${code}).`;
    case "closed": return `The stream has ended: ${counted(chunks, "chunk")}, ${counted(frames, "frame")}.`;
    default: return "";
  }
}

// The end of a connection, behind the sentence of the last message; empty after a normal end.
export function closing({ code, reason }) {
  if (code === 1000) return "";
  if (code === 1006) return " The connection was lost.";
  return ` The connection was closed with code ${code}${reason ? `: ${reason}` : ""}.`;
}
