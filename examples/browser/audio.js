// SPDX-License-Identifier: Apache-2.0
// Audio sources. Each is an object: `audio`, a stream of packets of 100 ms with interleaved channels, in the browser's own
// `rate`, and the number of `channels`. The service converts the rate and the channels.

const waiting = 20; // packets of a microphone that may wait; further ones become a gap
const longest = 16000; // values in a packet: half of what a message of the service may have

const packetOf = (rate, channels) => Math.min(Math.round(rate / 10), Math.floor(longest / channels)); // frames

// The audio of a File, as fast as the stream is read.
export async function fromFile(file) {
  const context = new AudioContext();
  const sound = await context.decodeAudioData(await file.arrayBuffer()).finally(() => context.close());
  const [rate, channels] = [sound.sampleRate, sound.numberOfChannels];
  const signals = Array.from({ length: channels }, (_, i) => sound.getChannelData(i));
  const packet = packetOf(rate, channels);
  let at = 0;
  const audio = new ReadableStream({
    pull: (stream) => {
      const frames = Math.min(packet, sound.length - at);
      stream.enqueue(Float32Array.from({ length: frames * channels },
        (_, i) => signals[i % channels][at + Math.floor(i / channels)]));
      at += frames;
      if (at >= sound.length) stream.close();
    },
  });
  return { audio, rate, channels };
}

// The audio of the microphone, in one channel, until `stop`, an AbortSignal.
export async function fromMicrophone(stop) {
  const asItIs = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: asItIs });
  const context = new AudioContext();
  const release = () => {
    microphone.getTracks().forEach((track) => track.stop());
    return context.close();
  };
  try {
    await context.audioWorklet.addModule(new URL("packets.js", import.meta.url));
  } catch (error) {
    await release();
    throw error;
  }
  const mono = { channelCount: 1, channelCountMode: "explicit", numberOfOutputs: 0 };
  const processorOptions = { packet: packetOf(context.sampleRate, 1) };
  const packets = new AudioWorkletNode(context, "packets", { ...mono, processorOptions });
  context.createMediaStreamSource(microphone).connect(packets);

  const end = () => packets.port.postMessage("end");
  stop.addEventListener("abort", end);
  if (stop.aborted) end(); // while the browser asked for permission
  microphone.getTracks()[0].addEventListener("ended", end); // it was unplugged
  let lost = 0;
  const audio = new ReadableStream({
    start: (stream) => {
      packets.port.onmessage = ({ data: { samples, last } }) => {
        if (stream.desiredSize <= 0 && !last) {
          lost += samples.length;
          return;
        }
        if (lost > 0) stream.enqueue({ type: "gap", frames: lost });
        lost = 0;
        stream.enqueue(samples);
        if (last) {
          stream.close();
          release();
        }
      };
    },
    cancel: () => {
      packets.port.onmessage = null;
      return release();
    },
  }, { highWaterMark: waiting });
  return { audio, rate: context.sampleRate, channels: 1 };
}
