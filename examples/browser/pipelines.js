// SPDX-License-Identifier: Apache-2.0
// The pipelines of the service, in a select box. The choice is the parameter `pipeline` of the service's address.

import { ask, overHttp } from "./client.js";

export class Pipelines {
  // `address` and `token` are the inputs with the address and the token, `row` holds `select` and is hidden without a list. The placeholder of `chunk`
  // shows the sizes of the chosen pipeline.
  constructor(address, token, row, select, chunk) {
    Object.assign(this, { address, token, row, select, chunk, all: [] });
    for (const input of [address, token]) input.addEventListener("change", () => this.load());
    select.addEventListener("change", () => this.choose(select.value));
    this.load();
  }

  // The pipeline of this name, if it is known.
  named(name) {
    return this.all.find((one) => one.name === name);
  }

  async load() {
    const [asked, token] = [this.address.value, this.token.value];
    let all = [];
    try {
      all = (await (await ask(overHttp(asked, "pipelines"), token)).json()).pipelines ?? [];
    } catch (error) {
      console.warn(error); // an older service, or none: the address alone decides
    }
    if (asked !== this.address.value || token !== this.token.value) return; // a later call shows the list
    this.all = all;
    this.row.hidden = all.length === 0;
    this.select.replaceChildren(...all.map(({ name, dim }) =>
      Object.assign(document.createElement("option"), { value: name, textContent: name, disabled: dim !== undefined })));
    if (all.length > 0) this.show(new URL(asked).searchParams.get("pipeline") ?? this.preferred());
  }

  // The default of the service: `default`, or the only one. Otherwise the first pipeline of audio.
  preferred() {
    if (this.named("default")) return "default";
    const { name } = this.all.find(({ dim }) => dim === undefined) ?? this.all[0];
    if (this.all.length > 1) this.write(name);
    return name;
  }

  choose(name) {
    this.write(name);
    this.show(name);
  }

  write(name) {
    const url = new URL(this.address.value);
    url.searchParams.set("pipeline", name);
    this.address.value = url;
  }

  // An unknown name leaves the box empty: the service then says that there is no such pipeline.
  show(name) {
    this.select.value = name;
    this.chunk.placeholder = this.named(name)?.chunk ?? "default";
  }
}
