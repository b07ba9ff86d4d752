# SPDX-License-Identifier: Apache-2.0
"""Data sets in other processes, and the ends of loops: fork, spawn, pickle, Ctrl-C, a loop that is left early."""
import contextlib
import gc
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import millrace
import torch
from datasets import DatasetTest, arrays, content, contents, go, write_wav

PATIENCE = 240  # seconds, for a process that imports PyTorch
EXITING = 4  # PF_EXITING of Linux; not in Python's modules

SLOW = """
import os, signal, sys, time, threading
import numpy as np
import millrace

class Slow(millrace.catalogs.Arrays):
    _place = None
    slow = False
    def read(self, i, begin, n):
        if n > 1 and self.slow:
            os.write(1, b"reads\\n")
            time.sleep(600)
        return super().read(i, begin, n)

class SlowIndex(millrace.catalogs.Arrays):
    def frames(self, i):
        if i == 2:
            os.write(1, b"reads\\n")
        time.sleep(0.001 if i >= 2 else 0)
        return super().frames(i)

ARRAYS = [np.ones(40, np.int16)] * 4
"""


def threads():
    """Names of the threads of this process."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
            if not int(fields.split()[6]) & EXITING:  # the kernel lists a thread for a moment after its join
                names.append(name)
    return sorted(names)


def take(data, queue):
    """Runs in another process."""
    queue.put(contents(data))


class Processes(DatasetTest):
    def compare(self, context, data, expected):
        queue = context.Queue()
        process = context.Process(target=take, args=(data, queue))
        process.start()
        try:
            self.assertEqual(queue.get(timeout=PATIENCE), expected)
        finally:
            process.join(PATIENCE)
        self.assertEqual(process.exitcode, 0)

    def test_a_data_set_can_be_pickled_with_its_position(self):
        data = self.data(companions={"copy": arrays(10, 7, 21, 4)})
        expected = contents(data)
        go(data, 0, 2)
        batch = data.next()
        again = pickle.loads(pickle.dumps(data))
        self.assertEqual((again.epoch, again.step), (0, 3))
        self.assertEqual(contents(again), expected[3:])
        self.assertEqual(content(batch), expected[2])

    def test_a_spawned_process_takes_the_batches(self):
        data = self.data()
        expected = contents(data)
        data.seek(0)
        self.compare(multiprocessing.get_context("spawn"), data, expected)

    def test_a_forked_process_takes_the_batches(self):
        for taken in 0, 2:  # before and after the first batch of this process
            data = self.data()
            expected = contents(data)
            data.seek(0, 0)
            kept = [data.next() for _ in range(taken)]
            self.compare(multiprocessing.get_context("fork"), data, expected[taken:])
            self.assertEqual([content(batch) for batch in kept] + contents(data), expected)

    def test_a_forked_process_may_drop_batches_and_data_sets(self):
        data = self.data()
        iterator = iter(data)
        kept = [next(iterator), next(iterator).data]
        child = os.fork()
        if child == 0:
            try:
                del kept, iterator, data
                gc.collect()
                os._exit(0)
            except BaseException:
                os._exit(1)
        ended = os.pidfd_open(child)
        self.addCleanup(os.close, ended)
        self.assertTrue(select.select([ended], [], [], PATIENCE)[0], "the forked process hangs")
        self.assertEqual(os.waitpid(child, 0), (child, 0))
        self.assertEqual(data.stats.kept, 2)

    def test_a_folder_of_audio_files_works_in_a_spawned_process(self):
        for i, array in enumerate(arrays(10, 7, 21)):
            write_wav(self.folder / f"{i}.wav", array)
        data = self.data(self.folder)
        expected = contents(data)
        data.seek(0)
        self.compare(multiprocessing.get_context("spawn"), data, expected)


class Ends(DatasetTest):
    def test_threads_start_with_the_first_batch_and_end_with_a_loop_that_is_left(self):
        before = threads()
        data = self.data(threads=2)
        len(data)
        self.assertEqual(threads(), before)
        for _ in data:
            self.assertGreaterEqual(len(threads()), len(before) + 2)
            break
        self.assertEqual(threads(), before)
        try:
            for _ in data:
                raise KeyError
        except KeyError:
            pass
        self.assertEqual(threads(), before)
        for _ in millrace.progress(data):
            break
        self.assertEqual([name for name in threads() if name != "python"], [name for name in before if name != "python"])
        self.assertEqual(data.step, 3)

    def test_close_and_the_end_of_the_object_end_the_threads(self):
        before = threads()
        with self.data(threads=2) as data:
            data.next()
        self.assertEqual(threads(), before)
        data.next()
        self.doCleanups()
        del data
        gc.collect()
        self.assertEqual(threads(), before)

    def run_until_interrupted(self, program):
        process = subprocess.Popen([sys.executable, "-c", SLOW + program], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            self.assertEqual(process.stdout.readline(), "reads\n", process.poll() and process.stderr.read())
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertIn("KeyboardInterrupt", errors)
        finally:
            process.kill()
            process.communicate()

    def test_ctrl_c_ends_the_wait_for_a_batch_that_threads_fill(self):
        self.run_until_interrupted("""
class Waits(Slow):
    def read(self, i, begin, n):
        if n > 1:
            os.write(1, b"reads\\n")
            event.wait()
        return super().read(i, begin, n)
event = threading.Event()
signal.signal(signal.SIGINT, lambda *_: (event.set(), signal.default_int_handler(*_)))
data = millrace.Dataset(Waits(ARRAYS), chunk={"size": 4}, slots=2, threads=1)
for batch in data:
    pass
""")

    def test_ctrl_c_does_not_wait_for_augment(self):
        self.run_until_interrupted("""
def augment(stream, generator):
    os.write(1, b"reads\\n")
    time.sleep(600)
data = millrace.Dataset(ARRAYS, chunk={"size": 4}, slots=2, threads=1, augment=augment)
for batch in data:
    pass
""")

    def test_ctrl_c_does_not_wait_for_a_reader(self):
        self.run_until_interrupted("""
streams = Slow(ARRAYS)
data = millrace.Dataset(streams, chunk={"size": 4}, slots=2, threads=2)
streams.slow = True
with data:
    data.next()
""")

    def test_ctrl_c_ends_the_distribution_of_an_epoch(self):
        for call in "len(data)", "data.seek(3, 1)", "data.next()":
            self.run_until_interrupted(f"""
class Long(Slow):
    def frames(self, i):
        return 1 << 28
data = millrace.Dataset(Long([ARRAYS[0]] * 2000), chunk={{"size": 4}}, mode="returnn-torch", rows=1000)  # 10¹¹ rows
os.write(1, b"reads\\n")
{call}
""")

    def data_that_waits(self):
        """A data set whose augment waits at stream 3, its batches, and events: it waits, it may go on."""
        entered, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def augment(stream, generator):
            if stream.stream == 3 and not go_on.is_set():
                entered.set()
                go_on.wait()
            return stream

        expected = contents(self.data(arrays(40, 40, 40, 40), shuffle=False))
        data = self.data(arrays(40, 40, 40, 40), shuffle=False, threads=1, prefetch=1, augment=augment)
        return data, expected, entered, go_on

    def test_a_loop_that_is_left_does_not_wait_for_augment(self):
        data, expected, entered, go_on = self.data_that_waits()
        given = []
        for batch in data:
            given.append(content(batch))
            entered.wait()  # stream 3 is opened ahead
            break
        kept = batch
        data.close()
        self.assertEqual((data.epoch, data.step), (0, 1))
        go_on.set()
        self.assertEqual(given + contents(data), expected)
        self.assertEqual(content(kept), expected[0])
        self.assertEqual(len(data), len(expected))

    def test_a_close_within_a_loop_does_not_wait_and_the_loop_goes_on(self):
        data, expected, entered, go_on = self.data_that_waits()
        given = []
        for batch in data:
            given.append(content(batch))
            if data.step == 1:
                entered.wait()
                data.close()
                go_on.set()
        self.assertEqual(given, expected)
        self.assertEqual((data.stats.batches, data.stats.epoch.batches), (len(expected), len(expected)))

    def test_a_program_ends_while_augment_runs(self):
        done = subprocess.run([sys.executable, "-c", SLOW + """
entered = threading.Event()
def augment(stream, generator):
    entered.set()
    time.sleep(600)
data = millrace.Dataset(ARRAYS, chunk={"size": 4}, slots=2, threads=1, augment=augment)
data.next(timeout=0)
entered.wait()
print("ends")
"""], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ends\n", ""))

    def test_ctrl_c_ends_a_loop_without_threads(self):
        self.run_until_interrupted("""
streams = Slow(ARRAYS)
data = millrace.Dataset(streams, chunk={"size": 4}, slots=2, threads=0)
streams.slow = True
for batch in data:
    pass
""")

    def test_ctrl_c_ends_the_making_of_an_index(self):
        self.run_until_interrupted("""
millrace.Dataset(SlowIndex(ARRAYS * 100_000), chunk={"size": 4}, slots=2)
""")

    def test_ctrl_c_ends_the_making_of_the_index_of_files_and_writes_nothing(self):
        for i, array in enumerate(arrays(10, 7, 21)):
            write_wav(self.folder / f"{i}.wav", array)

        @contextlib.contextmanager
        def interrupted(wanted):
            yield lambda done, total: signal.raise_signal(signal.SIGINT)

        with unittest.mock.patch("millrace.dataset_feed.index_progress", interrupted), self.assertRaises(KeyboardInterrupt):
            self.data(self.folder)
        self.assertEqual(sorted(path.name for path in self.folder.rglob("*") if path.is_file()),
                         ["0.wav", "1.wav", "2.wav"])
        self.assertEqual(self.data(self.folder).streams, 3)

    def test_a_program_may_end_within_a_loop(self):
        for threads_of in 0, 2:
            for end in "sys.exit(3)", "import os; os._exit(3)", "raise SystemExit(3)":
                done = subprocess.run([sys.executable, "-c", SLOW + f"""
data = millrace.Dataset(Slow(ARRAYS), chunk={{"size": 4}}, slots=2, threads={threads_of},
                        augment=lambda stream, generator: stream)
kept = []
for batch in data:
    kept.append(batch.data)
    if batch.step == 2:
        {end}
"""], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (3, ""), end)


class Ranks(DatasetTest):
    def together(self, seeds):
        """Two processes of torch.distributed, with these seeds. Returns exit statuses and errors."""
        program = """
import sys
import numpy as np, torch, millrace
rank, seed, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
data = millrace.Dataset([np.ones(40, np.int16)] * 8, chunk={"size": 4}, slots=4, rank=rank, world=2, seed=seed)
print(sum(batch.rows for batch in data))
torch.distributed.barrier()
"""
        path = self.folder / f"group {seeds}"
        processes = [subprocess.Popen([sys.executable, "-c", program, str(rank), str(seed), str(path)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for rank, seed in enumerate(seeds)]
        try:
            return [(process.communicate(timeout=60), process.returncode) for process in processes]
        finally:
            for process in processes:
                process.kill()

    @unittest.skipUnless(torch.distributed.is_available(), "PyTorch without torch.distributed")
    def test_ranks_with_other_plans_refuse_together(self):
        for (out, errors), status in self.together((1, 1)):
            self.assertEqual((out, status), ("40\n", 0), errors)
        for (out, errors), status in self.together((1, 2)):
            self.assertEqual(status, 1)
            self.assertRegex(errors, 'PlanDiffers: rank 1 and rank 0 have different plans: seed is "1" instead of "2"')


if __name__ == "__main__":
    unittest.main()
