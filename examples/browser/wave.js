// SPDX-License-Identifier: Apache-2.0
// The waveform of the audio that was sent, with the borders of chunks, their markers, and the curves of their results.

const columns = 100; // per second
const kept = 60 * columns; // the last minute
const shown = 10; // seconds
const most = 1000; // chunks
const apart = 4; // pixels: borders that are closer would hide the waveform

export class Wave {
  constructor(canvas, curves) {
    Object.assign(this, { canvas, curves });
    this.clear(48000, 1);
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  clear(rate, channels) {
    Object.assign(this, { rate, channels });
    this.frames = 0; // position after the last packet
    this.columns = []; // [lowest, highest] value of 10 ms, or null in a gap
    this.first = 0; // number of the first column in `columns`
    this.chunks = []; // { begin_s, end_s, flags }
    this.draw();
  }

  get seconds() {
    return this.frames / this.rate;
  }

  // Adds frames with interleaved channels, or a command. The command `gap` moves the position; others are ignored.
  add(part) {
    const gap = part.type === "gap";
    if (!gap && !(part instanceof Float32Array)) return;
    const count = gap ? part.frames : part.length / this.channels;
    const step = this.rate / columns; // frames; it may have a fraction
    const to = Math.floor((this.frames + count) / step);
    for (let at = Math.floor(this.frames / step), begin = 0; at <= to; ++at) {
      const end = Math.min(count, Math.ceil((at + 1) * step) - this.frames);
      if (end > begin) this.addColumn(at - this.first, gap ? null : part.subarray(begin * this.channels, end * this.channels));
      begin = end;
    }
    this.frames += count;
    const over = this.columns.length - kept;
    if (over > 0) {
      this.columns.splice(0, over);
      this.first += over;
    }
    this.draw();
  }

  addColumn(at, values) {
    const before = values ? this.columns[at] ?? [] : []; // the column may have begun in the previous packet
    this.columns[at] = values && [Math.min(...before, ...values), Math.max(...before, ...values)];
  }

  // Adds the chunk of a result.
  mark({ begin_s, end_s, flags }) {
    this.chunks.push({ begin_s, end_s, flags });
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
    const end = Math.max(this.seconds, shown);
    const x = (second) => width * (1 - (end - second) / shown);
    this.paintColumns(context, x, height, color);
    this.paintChunks(context, x, height, color);
    this.curves.paint(context, x, 26, height - 16, color);
  }

  paintColumns(context, x, height, color) {
    const middle = 26 + (height - 42) / 2;
    const half = (height - 42) / 2;
    const from = Math.max(0, Math.floor((this.seconds - shown) * columns) - this.first);
    for (let i = from; i < this.columns.length; ++i) {
      const at = x((this.first + i) / columns);
      const wide = x((this.first + i + 1) / columns) - at;
      const column = this.columns[i];
      context.fillStyle = color(column ? "wave" : "gap");
      if (column) context.fillRect(at, middle - column[1] * half, wide, Math.max(1, (column[1] - column[0]) * half));
      else context.fillRect(at, 26, wide + 0.5, 2 * half);
    }
  }

  // Draws a line at the end of each chunk that is wide enough, with the time below and the flags above.
  paintChunks(context, x, height, color) {
    context.font = "11px system-ui, sans-serif";
    let [free, lastTime] = [[0, 0], -Infinity]; // right ends of the two lines of flags, and of the last time
    for (const { begin_s, end_s, flags } of this.chunks) {
      const [left, right] = [x(begin_s), x(end_s)];
      if (right < 0) continue;
      context.fillStyle = color("edge");
      if (right - left >= apart) context.fillRect(right, 24, 1, height - 40);
      if (right - lastTime > 60) {
        context.fillStyle = color("muted");
        context.fillText(`${end_s.toFixed(1)} s`, right - 12, height - 3);
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
