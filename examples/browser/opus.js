// SPDX-License-Identifier: Apache-2.0
// Opus, encoded by the browser (WebCodecs): a tenth of the bytes.

const packets = 50; // per second, of 20 ms

export const available = "AudioEncoder" in globalThis;

// Encodes a source of audio.js. Each chunk of the new source's audio is a Uint8Array, a packet, or a command. A `gap`
// counts packets.
export function opus({ audio, rate, channels }) {
  let encoder;
  let at = 0; // frames
  const encode = (values) => {
    const numberOfFrames = values.length / channels;
    if (numberOfFrames === 0) return;
    encoder.encode(new AudioData({ format: "f32", sampleRate: rate, numberOfChannels: channels, numberOfFrames,
      timestamp: Math.round((at / rate) * 1e6), data: values }));
    at += numberOfFrames;
  };
  const through = new TransformStream({
    start: (stream) => {
      encoder = new AudioEncoder({
        output: (packet) => {
          const bytes = new Uint8Array(packet.byteLength);
          packet.copyTo(bytes);
          stream.enqueue(bytes);
        },
        error: (error) => stream.error(error),
      });
      encoder.configure({ codec: "opus", sampleRate: rate, numberOfChannels: channels, bitrate: 32000 * channels,
        opus: { frameDuration: 1e6 / packets } });
    },
    transform: async (part, stream) => {
      if (part instanceof Float32Array) {
        encode(part);
        if (encoder.encodeQueueSize > 0) await new Promise((resolve) => (encoder.ondequeue = resolve));
      } else {
        await encoder.flush(); // the audio before the command
        const lost = Math.max(1, Math.round((part.frames / rate) * packets));
        stream.enqueue(part.type === "gap" ? { ...part, frames: lost } : part);
      }
    },
    flush: () => encoder.flush(),
  });
  return { audio: audio.pipeThrough(through), format: "opus", rate: 48000, channels };
}
