# SPDX-License-Identifier: Apache-2.0
"""millrace.torch with torchdata's StatefulDataLoader."""
import unittest

import millrace.torch
from folders import Folders, epochs_of
from torch_test import listed
from torchdata.stateful_dataloader import StatefulDataLoader


class Torchdata(Folders):
    def loader(self, workers, persistent=False):
        batches = millrace.torch.IterableDataset(self.speech, **self.options)
        return StatefulDataLoader(batches, batch_size=None, num_workers=workers, persistent_workers=persistent)

    def test_a_resumed_loader_gives_the_batches_of_an_uninterrupted_one(self):
        expected = epochs_of(self.dataset(), 3)
        steps = len(self.dataset())
        for workers, persistent in ((0, False), (1, False), (2, False), (3, True)):
            for taken in (0, 1, 5, steps - 1, steps, steps + 3):
                with self.subTest(workers=workers, persistent=persistent, taken=taken):
                    first, given = self.loader(workers, persistent), []
                    passes = iter(first)
                    while len(given) < taken:
                        batch = next(passes, None)
                        if batch is None:
                            passes = iter(first)
                        else:
                            given.append(listed(batch))
                    state = first.state_dict()
                    again = self.loader(workers, persistent)
                    again.load_state_dict(state)
                    for _ in range(3):
                        given += [listed(batch) for batch in again]
                    self.assertEqual(given[:len(expected)], expected)


if __name__ == "__main__":
    unittest.main()
