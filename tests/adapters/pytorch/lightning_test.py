# SPDX-License-Identifier: Apache-2.0
"""millrace.torch in Lightning: each of its epochs is an epoch of the plan."""
import logging
import tempfile
import unittest
import warnings

import millrace.torch
import numpy as np
import pytorch_lightning
import torch
from torch.utils.data import DataLoader

EPOCHS = 4
LENGTHS = [3 + 17 * (i % 5) for i in range(10)]  # chunks; epochs of 0.3 of them differ in their steps


class Model(pytorch_lightning.LightningModule):
    """Notes the batches of each epoch."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.trained = [[] for _ in range(EPOCHS)]
        self.validated = []

    def training_step(self, batch, _):
        self.trained[self.current_epoch].append((batch["epoch"], batch["step"]))
        return self.layer(batch["data"].mean().view(1, 1)).sum()

    def on_validation_epoch_start(self):
        self.validated.append([])

    def validation_step(self, batch, _):
        self.validated[-1].append(batch["step"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Saved(pytorch_lightning.Callback):
    """Writes a checkpoint after a number of steps."""

    def __init__(self, path, steps):
        self.path, self.steps = path, steps

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.steps:
            trainer.save_checkpoint(self.path)


class Lightning(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        for name in "pytorch_lightning", "lightning.pytorch":
            logging.getLogger(name).setLevel(logging.ERROR)

    def batches(self, frequency, **options):
        arrays = [np.zeros(4 * chunks, np.float32) for chunks in LENGTHS]
        return millrace.torch.IterableDataset([(arrays, frequency)], **{"chunk": {"size": 4}, "slots": 1, "seed": 2, **options})

    def steps(self, frequency):
        data = self.batches(frequency).data
        return [data._steps_of(epoch) for epoch in range(EPOCHS)]

    def fit(self, loader, validation=None, path=None, **options):
        model = Model()
        pytorch_lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                  enable_progress_bar=False, enable_model_summary=False, **options).fit(model, loader, validation, ckpt_path=path)
        return model

    def test_each_epoch_has_all_batches_of_an_epoch_of_the_plan(self):
        steps = self.steps(1)
        for workers, persistent in (0, False), (2, False), (2, True):
            with self.subTest(workers=workers, persistent=persistent):
                loader = DataLoader(self.batches(1), batch_size=None, num_workers=workers, persistent_workers=persistent)
                self.assertEqual(self.fit(loader).trained,
                                 [[(epoch, step) for step in range(count)] for epoch, count in enumerate(steps)])

    def test_a_checkpoint_of_lightning_continues_after_its_last_step(self):
        everything = [[(epoch, step) for step in range(count)] for epoch, count in enumerate(self.steps(1))]
        for workers in 0, 2:
            for steps in 5, len(everything[0]) + 3:
                with self.subTest(workers=workers, steps=steps), tempfile.NamedTemporaryFile(suffix=".ckpt") as file:
                    self.fit(millrace.torch.loader(self.batches(1), workers), callbacks=[Saved(file.name, steps)])
                    after = self.fit(millrace.torch.loader(self.batches(1), workers), path=file.name)
                    self.assertEqual(sum(after.trained, []), sum(everything, [])[steps:])

    def test_epochs_of_different_lengths_are_whole_if_lightning_asks_for_each_length(self):
        steps = self.steps(0.3)
        self.assertEqual(len(set(steps)), EPOCHS)
        loader = DataLoader(self.batches(0.3), batch_size=None)
        self.assertEqual(self.fit(loader, reload_dataloaders_every_n_epochs=1).trained,
                         [[(epoch, step) for step in range(count)] for epoch, count in enumerate(steps)])

    def test_epochs_that_lightning_cuts_are_not_repeated(self):
        steps = self.steps(0.3)
        loader = DataLoader(self.batches(0.3), batch_size=None, num_workers=2)
        self.assertEqual(self.fit(loader).trained,
                         [[(epoch, step) for step in range(min(count, steps[0]))] for epoch, count in enumerate(steps)])
        loader = DataLoader(self.batches(0.3), batch_size=None, num_workers=2)
        self.assertEqual(self.fit(loader, limit_train_batches=5).trained,
                         [[(epoch, step) for step in range(5)] for epoch in range(EPOCHS)])

    def test_each_validation_has_all_batches(self):
        for workers in 0, 2:
            with self.subTest(workers=workers):
                loader = DataLoader(self.batches(1), batch_size=None, num_workers=workers)
                validation = DataLoader(self.batches(1, shuffle=False), batch_size=None, num_workers=workers)
                validated = self.fit(loader, validation, num_sanity_val_steps=0).validated
                self.assertEqual(validated, [list(range(self.steps(1)[0]))] * EPOCHS)


if __name__ == "__main__":
    unittest.main()
