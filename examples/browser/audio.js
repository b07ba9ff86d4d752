// SPDX-License-Identifier: Apache-2.0
// Audio sources: streams of packets of 100 ms, which the browser has resampled.

import { rate } from "./client.js";

const packet = rate / 10; // frames
const waiting = 20; // packets of a microphone that may wait; further ones become a gap

// The audio of a File: the mean of its channels, as fast as the stream is read.
export async function fromFile(file) {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  const mono = channels[0].map((_, i) => channels.reduce((sum, one) => sum + one[i], 0) / channels.length);
  let at = 0;
  return new ReadableStream({
    pull: (audio) => {
      audio.enqueue(mono.subarray(at, (at += packet)));
      if (at >= mono.length) audio.close();
    },
  });
}

// The audio of the microphone until `stop`, an AbortSignal.
export async function fromMicrophone(stop) {
  const asItIs = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: asItIs });
  const context = new AudioContext({ sampleRate: rate });
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
  const packets = new AudioWorkletNode(context, "packets", { ...mono, processorOptions: { packet } });
  context.createMediaStreamSource(microphone).connect(packets);

  const end = () => packets.port.postMessage("end");
  stop.addEventListener("abort", end);
  if (stop.aborted) end(); // while the browser asked for permission
  microphone.getTracks()[0].addEventListener("ended", end); // it was unplugged
  let lost = 0;
  return new ReadableStream({
    start: (audio) => {
      packets.port.onmessage = ({ data: { samples, last } }) => {
        if (audio.desiredSize <= 0 && !last) {
          lost += samples.length;
          return;
        }
        if (lost > 0) audio.enqueue({ type: "gap", frames: lost });
        lost = 0;
        audio.enqueue(samples);
        if (last) {
          audio.close();
          release();
        }
      };
    },
    cancel: () => {
      packets.port.onmessage = null;
      return release();
    },
  }, { highWaterMark: waiting });
}
