# SPDX-License-Identifier: Apache-2.0
"""Trainers and servers of batches that are killed or stopped: no step is missed or repeated."""
import contextlib
import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import ALL_INPUTS, Process, wait_for
from training_server import TrainServer, write_speech

PYTHON = os.environ["PYTHON"]
PROGRAM = Path(__file__).with_name("trainer_program.py")
EPOCHS = 3
KILLS = 20 if ALL_INPUTS else 8
AHEAD = 20  # batches; more than a trainer receives before it uses them


class Trainer(Process):
    def __init__(self, urls, checkpoint, rank=0, world=1):
        self.checkpoint = checkpoint
        super().__init__(PYTHON, "-B", str(PROGRAM), json.dumps(urls), str(checkpoint), str(EPOCHS), str(rank), str(world),
                         stdin=subprocess.PIPE)
        self.allowed = self.saved().get("trained", 0)

    def saved(self):
        """The last checkpoint; empty before the first."""
        return json.loads(self.checkpoint.read_text()) if self.checkpoint.exists() else {}

    def allow(self, batches):
        """Lets it train on this number of batches in all."""
        more = max(0, batches - self.allowed)
        self.allowed += more
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self.process.stdin.write("x" * more)
            self.process.stdin.flush()

    def await_trained(self, batches):
        """Waits for this number of batches, and lets it continue a little. Returns false if the trainer has ended before."""
        self.allow(batches + AHEAD)
        def reached():
            state = self.saved()
            return state.get("ended") or state.get("trained", 0) >= batches or self.process.poll() is not None
        wait_for(reached, f"{batches} batches")
        return self.process.poll() is None

    def kill(self):
        super().kill()
        self.process.stdin.close()

    def finish(self):
        """Waits for the end. Returns the model and the number of batches."""
        self.process.stdin.close()
        code = self.wait()
        self.kill()  # closes its pipes
        assert code == 0, self.errors
        return self.saved()["model"], self.saved()["trained"]


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        write_speech(cls.folder / "speech")
        cls.server = TrainServer(cls.folder)
        cls.expected = Trainer([cls.server.unix], cls.folder / "whole.json").finish()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.temporary.cleanup()

    def start_two(self):
        servers = [TrainServer(self.folder, name) for name in ("a", "b")]
        for server in servers:
            self.addCleanup(server.kill)
        return servers

    def points(self, count):
        """Random numbers of batches, ascending."""
        return sorted(random.Random(count).sample(range(1, self.expected[1]), count))

    def kill_trainer(self, urls, name):
        checkpoint = self.folder / name
        killed = 0
        for point in self.points(KILLS):
            trainer = Trainer(urls, checkpoint)
            if trainer.await_trained(point):
                killed += 1
            trainer.kill()
        self.assertEqual(Trainer(urls, checkpoint).finish(), self.expected)
        self.assertGreater(killed, KILLS // 2)

    def test_a_trainer_that_is_killed_has_trained_on_the_batches_of_one_that_was_not(self):
        self.kill_trainer([self.server.tcp], "alone.json")

    def test_the_same_with_two_servers(self):
        self.kill_trainer([server.tcp for server in self.start_two()], "two.json")

    def kill_servers(self, servers, urls, name):
        trainer = Trainer(urls, self.folder / name)
        for number, point in enumerate(self.points(6)):
            if not trainer.await_trained(point):
                break
            server = servers[number % len(servers)]
            server.kill()
            server.again()
        self.assertEqual(trainer.finish(), self.expected)
        self.assertTrue(any("attaching again" in line for line in trainer.errors), trainer.errors)

    def test_a_trainer_continues_at_its_next_step_after_its_server_was_killed(self):
        server = TrainServer(self.folder, "killed")
        self.addCleanup(server.kill)
        self.kill_servers([server], [server.tcp], "killed.json")

    def test_two_servers_that_are_killed_in_turn_lose_no_step(self):
        servers = self.start_two()
        self.kill_servers(servers, [server.unix for server in servers], "killed_two.json")

    def test_a_server_that_stops_is_left_until_it_listens_again(self):
        server = TrainServer(self.folder, "stops")
        self.addCleanup(server.kill)
        trainer = Trainer([server.tcp], self.folder / "stops.json")
        for point in self.points(3):
            if trainer.await_trained(point):
                self.assertEqual(server.stop(), 0)
                server.again()
        self.assertEqual(trainer.finish(), self.expected)

    def test_a_server_that_stalls_loses_no_step(self):
        server = TrainServer(self.folder, "stalls")
        self.addCleanup(server.kill)
        trainer = Trainer([server.tcp], self.folder / "stalls.json")
        for point in self.points(2):
            if not trainer.await_trained(point):
                break
            server.freeze()
            trainer.allow(point + 2 * AHEAD)  # more than it has received
            # After 6 s without a message, the trainer takes its server for lost. If it ended before, it needs none.
            wait_for(lambda: any("attaching again" in line for line in trainer.errors) or trainer.process.poll() is not None,
                     "the loss")
            server.thaw()
        self.assertEqual(trainer.finish(), self.expected)

    def test_the_ranks_of_a_world_train_on_their_own_parts(self):
        ranks = [Trainer([self.server.unix], self.folder / f"rank{rank}.json", rank, 2) for rank in range(2)]
        models = [rank.finish() for rank in ranks]
        self.assertNotEqual(models[0][0], models[1][0])
        self.assertEqual(models[0][1], self.expected[1])
        self.assertEqual(models[1][1], self.expected[1])


if __name__ == "__main__":
    unittest.main()
