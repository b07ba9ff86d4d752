# SPDX-License-Identifier: Apache-2.0
# The example of docs/workers.md: the mean power of each stream so far. Put your worker here.
import sys

import millrace
import torch

with millrace.Worker(device=sys.argv[1]) as worker, torch.inference_mode():
    device = "cpu" if worker.device == "host" else worker.device
    state = torch.zeros(worker.slots + 1, 2, dtype=torch.int64, device=device)

    def answer(batch):
        if not batch.rows:  # marker rows alone
            return None
        frames = torch.from_dlpack(batch.data)
        slot = torch.from_dlpack(batch.slot).long()
        size = torch.from_dlpack(batch.size).long()
        reset = torch.from_dlpack(batch.flags).bitwise_and(int(millrace.Flag.RESET)).bool()
        before = state[slot].masked_fill(reset[:, None], 0)
        power = frames.long().square().sum((1, 2))
        after = before + torch.stack((power, size), 1)
        state[slot] = after
        return after[:, 0].div(after[:, 1].clamp(min=1), rounding_mode="floor").tolist()  # waits

    worker.run(answer)
