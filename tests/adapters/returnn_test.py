# SPDX-License-Identifier: Apache-2.0
"""millrace.returnn in RETURNN's engine for PyTorch: one step of the engine is one batch of the plan."""
import os
import pickle
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import millrace
import millrace.returnn
import numpy as np
import torch
from folders import SLOTS, Folders, epochs_of, write_speech
from returnn.__main__ import load_data
from returnn.config import Config, global_config_ctx
from returnn.datasets.basic import Dataset, init_dataset
from returnn.torch.data import pipeline, returnn_dataset_wrapper
from returnn.torch.engine import Engine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

STEPS = []  # what the engine gave to each step


class Model(torch.nn.Module):
    """The leaky mean of the samples of each stream: its state is carried from chunk to chunk."""

    def __init__(self, **_):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.state = torch.zeros(SLOTS + 1)


def get_model(**_):
    return Model()


def train_step(*, model, extern_data, **_):
    import returnn.frontend as rf

    data, slot, reset = (extern_data[name].raw_tensor for name in ("data", "slot", "reset"))
    lengths = extern_data["data"].dims[1].dyn_size_ext.raw_tensor
    slot = slot.long()
    state = torch.where(reset, torch.zeros(()), model.state[slot])
    for column in range(data.shape[1]):
        state = torch.where(column < lengths, 0.99 * state + data[:, column, 0], state)
    model.state[slot] = state.detach()
    label = extern_data["label"] if "label" in extern_data else extern_data["data"]
    STEPS.append({"data": data.numpy().copy(), "slot": slot.tolist(), "reset": reset.tolist(), "lengths": lengths.tolist(),
                  "label": label.raw_tensor.numpy().copy(), "state": state.detach().numpy().copy(),
                  "tags": extern_data["seq_tag"].raw_tensor.tolist(),
                  "labels": label.dims[1].dyn_size_ext.raw_tensor.tolist()})
    rf.get_run_ctx().mark_as_loss(rf.convert_to_tensor(model.scale.sum() * 1e-3), "loss", dims=[])


class Returnn(Folders):
    def configuration(self, epochs, **more):
        train = {"class": millrace.returnn.Dataset, "streams": self.speech, **self.options}
        return Config({
            "task": "train", "backend": "torch", "device": "cpu", "num_epochs": epochs, "train": train,
            "torch_batching": millrace.returnn.torch_batching, "torch_dataloader_opts": {"num_workers": 0},
            "extern_data": {"data": {"dim": 1}, "slot": {"dtype": "int32", "shape": ()}, "reset": {"dtype": "bool", "shape": ()},
                            "label": {"dtype": "int64", "shape": (None, 1)}},
            "get_model": get_model, "train_step": train_step, "optimizer": {"class": "adam"}, "learning_rate": 1e-3,
            "model": self.enterContext(tempfile.TemporaryDirectory()) + "/model", "log_verbosity": 1, "behavior_version": 24, **more})

    def trained(self, epochs, **more):
        """The steps of the engine."""
        STEPS.clear()
        config = self.configuration(epochs, **more)
        with global_config_ctx(config):
            engine = Engine(config)
            engine.init_train_from_config(train_data=init_dataset(config.typed_value("train")))
            engine.train()
        return list(STEPS)

    def test_one_step_of_the_engine_is_one_batch_of_the_plan(self):
        data = self.dataset()
        expected = epochs_of(self.dataset(), 2)
        steps = self.trained(2)
        self.assertEqual(len(steps), len(expected))
        for step, batch in zip(steps, expected):
            self.assertEqual((step["slot"], step["reset"], step["lengths"]), (batch["slot"], batch["reset"], batch["size"]))
            self.assertEqual(step["tags"], [data.name(stream) if stream >= 0 else "padding" for stream in batch["stream"]])
            width = max(batch["size"])
            np.testing.assert_array_equal(step["data"], np.array(batch["data"])[:, :width])
            entries = max(step["labels"])
            self.assertEqual(step["labels"], [-(-size // 40) for size in batch["size"]])
            np.testing.assert_array_equal(step["label"], np.array(batch["companions"]["label"])[:, :entries])

    def test_a_stateful_layer_computes_what_it_computes_for_whole_streams(self):
        ends = {}
        for step in self.trained(1):
            for tag, state in zip(step["tags"], step["state"]):
                ends[tag] = state
        whole = {}
        for batch in self.dataset(chunk=None, mode="stateless", slots=None, rows=1, companions=None):
            state = 0.0
            for sample in np.array(batch.data)[0, :, 0]:
                state = 0.99 * state + sample
            whole[self.dataset().name(int(batch.framed["stream"][0]))] = state
        ends.pop("padding", None)
        self.assertEqual(ends.keys(), whole.keys())
        for tag, state in ends.items():
            self.assertAlmostEqual(state, whole[tag], delta=1e-3)

    def test_the_processes_of_its_loader_share_the_steps(self):
        one = self.trained(2)
        for behavior in (24, 37):
            two = self.trained(2, torch_dataloader_opts={"num_workers": 2}, behavior_version=behavior)
            self.assertEqual([(step["slot"], step["tags"]) for step in two], [(step["slot"], step["tags"]) for step in one])

    def test_returnn_loads_its_data_from_its_own_configuration(self):
        dev = {"class": millrace.returnn.Dataset, "streams": self.speech, **self.options, "shuffle": False}
        config = self.configuration(1, dev=dev, chunking_variance=0.0, min_chunk_size=0)
        STEPS.clear()
        with global_config_ctx(config):
            train, _ = load_data(config, 0, "train", **Dataset.get_default_kwargs_train(config=config))
            evaluated, _ = load_data(config, 0, "dev", **Dataset.get_default_kwargs_eval(config=config))
            engine = Engine(config)
            engine.init_train_from_config(train_data=train, dev_data=evaluated)
            engine.train()
        expected = epochs_of(self.dataset(), 1) + epochs_of(self.dataset(shuffle=False), 1)
        self.assertEqual([step["slot"] for step in STEPS], [batch["slot"] for batch in expected])

    def test_an_option_of_the_configuration_that_the_plan_replaces_is_an_error(self):
        for option in {"chunking_variance": 0.5}, {"min_chunk_size": 10}, {"chunking": "100:50"}, {"context_window": 3}:
            (name,) = option
            config = self.configuration(1, **option)
            with global_config_ctx(config), self.assertRaisesRegex(ValueError, name):
                load_data(config, 0, "train", **Dataset.get_default_kwargs_train(config=config))

    def test_a_process_with_other_streams_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            write_speech(Path(folder), [400, 500, 600, 700])
            data = init_dataset({"class": millrace.returnn.Dataset, "streams": folder + "/speech", "chunk": {"size": 160}, "slots": 2})
            pickled = pickle.dumps(data)
            self.assertEqual(pickle.loads(pickled).get_data_dim("data"), 1)
            shutil.copy(folder + "/speech/00.wav", folder + "/speech/04.wav")
            data.init_seq_order(epoch=1)  # the one that was opened goes on
            data.load_seqs(0, 1)
            again = pickle.loads(pickled)
            again.init_seq_order(epoch=1)
            with self.assertRaisesRegex(millrace.PlanDiffers, "streams is 5 instead of 4"):
                again.load_seqs(0, 1)

    def test_ranks_of_returnn_are_ranks_of_the_plan(self):
        expected = epochs_of(self.dataset(rank=1, world=2), 1)
        data = init_dataset({"class": millrace.returnn.Dataset, "streams": self.speech, **self.options},
                            default_kwargs={"_num_shards": 2, "_shard_index": 1})
        reset = returnn_dataset_wrapper.ReturnnDatasetResetDefaultEpochCounterCallback(data)
        rows = returnn_dataset_wrapper.ReturnnDatasetIterDataPipe(data, reset_callback=reset)
        batches = [pipeline.collate_batch(batch) for batch in millrace.returnn.torch_batching(rows, train=True)]
        self.assertEqual([batch["slot"].tolist() for batch in batches], [batch["slot"] for batch in expected])

    def test_the_program_of_the_document_trains_on_the_batches_of_the_plan(self):
        printed_configuration = {}
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        exec(printed.programs()["training_returnn"].text, printed_configuration)
        more = {key: value for key, value in printed_configuration.items() if key[0] != "_" and key != "millrace"}
        steps = self.trained(1, **more)
        expected = epochs_of(self.dataset(chunk={"size": "100ms"}, seed=0, companions=None), 1)
        self.assertEqual([(step["slot"], step["reset"], step["lengths"]) for step in steps],
                         [(batch["slot"], batch["reset"], batch["size"]) for batch in expected])

    def whole(self, **options):
        """The names of the streams in the order of RETURNN's engine, as whole streams."""
        data = init_dataset({"class": millrace.returnn.Dataset, "streams": self.speech, "mode": "returnn-torch", "rows": 1,
                             "seed": 3, **options})
        data.init_seq_order(epoch=2)
        data.load_seqs(0, 23)
        return [data.get_tag(number) for number in range(23)]

    def test_each_seq_ordering_is_that_of_returnn(self):
        random = self.whole()
        streams = self.dataset(chunk=None, mode="stateless", slots=None, rows=1, companions=None)
        lengths = {streams.name(int(batch.framed["stream"][0])): int(batch.size[0]) for batch in streams}
        tags = sorted(lengths)
        self.assertNotEqual(random, tags)
        for ordering in "default", "random", "sorted", "sorted_reverse", "laplace", "laplace:5", "laplace:.6":
            # RETURNN's own, with the permutation of the plan.
            theirs = Dataset(seq_ordering=ordering)
            with unittest.mock.patch("numpy.random.RandomState") as generator:
                generator.return_value.permutation.return_value = np.array([tags.index(tag) for tag in random])
                order = theirs.get_seq_order_for_epoch(2, 23, lambda number: lengths[tags[number]])
            self.assertEqual(self.whole(seq_ordering=ordering), [tags[number] for number in order], ordering)

    def test_batches_of_laplace_are_those_of_returnn(self):
        limits = {"rows": 7, "max_padded_frames": 20000}
        data = self.dataset(mode="returnn-torch", chunk=None, order="laplace:.6", slots=None, companions=None, **limits)
        batches = [batch.size.tolist() for batch in data]
        rows = [{"data": np.zeros(size)} for batch in batches for size in batch]
        theirs = pipeline.BatchingIterDataPipe(rows, batch_size=20000, max_seqs=7)
        self.assertEqual(batches, [[len(row["data"]) for row in batch] for batch in theirs])

    def test_the_order_of_evaluations_counts_where_whole_streams_have_one(self):
        self.assertEqual(self.whole(seq_ordering="sorted", shuffle=False), self.whole(shuffle=False))
        kept = {"class": millrace.returnn.Dataset, "streams": self.speech, **self.options}
        self.assertEqual(init_dataset({**kept, "seq_ordering": "sorted"})._data.state_dict(),
                         init_dataset(kept)._data.state_dict())

    def test_options_of_returnn_that_the_plan_replaces_are_errors(self):
        for option in ({"chunking": "100:50"}, {"seq_ordering": "reverse"}, {"partition_epoch": 4},
                       {"seq_ordering": "random", "shuffle": True}, {"seq_ordering": len}):
            name = next(iter(option))
            with self.assertRaisesRegex(ValueError, name):
                millrace.returnn.Dataset(streams=self.speech, **self.options, **option)


if __name__ == "__main__":
    unittest.main()
