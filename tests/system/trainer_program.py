# SPDX-License-Identifier: Apache-2.0
"""A trainer for tests. Its model is a hash of all batches, in their order, which is in each checkpoint. So the models of two
trainers are equal only if they have trained on the same batches.

    trainer_program.py '["tcp://…"]' CHECKPOINT EPOCHS [RANK WORLD]

After each batch it replaces the checkpoint, and at the start it continues after it. It reads a byte before each batch, until
its input is closed: so a test decides how far it trains."""
import hashlib
import json
import os
import sys

import millrace


def save(path, state):
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.replace(path + ".new", path)


def main(streams, path, epochs, rank="0", world="1"):
    data = millrace.Dataset(json.loads(streams), rank=int(rank), world=int(world), buffers=4)
    state = {"model": "", "trained": 0, "data": None}
    if os.path.exists(path):
        with open(path) as file:
            state = json.load(file)
        data.load_state_dict(state["data"])
    while data.epoch < int(epochs):
        for batch in data:
            sys.stdin.buffer.read(1)
            learned = hashlib.sha256(state["model"].encode())
            learned.update(repr((batch.epoch, batch.step)).encode())
            for values in (batch.data, batch.slot, batch.flags, batch.size, batch.left):
                learned.update(values.tobytes())
            state = {"model": learned.hexdigest(), "trained": state["trained"] + 1, "data": data.state_dict()}
            save(path, state)
    state["data"] = data.state_dict()
    save(path, {**state, "ended": True})


if __name__ == "__main__":
    main(*sys.argv[1:])
