# SPDX-License-Identifier: Apache-2.0
"""The function that changes streams before they are cut."""
import unittest

import numpy as np
from datasets import DatasetTest, arrays, contents, go, rows_of

import millrace


def add_noise(stream, generator):
    stream.frames += generator.integers(1, 1000, stream.frames.shape, np.int16)
    return stream


class Stretch:
    """Makes each stream 1 to 5 frames longer."""

    def frames(self, n, generator):
        return n + int(generator.integers(1, 6))

    def __call__(self, stream, generator):
        wanted = self.frames(len(stream.frames), generator)
        stream.frames = np.resize(stream.frames, (wanted, 1))
        stream.companions = {name: np.resize(array, (wanted, 1)) for name, array in stream.companions.items()}
        return stream


def bodies(data):
    """The values of each stream in an epoch, by its number."""
    streams = {}
    for batch in data:
        for stream, begin, size, _, values in rows_of(batch):
            streams.setdefault(stream, {})[begin] = values
    return {stream: sum((rows[begin] for begin in sorted(rows)), []) for stream, rows in streams.items()}


class Augment(DatasetTest):
    def test_a_stream_is_changed_before_it_is_cut(self):
        seen = []

        def negate(stream, generator):
            seen.append((stream.stream, stream.name, stream.epoch, stream.meta, stream.rate, stream.frames.shape))
            stream.frames = -stream.frames
            return stream

        streams = millrace.catalogs.Arrays(arrays(10, 7), names=["a", "b"], meta=[{"speaker": 3}, None])
        data = self.data(streams, augment=negate, rate=8000)
        self.assertEqual(bodies(data), {i: (-array).tolist() for i, array in enumerate(arrays(10, 7))})
        self.assertEqual(sorted(seen[:2]), [(0, "a", 0, {"speaker": 3}, 8000.0, (10, 1)), (1, "b", 0, {}, 8000.0, (7, 1))])

    def test_the_generator_is_that_of_seed_epoch_and_name(self):
        first = self.data(augment=add_noise, seed=1, threads=0)
        epochs = [bodies(first), bodies(first)]
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertNotEqual(bodies(self.data(augment=add_noise, seed=2)), epochs[0])
        other = self.data(augment=add_noise, seed=1, threads=3, slots=4)
        self.assertEqual([bodies(other), bodies(other)], epochs)

    def test_copies_of_a_stream_have_draws_of_their_own_and_the_first_one_those_of_a_single_one(self):
        def drawn(frequency, **options):
            seen = {}

            def note(stream, generator):
                seen.setdefault(stream.name, {})[stream.copy] = int(generator.integers(1 << 40))
                return stream

            list(self.data([(arrays(10, 7, 21), frequency)], augment=note, threads=0, **options))
            return seen

        stateless = {"mode": "stateless", "slots": None, "rows": 2}
        once = drawn(1)
        for options in {}, stateless, {**stateless, "shuffle_window": 2}:
            repeated = drawn(3, **options)
            self.assertEqual(once, {name: {0: copies[0]} for name, copies in repeated.items()})
            self.assertEqual([len(set(copies.values())) for copies in repeated.values()], [3, 3, 3])

    def test_the_length_of_a_copy_is_that_of_its_own_generator(self):
        data = self.data([(arrays(10, 7, 21), 3)], augment=Stretch(), threads=0)
        self.assertGreater(sum(int(batch.size.sum()) for batch in data), 3 * 38)

    def test_a_resumed_run_gets_the_same_changes(self):
        data = self.data(augment=add_noise)
        whole = contents(data)
        after = self.data(augment=add_noise)
        go(after, 0, 3)
        self.assertEqual(contents(after), whole[3:])

    def test_a_length_that_is_given_beforehand_may_change(self):
        data = self.data(augment=Stretch(), companions={"copy": arrays(10, 7, 21, 4)})
        epochs = [bodies(data), bodies(data)]
        for streams in epochs:
            for stream, length in enumerate((10, 7, 21, 4)):
                self.assertIn(len(streams[stream]), range(length + 1, length + 6))
        self.assertNotEqual([len(values) for values in epochs[0].values()],
                            [len(values) for values in epochs[1].values()])
        data.seek(0)
        for batch in data:
            for number, row in enumerate(batch.framed):
                np.testing.assert_array_equal(batch.companions["copy"][number, :row.size, 0],
                                              batch.data[number, 2:2 + row.size, 0])

    def test_an_exit_in_the_function_is_an_error_that_begins_with_its_name(self):
        def leaves(stream, generator):
            raise SystemExit("no licence")

        with self.assertRaisesRegex(millrace.DataError, "augment: SystemExit: no licence"):
            list(self.data(augment=leaves, threads=1))

    def test_an_exception_comes_with_stream_and_traceback_at_its_step(self):
        def fail(stream, generator):
            if stream.name == "2":
                raise KeyError("no such noise")
            return stream

        for threads in 0, 2:
            data = self.data(augment=fail, threads=threads, shuffle=False)
            expected = [batch.step for batch in self.data(shuffle=False)
                        if any(row.stream == 2 for row in batch.framed)][0]
            for _ in range(2):  # it comes again
                with self.assertRaises(millrace.DataError) as raised:
                    list(data)
                error = raised.exception
                self.assertEqual((error.stream, error.name, error.reason, error.epoch, error.step, data.step),
                                 (2, "2", "function", 0, expected, expected))
                self.assertIn("no such noise", str(error))
                self.assertIn("in fail", str(error))

    def test_wrong_results_are_errors_of_their_stream(self):
        def shorter(stream, generator):
            stream.frames = stream.frames[1:]
            return stream

        def floats(stream, generator):
            stream.frames = stream.frames * 0.5
            return stream

        for function, text in ((shorter, "9 frames instead of 10"), (lambda stream, generator: None, "must return"),
                               (floats, "float64 instead of int16")):
            with self.assertRaisesRegex(millrace.DataError, text):
                list(self.data([arrays(10)], augment=function, slots=1))

    def test_exceptions_of_the_interpreter_have_their_texts(self):
        for function, text in ((lambda stream, generator: 1 // 0, "augment: ZeroDivisionError: integer division"),
                               (lambda stream: stream, "augment: TypeError: .* takes 1 positional argument"),
                               (lambda stream, generator: {}["no"], "augment: KeyError: 'no'")):
            with self.assertRaisesRegex(millrace.DataError, text):
                list(self.data([arrays(10)], augment=function, slots=1))

    def test_an_exception_of_the_length_comes_before_the_epoch(self):
        class Fails(Stretch):
            def frames(self, n, generator):
                if n == 7:
                    raise KeyError("no such length")
                return n

        data = self.data(augment=Fails())
        for _ in range(2):
            with self.assertRaisesRegex(millrace.DataError, "stream 1 .*no such length") as raised:
                data.next()
            self.assertEqual((raised.exception.reason, raised.exception.stream), ("function", 1))


if __name__ == "__main__":
    unittest.main()
