# SPDX-License-Identifier: Apache-2.0
"""Several servers of one plan: each fills a part of the slots, and the batches are those of one server."""
import itertools
import logging
import unittest
import unittest.mock

import numpy as np
from datasets import DatasetTest, arrays, content, contents, go
from served_test import ServedTest
from training_server import TrainServer, write_speech

import millrace
from millrace.batch_server import BatchServer
from millrace.joined_batch import JoinedBatch
from millrace.remote_feed import RemoteFeed

STATELESS = 'mode = "stateless"\nrows = 3'


class Joined(DatasetTest):
    def test_batches_of_ranks_are_joined_to_that_of_all(self):
        streams = [frames for frames in arrays(*range(5, 36, 3)) for _ in range(2)]
        for keys in {}, {"shuffle": False}, {"chunk": {"size": 4, "left": 3, "right": 2, "tail": "drop"}}, {"slots": 18}:
            keys = {"slots": 6, "seed": 4, "companions": {"copy": streams}, **keys}
            whole = self.data(streams, **keys)
            for world in 2, 3:
                ranks = [self.data(streams, **keys, rank=rank, world=world) for rank in range(world)]
                for batch, *parts in zip(whole, *ranks, strict=True):
                    joined = millrace.Batch(JoinedBatch(7, [part._core for part in parts], ranks[0].slots))
                    self.assertEqual(content(joined), content(batch))
                    self.assertEqual((joined.opened, joined.reset.tolist(), joined.left.tolist(), joined.right.tolist()),
                                     (batch.opened, batch.reset.tolist(), batch.left.tolist(), batch.right.tolist()))
                    self.assertEqual((joined.rows, joined.width, joined.id, joined.messages), (batch.rows, batch.width, 7, []))
                    self.assertEqual(joined.data.ctypes.data % 256, 0)
                    joined.use_on(1), joined.fail(KeyError())
                    joined.done()
                whole.seek(0)

    def test_parts_of_different_steps_are_an_error(self):
        first, second = itertools.islice(self.data(), 2)
        with self.assertRaisesRegex(millrace.ServiceGone, r"\(0, 0, 6\), \(0, 1, 6\)"):
            JoinedBatch(0, [first._core, second._core], 2)


CONVERTED = {"rate": 8000, "channels": 1, "convert": True}  # servers that only copy give their steps in turn


class BatchesOfOne:
    """What servers do that share the slots, and those that give their steps in turn."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.urls = [cls.start("a").unix, cls.start("b").unix]

    def two(self, **keys):
        return self.dataset(self.urls, **keys)

    def test_two_servers_give_the_batches_of_one(self):
        data = self.two()
        self.assertEqual((data.slots, data.rows, len(data)), (4, 4, len(self.local)))
        self.assertEqual(contents(data), self.local)
        self.assertEqual(contents(data), self.second)
        for name in ("batches", "hours", "padding"):
            own = self.own()
            contents(own), contents(own)
            self.assertEqual(getattr(data.stats, name), getattr(own.stats, name), name)

    def test_ranks_share_both_servers(self):
        data = [self.two(rank=rank, world=2) for rank in range(2)]
        own = [self.own(rank=rank, world=2) for rank in range(2)]
        for *taken, _ in zip(data[0], data[1], range(5)):
            for batch, rank in zip(taken, own):
                self.assertEqual(content(batch), content(rank.next()))
        self.assertEqual([contents(rank) for rank in data], [contents(rank)[1:] for rank in own])  # zip has taken one more

    def test_a_checkpoint_continues_in_the_middle_of_an_epoch(self):
        own, data = self.own(), self.two()
        go(own, 1, 9)
        data.load_state_dict(own.state_dict())
        self.assertEqual(content(data.peek()), self.second[9])
        self.assertEqual(contents(data), self.second[9:])
        go(data, 1, 4)
        own.load_state_dict(data.state_dict())
        self.assertEqual(contents(own), self.second[4:])
        data.seek(0, 5)
        batch = data.next()
        self.assertEqual(batch.reset.tolist(), (np.asarray(batch.size) > 0).tolist())

    def test_a_server_that_is_lost_continues_at_the_next_step(self):
        server = self.start("lost")
        data = self.dataset([self.urls[0], server.unix], buffers=2)
        given = [content(data.next()) for _ in range(3)]
        server.kill()
        lost = data._open()._servers[1]
        with self.assertLogs("millrace", "WARNING"):
            while lost.is_attached:
                if (batch := data.next(timeout=1)) is not None:
                    given.append(content(batch))
        server.again()
        self.assertEqual(given + contents(data), self.local)

    def test_processes_of_a_data_loader_share_the_steps(self):
        import millrace.torch

        data = self.two()
        batches = [(batch["step"], batch["data"].numpy().tobytes()) for batch in millrace.torch.loader(data, 2)]
        self.assertEqual(batches, [(step, entry[2]) for step, entry in enumerate(self.local)])

    def test_a_process_of_a_data_loader_attaches_to_each_server_once(self):
        loader = RemoteFeed(self.urls, {}, 2, 1).loader()
        self.addCleanup(loader.stop)
        with unittest.mock.patch.object(BatchServer, "attach", autospec=True, side_effect=BatchServer.attach) as attach:
            steps = [loader.next(None).step for _ in self.local[1::2]]
        self.assertEqual(steps, list(range(1, len(self.local), 2)))
        self.assertEqual(attach.call_count, 2)

    def test_more_batches_than_buffers_cannot_be_kept(self):
        data = self.two(buffers=4)
        kept = []
        with self.assertRaisesRegex(RuntimeError, "all 4 buffers are in batches that are kept"):
            for batch in data:
                kept.append(batch.data)
        self.assertEqual(data.stats.kept, 4)
        self.assertEqual([array.tobytes() for array in kept], [entry[2] for entry in self.local[:4]])
        kept.clear()
        del batch
        self.assertEqual(contents(data), self.local[4:])


class Shared(BatchesOfOne, ServedTest):
    keys = CONVERTED

    def test_each_server_sends_the_rows_of_its_own_slots(self):
        data, ranks = self.two(), [self.own(rank=rank, world=2) for rank in range(2)]
        contents(data)
        for server, rank in zip(data._open()._servers, ranks):
            contents(rank)
            self.assertEqual(server.counts[3], round(rank.stats.hours * 3600 * 8000))

    def test_servers_that_cannot_share_the_slots_give_their_steps_in_turn(self):
        with self.assertLogs("millrace", logging.WARNING) as logged:
            data = self.dataset([*self.urls, self.start("c").unix])
        self.assertIn("3 servers cannot share 4 slots: each server gives every 3-th step", logged.output[0])
        self.assertEqual(contents(data), self.local)
        self.assertEqual(contents(data), self.second)

    def test_a_plan_without_slots_has_steps_in_turn_for_each_rank(self):
        urls = [self.start(name, slots=STATELESS).unix for name in ("d", "e")]
        own = [self.own(mode="stateless", slots=None, rows=3, rank=rank, world=2) for rank in range(2)]
        with self.assertNoLogs("millrace", logging.WARNING):
            first = self.dataset(urls, rank=0, world=2)
            given = [content(first.next())]
        second = self.dataset(urls, rank=1, world=2)  # while the other one is attached
        self.assertEqual(contents(second), contents(own[1]))
        self.assertEqual(given + contents(first), contents(own[0]))


class InTurn(BatchesOfOne, ServedTest):
    def batches_of(self, urls, **keys):
        """The batches of each server."""
        with self.assertNoLogs("millrace", logging.WARNING):
            data = self.dataset(urls, **keys)
        self.assertEqual(contents(data), self.local)
        return [server.counts[0] for server in data._open()._servers]

    def test_servers_of_this_machine_that_only_copy_give_their_steps_in_turn(self):
        self.assertEqual(sum(self.batches_of(self.urls)), len(self.local))

    def test_servers_with_addresses_of_a_network_share_the_slots(self):
        urls = [self.server.unix, self.start("h").tcp]
        self.assertEqual(self.batches_of(urls), [len(self.local)] * 2)


class Skipped(ServedTest):
    def test_streams_that_cannot_be_read_are_skipped_by_their_own_server(self):
        damaged = self.folder / "damaged"
        files = write_speech(damaged / "speech")
        servers = [TrainServer(damaged, name, more='on_error = "skip"') for name in ("f", "g")]
        for server in servers:
            self.addCleanup(server.kill)
        own = millrace.Dataset(str(damaged / "speech"), chunk={"size": "10ms"}, slots=4, dtype="f32", seed=7, on_error="skip")
        own.next()
        own.seek(0)
        for file in files[3], files[8]:
            file.unlink()
        data = self.dataset([server.unix for server in servers])
        self.assertEqual(contents(data), contents(own))
        self.assertEqual(sorted(data.failed), sorted(own.failed))
        self.assertEqual([failed.stream for failed in sorted(data.failed, key=lambda failed: failed.stream)], [3, 8])
        self.assertEqual(data.stats.failed, 2)
        self.assertEqual([server.counts[0] for server in data._open()._servers], [len(contents(own))] * 2)


if __name__ == "__main__":
    unittest.main()
