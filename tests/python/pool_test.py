# SPDX-License-Identifier: Apache-2.0
"""Python functions of a data set in processes: the same batches, each stream once."""
import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import unittest

from datasets import RULE, DatasetTest, content, contents, rows_of
from harness import wait_for
from pool_streams import LENGTHS, Labels, Shorter, Streams, change

import millrace


class Pool(DatasetTest):
    def data(self, streams=None, **keys):
        keys = {"companions": {"labels": Labels()}, "seed": 3, **keys}
        return super().data(Streams() if streams is None else streams, **keys)

    def epochs(self, count=2, **keys):
        data = self.data(**keys)
        return [contents(data) for _ in range(count)]

    def test_batches_are_those_of_one_process(self):
        modes = [{}, {"slots": 5}, {"mode": "stateless", "slots": None, "rows": 4},
                 {"mode": "stateless", "slots": None, "rows": 3, "chunk": None, "width_buckets": [24]}]
        for mode, augment in itertools.product(modes, [None, change, Shorter()]):
            expected = self.epochs(augment=augment, **mode)
            for processes in 1, 3:
                with self.subTest(mode=mode, augment=augment, processes=processes):
                    self.assertEqual(self.epochs(augment=augment, processes=processes, **mode), expected)

    def test_each_way_to_start_a_process_gives_the_same_batches(self):
        expected = self.epochs(augment=change)
        for method in "fork", "forkserver", "spawn":
            with self.subTest(method):
                self.assertEqual(self.epochs(augment=change, processes=2, start_method=method), expected)

    def test_files_are_changed_in_processes_too(self):
        from datasets import frames_of, write_wav
        for i, length in enumerate(LENGTHS):
            write_wav(self.folder / f"{i}.wav", frames_of(i, length))

        def louder(stream, generator):
            stream.frames *= 2
            return stream

        def rows(**keys):
            data = super(Pool, self).data(str(self.folder), augment=louder, progress=False, **keys)
            return [rows_of(batch) for batch in data]

        self.assertEqual(rows(processes=2), rows())

    def test_each_stream_is_read_and_changed_once_in_an_epoch(self):
        count, epochs = len(LENGTHS), 100  # streams of later epochs are opened ahead
        read, changed = multiprocessing.Array("i", count), multiprocessing.Array("i", count * epochs)

        def note(i):
            with read:
                read[i] += 1

        def augment(stream, generator):
            with changed:
                changed[stream.epoch * count + stream.stream] += 1
            return stream

        for processes in 1, 2, 4:
            read[:], changed[:] = [0] * count, [0] * count * epochs
            data = self.data(Streams(note), augment=augment, processes=processes)
            contents(data)
            data.close()
            self.assertEqual(changed[:count], [1] * count)
            self.assertEqual(max(changed), 1)
            self.assertTrue(0 <= sum(read) - sum(changed) <= processes)  # close() has ended calls

    def test_the_functions_run_in_other_processes_and_several_of_them(self):
        met = multiprocessing.Array("l", 2)
        meeting = multiprocessing.Barrier(2)

        def meet(i):
            with met:
                if os.getpid() in list(met):
                    return
                met[list(met).index(0)] = os.getpid()
            meeting.wait()  # returns only if two processes read at the same time

        self.epochs(streams=Streams(meet), processes=2)
        self.assertEqual(len({*met, os.getpid()}), 3)

    def test_a_run_continues_after_a_checkpoint(self):
        expected = self.epochs(1, augment=change)[0]
        data = self.data(augment=change, processes=2)
        for _ in itertools.islice(data, 5):
            pass
        again = self.data(augment=change, processes=3)
        again.load_state_dict(data.state_dict())
        self.assertEqual(contents(again), expected[5:])

    def test_a_pickled_or_forked_data_set_gives_the_same_batches(self):
        data = self.data(augment=change, processes=2)
        expected = contents(data)
        data.seek(0)
        self.assertEqual(contents(pickle.loads(pickle.dumps(data))), expected)
        context = multiprocessing.get_context("fork")
        for daemon in False, True:  # a process of a DataLoader is a daemon, which must not start others
            ours, theirs = context.Pipe()
            process = context.Process(target=lambda: theirs.send(contents(data)), daemon=daemon)
            process.start()
            self.assertEqual(ours.recv(), expected)
            process.join()

    def test_processes_end_with_their_data_set(self):
        data = self.data(processes=2)
        next(iter(data))
        children = multiprocessing.active_children()
        self.assertEqual(len(children), 2)
        data.close()
        self.assertEqual(multiprocessing.active_children(), [])
        next(iter(data))  # starts them again
        self.doCleanups()
        del data
        gc.collect()
        self.assertEqual(multiprocessing.active_children(), [])

    def test_a_cell_of_a_notebook_that_runs_again_gives_the_same_batches_and_ends_the_processes_before(self):
        cell = """
def louder(stream, generator):
    stream.frames = (stream.frames * generator.uniform(0.5, 1)).astype("int16")
    return stream

data = millrace.Dataset(streams, chunk=chunk, slots=2, seed=1, augment=louder, processes=2)
for batch in data:
    taken.append(content(batch))
    if len(taken) == stop:
        break
"""
        notebook = {"millrace": millrace, "streams": Streams(), "chunk": RULE, "content": content}
        runs = []
        for stop in 3, 0, 0:  # the first run is left
            notebook.update(taken=[], stop=stop)
            exec(cell, notebook)
            runs.append(notebook["taken"])
            gc.collect()
            self.assertEqual(len(multiprocessing.active_children()), 2)
        self.assertEqual(runs, [runs[2][:3], runs[2], runs[2]])
        notebook["data"].close()

    def test_processes_end_with_the_process_that_trains(self):
        program = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import multiprocessing, millrace
from pool_streams import Streams
sleeps = multiprocessing.Value("b", 0)
def augment(stream, generator):
    while sys.argv[2] == "in a call" and stream.epoch:
        sleeps.value = 1
    return stream
data = millrace.Dataset(Streams(), chunk={RULE}, slots=2, processes=2, start_method=sys.argv[1],
                        augment=augment if sys.argv[1] == "fork" else None)
batches = iter(data)
next(batches)
while sys.argv[2] == "in a call" and not sleeps.value:
    pass
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
        for method, how in ("fork", "idle"), ("fork", "in a call"), ("spawn", "idle"):
            path = self.folder / "trains.py"
            path.write_text("if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in program.splitlines()))
            killed = subprocess.run([sys.executable, str(path), method, how], capture_output=True, text=True)
            pids = [int(pid) for pid in killed.stdout.split()]
            self.assertEqual(len(pids), 2, killed.stderr)
            wait_for(lambda: not any(is_running(pid) for pid in pids), "the end of the processes")

    def test_a_forked_process_leaves_the_processes_alone(self):
        data = self.data(processes=2, augment=change)
        expected = self.epochs(1, augment=change)[0]
        batches = iter(data)
        given = [content(next(batches))]
        child = multiprocessing.get_context("fork").Process(target=data.close)
        child.start()
        child.join()
        self.assertEqual(given + [content(batch) for batch in batches], expected)

    def test_a_data_set_can_be_moved_after_a_loop_that_was_left_in_a_call(self):
        expected = self.epochs(1)[0]
        for move in (lambda data, state: data.seek(0), lambda data, state: data.load_state_dict(state),
                     lambda data, state: data.close()):
            state_of_call = multiprocessing.RawValue("i")  # without a lock, which a process that is ended would keep

            def augment(stream, generator):
                if stream.epoch and not state_of_call.value:
                    state_of_call.value = 1
                while state_of_call.value == 1:
                    pass
                return stream

            data = self.data(augment=augment, processes=1)
            state = data.state_dict()
            for batch in data:
                wait_for(lambda: state_of_call.value, "a stream of the next epoch, which is opened ahead")
                break
            state_of_call.value = 2
            move(data, state)
            data.seek(0)
            self.assertEqual(contents(data), expected)

    def test_a_spawned_process_may_get_values_of_multiprocessing(self):
        streams = Streams()
        streams.count = multiprocessing.get_context("spawn").Value("l")
        self.assertEqual(self.epochs(streams=streams, processes=1, start_method="spawn"), self.epochs())

    def test_output_of_functions_is_not_lost(self):
        done = subprocess.run([sys.executable, "-c", f"""
import millrace, numpy
def augment(stream, generator):
    print("changed", flush=False)
    return stream
data = millrace.Dataset([numpy.zeros(8, "i2")] * 4, chunk={RULE}, slots=2, processes=2, augment=augment)
for batch in data: pass
"""], capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": ""}, timeout=60)
        self.assertGreaterEqual(done.stdout.count("changed"), 4)

    def test_processes_start_beside_many_open_files(self):
        files = [open(os.devnull) for _ in range(1100)]
        try:
            self.assertEqual(self.epochs(1, processes=2), self.epochs(1))
        finally:
            for file in files:
                file.close()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
