# SPDX-License-Identifier: Apache-2.0
"""Datasets whose batches come from servers, `millrace train-serve`."""
import json
import pickle
import tempfile
import threading
import unittest
import unittest.mock
from importlib.util import find_spec
from pathlib import Path

from datasets import content, contents, go
from harness import wait_for
from training_server import TrainServer, write_speech


import millrace

KEYS = {"chunk": {"size": "10ms"}, "slots": 4, "dtype": "f32", "seed": 7}


class ServedTest(unittest.TestCase):
    keys: dict[str, object] = {}  # of its plan, beside KEYS

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        cls.paths = write_speech(cls.folder / "speech")
        cls.server = cls.start("server")
        cls.local = contents(cls.own())
        cls.second = contents(data := cls.own()) and contents(data)

    @classmethod
    def start(cls, name, more="", **options):
        keys = "".join(f"{key} = {json.dumps(given)}\n" for key, given in cls.keys.items())
        server = TrainServer(cls.folder, name, more=keys + more, **options)
        cls.addClassCleanup(server.kill)
        return server

    @classmethod
    def own(cls, **keys):
        """The same batches, made in this process."""
        return millrace.Dataset(str(cls.folder / "speech"), **{**KEYS, **cls.keys, **keys})

    def dataset(self, streams=None, **keys):
        data = millrace.Dataset(streams or self.server.unix, **keys)
        self.addCleanup(data.close)
        return data


class Batches(ServedTest):
    def test_the_batches_are_those_of_this_process(self):
        for url in (self.server.unix, self.server.tcp):
            with self.subTest(url):
                data = self.dataset(url)
                self.assertEqual(len(data), len(self.local))
                self.assertEqual(contents(data), self.local)
                self.assertEqual((data.epoch, data.step), (1, 0))
                self.assertEqual(contents(data), self.second)
                data.close()

    def test_a_peek_is_the_next_batch(self):
        data = self.dataset()
        for taken in range(3):
            self.assertEqual(content(data.peek()), self.local[taken])
            self.assertEqual(content(data.next()), self.local[taken])
        self.assertEqual(content(data.peek()), self.local[3])
        self.assertEqual(contents(data), self.local[3:])

    def test_the_properties_are_those_of_the_plan(self):
        data, own = self.dataset(), self.own()
        for name in ("slots", "rows", "width", "values", "channels", "dim", "dtype", "device", "rate", "chunk", "streams",
                     "companions"):
            self.assertEqual(getattr(data, name), getattr(own, name), name)

    def test_a_trainer_makes_targets_for_the_batches_of_a_server(self):
        targets = {"tokens": {"source": [[i, i] for i in range(self.own().streams)], "per": "stream"}}

        def given(data):
            return [(batch.companions["tokens"].tolist(), batch.lengths["tokens"].tolist()) for batch in data]

        self.assertEqual(given(self.dataset(companions=targets)), given(self.own(companions=targets)))
        with self.assertRaisesRegex(ValueError, "a server does not send their events"):
            self.dataset(companions={"tokens": {**targets["tokens"], "per": "segment"}})
        with self.assertRaisesRegex(ValueError, "the server of the batches chooses them"):
            self.dataset(companions={"vad": "labels"})

    def test_a_loop_that_is_left_continues_at_its_next_step(self):
        data = self.dataset()
        first = [content(batch) for batch, _ in zip(data, range(5))]
        self.assertEqual(data.step, 6)  # zip takes one more
        go(data, 0, 5)
        self.assertEqual(first + contents(data), self.local)

    def test_a_checkpoint_of_this_process_loads_and_the_other_way(self):
        own, data = self.own(), self.dataset()
        go(own, 1, 9)
        data.load_state_dict(own.state_dict())
        self.assertEqual(contents(data), self.second[9:])
        go(data, 1, 4)
        own.load_state_dict(data.state_dict())
        self.assertEqual(contents(own), self.second[4:])

    def test_the_names_come_with_the_batches(self):
        data = self.dataset()
        with self.assertRaisesRegex(LookupError, "was in no batch yet"):
            data.name(0)
        for batch in data:
            for stream in batch.opened:
                self.assertEqual(stream.name, self.paths[stream.stream].stem)
        self.assertEqual([data.name(i) for i in range(data.streams)], [path.stem for path in self.paths])
        self.assertEqual(data.meta(0), {})

    def test_a_copy_of_a_dataset_whose_server_has_another_plan_is_refused(self):
        server = self.start("moved")
        data = self.dataset(server.unix)
        pickled = pickle.dumps(data)
        self.assertEqual(contents(data.copy()), self.local)
        server.kill()
        server.more = "shuffle = false"
        server.again()
        for use in data.copy, lambda: len(pickle.loads(pickled)):
            with self.assertRaisesRegex(millrace.PlanDiffers, "shuffle"):
                use()

    def test_a_dataset_is_pickled(self):
        data = self.dataset()
        go(data, 0, 5)
        copy = pickle.loads(pickle.dumps(data))
        self.addCleanup(copy.close)
        self.assertEqual(contents(copy), self.local[5:])

    def test_a_batch_that_was_lost_in_this_process_comes_again(self):
        data = self.dataset([self.server.unix, self.start("third").unix])
        first = [content(data.next()), content(data.next())]
        for server in data._open()._servers:
            self.assertIsNotNone(server._core.next(10))  # as if a signal handler had dropped it
        self.assertEqual(first + contents(data), self.local)

    def test_more_batches_than_buffers_cannot_be_kept(self):
        data = self.dataset(buffers=4)
        kept = []
        with self.assertRaisesRegex(RuntimeError, "all 4 buffers are in batches that are kept"):
            for batch in data:
                kept.append(batch)
        self.assertEqual(data.stats.kept, 4)
        kept.clear()
        del batch
        data.seek(0, 4)
        self.assertEqual(contents(data), self.local[4:])

    def test_the_stats_count_batches_and_padding(self):
        data, own = self.dataset(), self.own()
        contents(data), contents(own)
        for name in ("batches", "hours", "padding"):
            self.assertEqual(getattr(data.stats, name), getattr(own.stats, name), name)
        self.assertGreater(data.stats.first, 0)


class Processes(ServedTest):
    @unittest.skipUnless(find_spec("torch"), "needs PyTorch")
    def test_the_processes_of_a_data_loader_share_the_steps(self):
        import torch
        from millrace.torch import IterableDataset

        batches = IterableDataset(self.server.unix)
        loader = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=2)
        expected = [[(epoch, step) for step in range(len(part))] for epoch, part in enumerate((self.local, self.second))]
        for steps in expected:
            self.assertEqual([(batch["epoch"], batch["step"]) for batch in loader], steps)


class End(ServedTest):
    def test_the_batches_end_after_the_last_epoch(self):
        server = self.start("ends", more="epochs = 2")
        for streams in (server.unix, [server.unix, server.tcp]):
            data = self.dataset(streams)
            self.assertEqual(contents(data), self.local)
            self.assertEqual(contents(data), self.second)
            self.assertEqual(contents(data), [])
            self.assertEqual((data.epoch, data.step, len(data)), (2, 0, 0))
            data.close()

    def test_next_waits_no_longer_than_its_timeout_while_the_server_is_away(self):
        server = self.start("away")
        data = self.dataset(server.unix, buffers=2)
        self.assertIsNotNone(data.next())
        server.kill()
        lost = data._open()._servers[0]
        with self.assertLogs("millrace", "WARNING"):
            while lost.is_attached:
                data.next(timeout=1)
        self.assertIsNone(data.next(timeout=0.2))
        step = data.step
        server.again()
        self.assertEqual(contents(data), self.local[step:])


class Refusals(ServedTest):
    def test_a_trainer_waits_for_the_memory_of_another_one(self):
        server = TrainServer(self.folder, "small", limit="1MiB")
        self.addCleanup(server.kill)
        first, opened = self.dataset(server.unix, rank=0, world=2, buffers=30), []
        first.next()
        with self.assertLogs("millrace", "WARNING") as logged:
            second = threading.Thread(target=lambda: opened.append(self.dataset(server.unix, rank=1, world=2, buffers=30)))
            second.start()
            wait_for(lambda: any("slab_bytes" in line and "waiting for up to" in line for line in logged.output), "the wait")
            first.close()
            second.join()
        self.assertEqual(contents(opened[0]), contents(self.own(rank=1, world=2)))

    def test_a_trainer_without_a_batch_does_not_wait_for_memory_without_a_limit(self):
        server = TrainServer(self.folder, "small", limit="1MiB")
        self.addCleanup(server.kill)
        first, second = (self.dataset(server.unix, rank=rank, world=2, buffers=30) for rank in range(2))
        first.next()
        with unittest.mock.patch("millrace.batch_server._CONFLICT", 0.2), self.assertLogs("millrace", "WARNING"):
            with self.assertRaises(millrace.Refused) as raised:
                second.next()
        self.assertEqual(raised.exception.code, "no_room")

    def test_servers_with_different_plans_are_refused(self):
        other = self.start("other", more="shuffle = false")
        with self.assertRaisesRegex(millrace.PlanDiffers, "shuffle"):
            self.dataset([self.server.unix, other.unix])

    def test_a_server_that_has_another_plan_after_a_restart_is_refused(self):
        server = self.start("changed")
        data = self.dataset(server.unix, buffers=2)
        data.next()
        server.kill()
        server.more = "shuffle = false"
        server.again()
        with self.assertLogs("millrace", "WARNING"), self.assertRaisesRegex(millrace.PlanDiffers, "shuffle"):
            contents(data)

    def test_a_checkpoint_of_another_plan_is_refused(self):
        state = self.own(seed=8).state_dict()
        with self.assertRaisesRegex(millrace.PlanDiffers, "seed"):
            self.dataset().load_state_dict(state)

    def test_keys_that_the_server_chooses_are_errors(self):
        for keys in ({"slots": 4}, {"chunk": {"size": "10ms"}}, {"seed": 2}, {"shuffle": False}, {"threads": 2}):
            with self.assertRaisesRegex(ValueError, next(iter(keys))):
                self.dataset(**keys)
        with self.assertRaisesRegex(ValueError, "companions"):
            self.dataset(companions={"vad": "labels"})
        with self.assertRaisesRegex(ValueError, "mixed"):
            self.dataset([self.server.unix, str(self.folder / "speech")])

    def test_no_trainer_attaches_as_a_worker(self):
        with self.assertRaisesRegex(millrace.Refused, "for trainers only"):
            millrace.Worker(self.server.unix)


class Faults(ServedTest):
    def setUp(self):
        self.damaged = self.folder / "damaged"
        self.addCleanup(lambda: [path.unlink() for path in (self.damaged / "speech").iterdir() if path.is_file()])
        self.files = write_speech(self.damaged / "speech")

    def test_a_stream_that_cannot_be_read_is_a_data_error_at_its_step_in_each_attempt(self):
        server = TrainServer(self.damaged)
        self.addCleanup(server.kill)
        self.files[3].unlink()
        data = self.dataset(server.tcp)
        steps = set()
        for attempt in range(3):
            with self.assertRaises(millrace.DataError) as raised:
                contents(data)
            error = raised.exception
            self.assertEqual((error.reason, error.stream, error.name), ("read", 3, "s03"))
            self.assertIn(str(self.files[3]), str(error))
            self.assertEqual((error.epoch, error.step), (data.epoch, data.step))
            steps.add(error.step)
        self.assertEqual(len(steps), 1)
        self.assertEqual(wait_for(lambda: server.metric("millrace_training_errors_total", '{reason="read"}'), "the count"), 3)
        self.assertIsNone(server.process.poll())


if __name__ == "__main__":
    unittest.main()
