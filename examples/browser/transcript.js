// SPDX-License-Identifier: Apache-2.0
// The text of a speech recogniser (docs/transcripts.md): a paragraph for each segment. The last one grows.

const most = 200; // paragraphs

export class Transcript {
  constructor(section, list) {
    Object.assign(this, { section, list });
    this.clear();
  }

  clear() {
    this.list.replaceChildren();
    this.section.hidden = true;
    this.open = null;
  }

  // Results that are no transcript are left out.
  add({ flags, data, error }) {
    // The text there gets no final one any more: the model has lost it, or the worker gave none.
    if (error || flags.includes("RESET") || flags.includes("SEGMENT")) this.open = null;
    const text = data?.text;
    if (typeof text !== "string") return;
    const final = typeof data.final === "boolean" ? data.final : flags.includes("LAST");
    const said = typeof data.stable === "string" && text.startsWith(data.stable) ? data.stable : "";
    if (text) this.show(final ? text : said, final ? "" : text.slice(said.length));
    else this.open?.remove();
    if (final || !text) this.open = null;
  }

  show(stable, growing) {
    if (!this.open) {
      this.open = this.list.appendChild(document.createElement("p"));
      this.section.hidden = false;
      if (this.list.children.length > most) this.list.firstChild.remove();
    }
    const end = document.createElement("span");
    end.className = "growing";
    end.textContent = growing;
    this.open.replaceChildren(stable, end);
    this.list.scrollTop = this.list.scrollHeight;
  }
}
