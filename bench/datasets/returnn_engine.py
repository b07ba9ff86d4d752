#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput through RETURNN's engine for PyTorch, which computes almost nothing: batches of a plan by millrace.returnn, beside
RETURNN with a data set of ready arrays, and beside RETURNN's own chunking of whole streams. All take turns.

  taskset -c 1 bench/datasets/returnn_engine.py FOLDER [ROUNDS]      FOLDER: the corpus of throughput.py
"""
import statistics
import sys
import tempfile
import time
from pathlib import Path

import corpus
import numpy as np
import torch
from returnn.config import Config, global_config_ctx
from returnn.datasets.basic import init_dataset
from returnn.datasets.generating import StaticDataset
from returnn.torch.engine import Engine

import millrace.returnn

STREAMS = 64  # one round of the slots: 300 steps


def get_model(**_):
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.ones(1))
    return model


def train_step(*, model, extern_data, **_):
    import returnn.frontend as rf

    loss = extern_data["data"].raw_tensor[:, :1].mean() * model.scale.sum()
    rf.get_run_ctx().mark_as_loss(rf.convert_to_tensor(loss), "loss", dims=[])


def rows(folder):
    """The rows of the plan as arrays that are ready, with the keys of millrace.returnn. StaticDataset refuses scalars."""
    streams = [np.asarray(array).reshape(-1, corpus.WIDTH, 1) for array in corpus.mapped(folder, "f32")[:STREAMS]]
    return [{"data": stream[chunk], "slot": np.array([slot], np.int32), "reset": np.array([chunk == 0]), "size": np.array([corpus.WIDTH], np.int32)}
            for chunk in range(corpus.FRAMES // corpus.WIDTH) for slot, stream in enumerate(streams)]


def whole(folder):
    return [{"data": np.asarray(array)[:, None]} for array in corpus.mapped(folder, "f32")[:STREAMS]]


def contestants(folder):
    arrays = millrace.catalogs.NpyFiles(corpus.paths(folder, "f32")[:STREAMS], rate=corpus.RATE)
    keys = {"data": {"dim": 1}, "slot": {"dtype": "int32", "shape": ()}, "reset": {"dtype": "bool", "shape": ()}}
    yield "millrace", {
        "train": {"class": millrace.returnn.Dataset, "streams": arrays, "chunk": {"size": corpus.WIDTH}, "slots": corpus.ROWS, "seed": 1},
        "torch_batching": millrace.returnn.torch_batching, "extern_data": keys}
    limits = {"batch_size": corpus.ROWS * corpus.WIDTH, "max_seqs": corpus.ROWS}
    yield "ready arrays", {"train": {"class": StaticDataset, "data": rows(folder), "input_dim": 1}, "extern_data": {
        "data": {"dim": 1}, "slot": {"dtype": "int32", "shape": (1,)}, "reset": {"dtype": "bool", "shape": (1,)}}, **limits}
    yield "RETURNN's chunking", {"train": {"class": StaticDataset, "data": whole(folder), "input_dim": 1},
                                 "chunking": f"{corpus.WIDTH}:{corpus.WIDTH}", "extern_data": {"data": {"dim": 1}}, **limits}


class Trained:
    """An engine that trains one epoch at each call."""

    def __init__(self, name, config):
        self.name, self.rates, self.epochs = name, [], 0
        self.folder = tempfile.TemporaryDirectory()
        self.config = Config({
            "task": "train", "backend": "torch", "device": "cpu", "num_epochs": 1000, "get_model": get_model, "train_step": train_step,
            "optimizer": {"class": "sgd"}, "learning_rate": 0.0, "model": f"{self.folder.name}/model", "log_verbosity": 1,
            "behavior_version": 24, "torch_dataloader_opts": {"num_workers": 0}, **config})
        with global_config_ctx(self.config):
            self.engine = Engine(self.config)
            self.engine.init_train_from_config(train_data=init_dataset(self.config.typed_value("train")))
        self.turn()
        self.rates.clear()

    def turn(self):
        with global_config_ctx(self.config):
            self.epochs += 1
            self.engine.set_epoch(self.epochs)
            self.engine.init_train_epoch()
            begin = time.perf_counter()
            self.engine.train_epoch()
            self.rates.append(STREAMS // corpus.ROWS * corpus.FRAMES // corpus.WIDTH / (time.perf_counter() - begin))


def main():
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    torch.set_num_threads(1)
    trained = [Trained(*each) for each in contestants(folder)]
    for _ in range(rounds):
        for each in trained:
            each.turn()
    print("| data set | steps/s | millrace divided by it | range |\n|---|---|---|---|")
    for each in trained:
        ratios = sorted(ours / theirs for ours, theirs in zip(trained[0].rates, each.rates))
        print(f"| {each.name} | {statistics.median(each.rates):.0f} | {statistics.median(ratios):.2f} | {ratios[0]:.2f}–{ratios[-1]:.2f} |")


if __name__ == "__main__":
    main()
