// SPDX-License-Identifier: Apache-2.0
// On the thread of the audio: gathers its quanta of 128 frames into packets, until it is told to end.

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

  process([[quantum = []]]) { // the one channel of the one input; it has none before it plays
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
