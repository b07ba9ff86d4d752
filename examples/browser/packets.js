// SPDX-License-Identifier: Apache-2.0
// Runs on the audio thread: collects its quanta of 128 frames into packets, until it receives a message.

class Packets extends AudioWorkletProcessor {
  constructor({ processorOptions: { packet } }) {
    super();
    this.packet = new Float32Array(packet);
    this.filled = 0;
    this.ended = false;
    this.port.onmessage = () => {
      this.ended = true;
      this.send();
    };
  }

  process([[quantum = []]]) { // one input with one channel; no channel before it plays
    if (this.ended) return false;
    for (const sample of quantum) {
      this.packet[this.filled++] = sample;
      if (this.filled === this.packet.length) this.send();
    }
    return true;
  }

  send() {
    this.port.postMessage({ samples: this.packet.slice(0, this.filled), last: this.ended });
    this.filled = 0;
  }
}

registerProcessor("packets", Packets);
