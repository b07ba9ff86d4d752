// SPDX-License-Identifier: Apache-2.0
// The waveform of the audio that was sent, with the borders of chunks and their markers.

import { rate } from "./client.js";

const step = rate / 100; // frames per column: 10 ms
const kept = 60 * 100; // columns: the last minute
const shown = 10; // seconds
const most = 1000; // chunks

export class Wave {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  clear() {
    this.frames = 0; // position after the last packet
    this.columns = []; // [lowest, highest] value of 10 ms, or null in a gap
    this.first = 0; // number of the first column in `columns`
    this.chunks = []; // { begin, end, flags }
    this.draw();
  }

  // Adds samples, or a command. The command `gap` moves the position; others are ignored.
  add(part) {
    const gap = part.type === "gap";
    if (!gap && !(part instanceof Float32Array)) return;
    const count = gap ? part.frames : part.length;
    for (let i = 0; i < count; i += step) {
      const at = Math.floor((this.frames + i) / step) - this.first;
      const some = gap ? [] : part.subarray(i, i + step);
      this.columns[at] = gap ? null : [Math.min(...some), Math.max(...some)];
    }
    this.frames += count;
    const over = this.columns.length - kept;
    if (over > 0) {
      this.columns.splice(0, over);
      this.first += over;
    }
    this.draw();
  }

  // Adds the chunk of a result.
  mark({ begin, end, flags }) {
    this.chunks.push({ begin, end, flags });
    if (this.chunks.length > most) this.chunks.shift();
    this.draw();
  }

  // Paints at most once per frame of the display.
  draw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    const scale = devicePixelRatio;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(this.canvas);
    const color = (name) => style.getPropertyValue(`--${name}`);
    const end = Math.max(this.frames, shown * rate);
    const x = (frame) => width * (1 - (end - frame) / (shown * rate));
    this.paintColumns(context, x, height, color);
    this.paintChunks(context, x, height, color);
  }

  paintColumns(context, x, height, color) {
    const middle = 26 + (height - 42) / 2;
    const half = (height - 42) / 2;
    const from = Math.max(0, Math.floor(this.frames / step) - shown * 100 - this.first);
    for (let i = from; i < this.columns.length; ++i) {
      const at = x((this.first + i) * step);
      const wide = x((this.first + i + 1) * step) - at;
      const column = this.columns[i];
      context.fillStyle = color(column ? "wave" : "gap");
      if (column) context.fillRect(at, middle - column[1] * half, wide, Math.max(1, (column[1] - column[0]) * half));
      else context.fillRect(at, 26, wide + 0.5, 2 * half);
    }
  }

  // Draws a line at the end of each chunk, with the time below and the flags above.
  paintChunks(context, x, height, color) {
    context.font = "11px system-ui, sans-serif";
    let [free, lastTime] = [[0, 0], -Infinity]; // right ends of the two lines of flags, and of the last time
    for (const { begin, end, flags } of this.chunks) {
      const [left, right] = [x(begin), x(end)];
      if (right < 0) continue;
      context.fillStyle = color("edge");
      context.fillRect(right, 24, 1, height - 40);
      if (right - lastTime > 60) {
        context.fillStyle = color("muted");
        context.fillText(`${(end / rate).toFixed(1)} s`, right - 12, height - 3);
        lastTime = right;
      }
      const text = flags.join(" ");
      const line = free.findIndex((one) => one <= left);
      if (!text || line < 0) continue;
      context.fillStyle = color("marker");
      context.fillText(text, left + 2, 10 + 11 * line);
      context.fillRect(left, 12 + 11 * line, 1, 12);
      free[line] = left + context.measureText(text).width + 8;
    }
  }
}
