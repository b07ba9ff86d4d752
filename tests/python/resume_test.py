# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a Dataset: a resumed run gives the batches of an uninterrupted one."""
import json
import random
import unittest

from datasets import DatasetTest, arrays, contents, go, rows_of

import millrace

STREAMS = arrays(*range(5, 25))


class Resume(DatasetTest):
    def data(self, streams=STREAMS, **keys):
        return super().data(streams, **{"slots": 4, "seed": 2, **keys})

    def test_a_resumed_run_gives_the_batches_of_an_uninterrupted_one(self):
        data = self.data()
        whole = [contents(data) for _ in range(3)]
        random.seed(1)
        for _ in range(8):
            epoch = random.randrange(3)
            step = random.randrange(len(whole[epoch]))
            before = self.data(threads=random.randrange(3))
            before.seek(epoch)
            for batch in before:
                if batch.step == step:
                    break
            state = json.loads(json.dumps(before.state_dict()))
            after = self.data(threads=random.randrange(3))
            after.load_state_dict(state)
            self.assertEqual(contents(after), whole[epoch][step + 1:])

    def test_a_checkpoint_loads_with_another_world(self):
        one = self.data()
        rest = [rows_of(batch) for batch in one]
        go(one, 0, 3)
        state = one.state_dict()
        ranks = [self.data(rank=rank, world=2, threads=0) for rank in range(2)]
        for data in ranks:
            data.load_state_dict(state)
        both = [[row for part in parts for row in rows_of(part)] for parts in zip(*ranks, strict=True)]
        self.assertEqual(both, rest[3:])
        self.assertEqual(ranks[0].state_dict(), ranks[1].state_dict())

    def test_a_checkpoint_without_slots_loads_with_another_world_where_a_step_begins(self):
        def stateless(**keys):
            return self.data(**{"slots": None, "mode": "stateless", "rows": 3, "drop_last": False, **keys})

        one = stateless()
        rest = contents(one)
        ranks = [stateless(rank=rank, world=2) for rank in range(2)]
        one.seek(0, 4)
        state = one.state_dict()
        for rank, data in enumerate(ranks):
            data.load_state_dict(state)
            self.assertEqual(data.step, 2)
            batches = rest[4:][rank::2]
            self.assertEqual([batch[2:] for batch in contents(data)][:len(batches) - 1],
                             [batch[2:] for batch in batches[:-1]])
            data.seek(0, 3)
            one.load_state_dict(data.state_dict())
            self.assertEqual(one.step, 6)
        one.seek(0, 3)
        with self.assertRaisesRegex(millrace.PlanDiffers, "no step of world=2 begins after its 3 batches"):
            ranks[0].load_state_dict(one.state_dict())
        for keys in {"buckets": [10, 20]}, {"chunk": None, "buckets": 3}:
            bucketed = stateless(**keys)
            bucketed.seek(0, 2)
            with self.assertRaisesRegex(millrace.PlanDiffers, "buckets"):
                stateless(rank=1, world=2, **keys).load_state_dict(bucketed.state_dict())
        for keys in {"shuffle": False}, {"mode": "returnn-torch"}, {"mode": "returnn-classic"}, {"chunk": None, "order": "laplace"}:
            keys = {"chunk": {"size": 4}, **keys}
            ordered = stateless(drop_last=True, **keys)
            ordered.seek(0, 2)
            with self.assertRaisesRegex(millrace.PlanDiffers, "leaves out other batches"):
                stateless(drop_last=True, rank=1, world=2, **keys).load_state_dict(ordered.state_dict())

    def test_the_position_counts_batches_taken_not_those_filled_ahead(self):
        data = self.data(prefetch=4)
        data.next()
        self.assertEqual(data.state_dict()["step"], 1)

    def test_a_checkpoint_of_the_end_of_an_epoch_begins_the_next_one(self):
        data = self.data()
        list(data)
        after = self.data()
        after.load_state_dict(data.state_dict())
        self.assertEqual(contents(after), contents(data))
        self.assertEqual(after.epoch, 2)

    def test_a_checkpoint_of_another_plan_is_refused_by_name(self):
        state = self.data().state_dict()
        for keys, named in (({"seed": 3}, "seed"), ({"slots": 2}, "slots"), ({"chunk": {"size": 5}}, "chunk|rule"),
                            ({"shuffle": False}, "shuffle"), ({"streams": arrays(*range(5, 24))}, "19 streams, the checkpoint has 20")):
            data = self.data(**keys)
            with self.assertRaisesRegex(millrace.PlanDiffers, named):
                data.load_state_dict(state)
            self.assertEqual((data.epoch, data.step), (0, 0))

    def test_a_checkpoint_of_another_version_is_refused(self):
        with self.assertRaisesRegex(ValueError, "version 9"):
            self.data().load_state_dict({"version": 9})


if __name__ == "__main__":
    unittest.main()
