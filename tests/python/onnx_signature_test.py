# SPDX-License-Identifier: Apache-2.0
"""Configurations of millrace-onnx-worker that do not fit the model, or are wrong: the error names the cause. Long texts and lengths."""
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from millrace import Flag, Row
from millrace.onnx_worker.answers import LONGEST, shown_as
from millrace.onnx_worker.configuration import Answer, read
from millrace.onnx_worker.model import Model
from millrace.onnx_worker.signature import signature_of

ROOT = Path(__file__).resolve().parents[2]


def port(name, type, *shape):
    return types.SimpleNamespace(name=name, type=f"tensor({type})", shape=list(shape))


INPUTS = [port("x", "float", "N", 8, 4), port("h", "float", 2, "N", 16), port("n", "int64", "N"), port("sr", "int64")]
OUTPUTS = [port("y", "float", "N", 3), port("new_h", "float", 2, "N", 16), port("new_n", "int64", "N")]
FITS = 'states = { h = "new_h", n = "new_n" }\ninputs = { sr = 16000 }\n'


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "model.toml"

    def read(self, text):
        self.path.write_text(text)
        return read(self.path)

    def signature(self, text, inputs=INPUTS, outputs=OUTPUTS):
        return signature_of(self.read(text), inputs, outputs)

    def refuses(self, text, message, *ports):
        with self.assertRaises(ValueError) as raised:
            self.signature(text, *ports)
        self.assertEqual(str(raised.exception).removeprefix(f"{self.path}: "), message.replace("FOLDER", str(self.folder)))


class Signatures(ConfigurationTest):
    def test_the_file_says_what_the_configuration_does_not(self):
        signature = self.signature(FITS)
        self.assertEqual((signature.chunk, signature.axes, signature.rows, signature.columns, signature.values), ("x", "NTC", None, 8, 4))
        self.assertEqual([(state.input, state.axis, state.initial.shape, str(state.initial.dtype)) for state in signature.states],
                         [("h", 1, (2, 1, 16), "float32"), ("n", 0, (1,), "int64")])
        self.assertEqual(signature.outputs, ["y", "new_h", "new_n"])
        renamed = [INPUTS[0], port("h", "float", 2, "B", 16), *INPUTS[2:]]  # a file may have several names for the number of rows
        self.assertEqual(self.signature(FITS, renamed).states[0].axis, 1)
        self.assertEqual(self.signature('states = { "*" = "new_*" }\ninputs = { sr = 16000 }').states[1].output, "new_n")

    def test_another_number_of_states_is_refused_with_the_names_that_are_left(self):
        self.refuses('states = { h = "new_h" }\ninputs = { sr = 16000 }',
                     "inputs x, n of the model: one is the chunk; name the others in states, inputs or chunk.sizes")
        self.refuses('chunk = { input = "x" }\nstates = { h = "new_h" }\ninputs = { sr = 16000 }',
                     "inputs n of the model have no use: name them in states, inputs or chunk.sizes")
        self.refuses(FITS.replace("}", ', c = "new_c" }', 1), "states.c: the model has no input c; its inputs: x, h, n, sr")
        self.refuses(FITS.replace("new_n", "y_n"), "states.n.output: the model has no output y_n; its outputs: y, new_h, new_n")
        self.refuses(FITS.replace("new_n", "new_h"), "output new_h is named twice in states")
        self.refuses('states = { "c_*" = "new_*" }', "states.c_*: no input c_* of the model has an output new_*")
        self.refuses(FITS + 'chunk = { input = "h" }', "input h is named twice, among states, inputs and chunk")
        self.refuses(FITS.replace("h =", "x = 'y', h ="), "no input is the chunk: each is a state or has a value",
                     INPUTS, [port("y", "float", "N", 8, 4), *OUTPUTS[1:]])

    def test_a_state_of_another_shape_or_type_is_refused(self):
        for other in (port("new_h", "float", 2, "N", 8), port("new_h", "int64", 2, "N", 16), port("new_h", "float", "N", 16)):
            shape = ", ".join(map(str, other.shape))
            self.refuses(FITS, f"states.h: input h is tensor(float) [2, N, 16], but output new_h is {other.type} [{shape}]",
                         INPUTS, [OUTPUTS[0], other, OUTPUTS[2]])
        self.refuses(FITS.replace('"new_h"', '{ output = "new_h", axis = 3 }'), "states.h.axis must be 0 to 2, not 3: input h is tensor(float) [2, N, 16]")
        self.refuses(FITS.replace('"new_h"', '{ output = "new_h", axis = 0 }'),
                     "states.h: axis 0 of tensor(float) [2, N, 16] has another number of rows than the chunk")
        self.refuses(FITS, "states.h.axis is missing: which axis of tensor(float) [N, N, 16] has the rows?",
                     [INPUTS[0], port("h", "float", "N", "N", 16), *INPUTS[2:]], [OUTPUTS[0], port("new_h", "float", "N", "N", 16), OUTPUTS[2]])

    def test_initial_values_are_a_number_lists_or_a_file(self):
        np.save(self.folder / "h.npy", np.ones((2, 16)))
        for given, value in (("0.25", 0.25), ('"h.npy"', 1), (str([[0.5] * 16] * 2), 0.5)):
            state, _ = self.signature(FITS.replace('"new_h"', f'{{ output = "new_h", initial = {given} }}')).states
            np.testing.assert_array_equal(state.initial, np.full((2, 1, 16), value, np.float32))
        longer = [INPUTS[0], port("h", "float", "L", "N", 16), *INPUTS[2:]]
        self.assertEqual(self.signature(FITS.replace('"new_h"', '{ output = "new_h", initial = "h.npy" }'), longer).states[0].initial.shape, (2, 1, 16))
        self.refuses(FITS, "states.h.initial: tensor(float) [L, N, 16] has no fixed shape: write an array, not 0", longer)
        self.refuses(FITS.replace('"new_h"', '{ output = "new_h", initial = "g.npy" }'),
                     "states.h.initial: [Errno 2] No such file or directory: 'FOLDER/g.npy'")
        (self.folder / "empty.npy").touch()
        self.refuses(FITS.replace('"new_h"', '{ output = "new_h", initial = "empty.npy" }'), "states.h.initial: No data left in file")
        self.refuses(FITS.replace('"new_n"', '{ output = "new_n", initial = 0.5 }'), "states.n.initial: it must be tensor(int64), not 0.5")

    def test_fixed_inputs_have_the_type_and_shape_of_the_model(self):
        self.assertEqual(self.signature(FITS).inputs["sr"][0].dtype, np.int64)
        self.refuses(FITS.replace("16000", "0.5"), "inputs.sr: it must be tensor(int64), not 0.5")
        self.refuses(FITS.replace("16000", '"fast"'), "inputs.sr: it must be tensor(int64), not 'fast'")
        gains = [*INPUTS, port("gain", "float", "N", 4)]
        for given, value, shape in (("2", 2, [None, 4]), ("[[1, 2, 3, 4]]", [[1, 2, 3, 4]], [None, 4]), ("[1, 2, 3, 4]", [1, 2, 3, 4], [None, 4]),
                                    ("[[1, 2, 3, 4], [5, 6, 7, 8]]", [[1, 2, 3, 4], [5, 6, 7, 8]], [2, 4])):
            array, filled = self.signature(FITS.replace("16000", f"16000, gain = {given}"), gains).inputs["gain"]
            self.assertEqual((array.tolist(), filled), (value, shape))
        words = [*INPUTS, port("words", "float", "N", "M")]
        self.assertEqual(self.signature(FITS.replace("16000", "16000, words = [1, 2, 3]"), words).inputs["words"][1], [None, 3])
        self.refuses(FITS.replace("16000", "16000, words = 1"), "inputs.words: tensor(float) [N, M] has no fixed shape: write an array, not 1", words)
        self.refuses(FITS.replace("sr", "rate"), "inputs: the model has no input rate; its inputs: x, h, n, sr")

    def test_numbers_that_the_type_of_an_input_cannot_hold_are_refused(self):
        for type, given in (("int16", "70000"), ("uint8", "-1"), ("float", "1e300"), ("int64", "nan"), ("bool", "2")):
            self.refuses(FITS.replace("16000", given), f"inputs.sr: it must be tensor({type}), not {given.replace('1e300', '1e+300')}",
                         [*INPUTS[:3], port("sr", type)])
        for type, given in (("int16", "-32768"), ("float", "-inf"), ("float16", "0.1"), ("int64", "1.0"), ("bool", "1")):
            self.assertEqual(self.signature(FITS.replace("16000", given), [*INPUTS[:3], port("sr", type)]).inputs["sr"][0].ndim, 0)

    def test_lengths_are_integers_for_an_output_with_time(self):
        lengths = FITS + 'answer = { output = "z", lengths = "l" }'
        z = port("z", "float", "N", 5, 4)
        self.assertEqual(self.signature(lengths, INPUTS, [*OUTPUTS, z, port("l", "int32", "N")]).outputs[:2], ["z", "l"])
        self.refuses(lengths, "answer.lengths: output l must have an integer for each row, not tensor(float) [N]", INPUTS, [*OUTPUTS, z, port("l", "float", "N")])
        self.refuses(lengths.replace("z", "y"), "answer.lengths: output y is tensor(float) [N, 3], which has no axis of time behind the rows",
                     INPUTS, [*OUTPUTS, port("l", "int64", "N")])

    def test_the_answer_is_one_output_and_fits_its_names(self):
        more = [*OUTPUTS, port("z", "float", "N", 5, 4)]
        self.refuses(FITS, "answer.output is missing: the answer is one of the outputs y, z", INPUTS, more)
        self.refuses(FITS + 'answer = { output = "w" }', "answer.output: the model has no output w; its outputs: y, new_h, new_n")
        self.refuses(FITS + 'answer = { labels = ["a"] }', "answer.labels has 1 names, but the output has 3 classes")
        self.refuses(FITS + 'answer = { tokens = ["a"] }',
                     "answer: the axes of output y, tensor(float) [N, 3], must be rows, time and tokens")
        z = FITS + 'answer = { output = "z", tokens = ["a", "b", "c"], blank = 4 }'
        self.refuses(z, "answer.blank must be 0 to 3, not 4", INPUTS, more)

    def test_axes_and_types_that_a_chunk_cannot_have_are_refused(self):
        message = "chunk.axes must have a letter for each axis of input x, N rows, T columns or C values, as in NTC; the input is tensor(float) [N, 8, 4]"
        for axes in ("NT", "NTX", "NTT", "TC"):
            self.refuses(FITS + f'chunk = {{ axes = "{axes}" }}', message)
        self.refuses(FITS.replace(', n = "new_n"', "") + 'chunk = { sizes = "n" }\nanswer = { output = "y" }',
                     "chunk.sizes: input n must have an integer for each row, not tensor(float) [N]", [*INPUTS[:2], port("n", "float", "N"), INPUTS[3]])


class Shapes(ConfigurationTest):
    """Results of a model that the file does not describe."""

    def refuses(self, message, *results, names=""):
        outputs = [port("y", "float", None, None), *OUTPUTS[1:]]
        session = types.SimpleNamespace(get_inputs=lambda: INPUTS, get_outputs=lambda: outputs, run=lambda *_: list(results))
        model = Model(session, self.read(FITS + names))
        model.allocate(types.SimpleNamespace(slots=5, chunk={}))
        rows = np.arange(3)
        with self.assertRaises(ValueError) as raised:
            model(types.SimpleNamespace(data=np.zeros((3, 8, 4), np.float32), slot=rows, reset=rows < 2, size=rows, width=8))
        self.assertEqual(str(raised.exception), message)

    def test_rows_of_one_stream_in_a_batch_are_refused_but_not_padding_rows(self):
        session = types.SimpleNamespace(get_inputs=lambda: INPUTS, get_outputs=lambda: OUTPUTS,
                                        run=lambda *_: [np.zeros((3, 3)), np.zeros((2, 3, 16)), np.zeros(3)])
        model = Model(session, self.read(FITS))
        model.allocate(types.SimpleNamespace(slots=5, chunk={}))

        def answer(*slots):
            slot, none = np.array(slots), np.zeros(3, bool)
            return model(types.SimpleNamespace(data=np.zeros((3, 8, 4), np.float32), slot=slot, reset=none, size=slot, width=8))

        self.assertEqual(answer(1, 5, 5)[0].shape, (3, 3))
        with self.assertRaisesRegex(ValueError, 'has several rows of a stream.*must not have state = "none"'):
            answer(1, 5, 1)

    def test_the_share_of_a_short_row_is_exact(self):
        session = types.SimpleNamespace(get_inputs=lambda: INPUTS[:1], get_outputs=lambda: OUTPUTS[:1], run=lambda *_: [np.zeros((3, 100, 3))])
        model = Model(session, self.read(""))
        model.allocate(types.SimpleNamespace(slots=5, chunk={}))
        model.signature = types.SimpleNamespace(**vars(model.signature) | {"columns": 100})
        rows = np.arange(3)
        batch = types.SimpleNamespace(data=np.zeros((3, 100, 4), np.float32), slot=rows, reset=rows > 3, size=np.array([7, 100, 1], np.int32), width=100)
        self.assertEqual(model(batch)[1].tolist(), [7, 100, 1])

    def test_a_state_that_grows_and_an_answer_without_rows_are_refused(self):
        y, h, n = np.zeros((3, 3)), np.zeros((2, 3, 16)), np.zeros(3)
        self.refuses("output new_h is [2, 3, 17], but its state is [2, 3, 16]", y, np.zeros((2, 3, 17)), n)
        self.refuses("output y has no axis 0 of 3 rows, or its lengths have another shape", y[:2], h, n)
        self.refuses("answer.labels has 2 names, but the output has 3 classes", y, h, n, names='answer = { labels = ["a", "b"] }')


class Keys(ConfigurationTest):
    def test_wrong_keys_and_values_are_refused_with_those_that_are_allowed(self):
        for text, message in (
            ("state = {}", "state is unknown; allowed: chunk, states, inputs, answer, pipeline"),
            ("chunk = { width = 8 }", "chunk.width is unknown; allowed: input, axes, sizes"),
            ("chunk = 'x'", "chunk must be a table, not 'x'"),
            ("states = { h = 3 }", "states.h must be the name of an output or a table, not 3"),
            ("states = { h = { axis = 1 } }", "states.h has no output: name the output that has its new value"),
            ("answer = { axis = true }", "answer.axis must be an integer, not True"),
            ("answer = { labels = ['a'], tokens = ['b'] }", "answer has labels and tokens: an output has one of them"),
            ("answer = { blank = 0 }", "answer.blank is the blank token of answer.tokens, which is missing"),
            ("answer = { labels = 'labels.txt' }", "answer.labels: [Errno 2] No such file or directory: 'FOLDER/labels.txt'"),
            ("answer = { labels = [] }", "answer.labels must be a list of strings, or a file with one a line, and not empty"),
        ):
            self.refuses(text, message)

    def test_a_file_of_names_has_one_a_line_or_each_with_its_number(self):
        path = self.folder / "names.txt"
        for text, names in (("a\nb c\n", ["a", "b c"]), ("b 1\n<blk> 0\n", ["<blk>", "b"]), ("1\n2\n", ["1", "2"])):
            path.write_text(text)
            self.assertEqual(self.read("answer = { labels = 'names.txt' }").answer.labels, names)
        self.path.write_text("answer = { labels = 'names.txt' }")
        path.write_bytes("<blk> 0\nß 1\n\u2028 2\n\u0085 3\n 4\n".encode())
        with mock.patch("locale.getpreferredencoding", lambda *_: "ascii"):
            self.assertEqual(read(self.path).answer.labels, ["<blk>", "ß", "\u2028", "\u0085", " "])
        path.write_bytes("a\n\u2028\n".encode())
        self.assertEqual(read(self.path).answer.labels, ["a", "\u2028"])
        path.write_bytes(b"\xff\n")
        with self.assertRaisesRegex(ValueError, "answer.labels: 'utf-8' codec can't decode"):
            read(self.path)
        path.write_text("a 0\nb 2\n")
        self.refuses("answer = { labels = 'names.txt' }", "answer.labels: the numbers in names.txt must be 0 to 1, each once")


    def test_the_document_prints_the_configuration_of_the_example(self):
        page = (ROOT / "docs" / "onnx.md").read_text()
        printed = page[page.index("states   = { state"):].partition("```")[0]
        self.assertEqual(self.read(printed), read(ROOT / "examples" / "silero_vad" / "model.toml"))


class Texts(unittest.TestCase):
    """Transcripts of one slot, from tokens that are given."""

    def setUp(self):
        self.shown = shown_as(Answer(tokens=["a", "b"]), 1)  # the blank is the third class, which is not listed

    def take(self, tokens, flags=0, length=None):
        row = Row(7, 0, 0, 0, None, 0, 0, 8, 0, flags, None)
        batch = types.SimpleNamespace(framed=[row], marks=[], slot=np.zeros(1, int), reset=np.array([bool(flags & Flag.RESET)]))
        return self.shown(batch, (np.eye(3)[tokens][None], np.array([len(tokens) if length is None else length])))[0][0]

    def test_a_token_that_continues_in_the_next_row_is_one_token(self):
        self.assertEqual(self.take([0, 0, 2, 1], Flag.START | Flag.RESET)["text"], "ab")
        self.assertIsNone(self.take([1, 1]))
        self.assertEqual(self.take([2, 1]), {"text": "abb", "stable": "abb"})
        self.assertEqual(self.take([1, 0], Flag.LAST), {"text": "abba", "final": True})

    def test_times_beyond_the_length_of_a_row_are_ignored(self):
        self.assertEqual(self.take([0, 1, 0, 1], Flag.START | Flag.RESET, 2)["text"], "ab")
        self.assertEqual(self.take([0, 1, 0, 1], Flag.RESET, 1)["text"], "a")

    def test_labels_of_an_output_with_time_are_a_list(self):
        output = np.array([[[0, 3], [2, 1]], [[5, 4], [0, 9]]])
        answers, _ = shown_as(Answer(labels=["a", "b"]), 2)(None, (output, np.array([2, 1])))
        self.assertEqual(answers, [[{"label": "b", "score": 3}, {"label": "a", "score": 2}], [{"label": "a", "score": 5}]])

    def test_numbers_of_an_output_with_time_end_with_the_last_real_one(self):
        output = np.arange(12).reshape(2, 3, 2)
        answers, _ = shown_as(Answer(), 2)(None, (output, np.array([3, 1])))
        self.assertEqual([answer.tolist() for answer in answers], [[[0, 1], [2, 3], [4, 5]], [[6, 7]]])
        answers, _ = shown_as(Answer(), 2)(None, (output[:, 0], np.array([2, 1])))
        self.assertEqual(answers.tolist(), [[0, 1], [6, 7]])

    def test_a_space_at_the_end_of_a_text_is_not_sent_alone(self):
        self.shown = shown_as(Answer(tokens=["a", "\u2581"]), 1)
        self.assertEqual(self.take([0, 2], Flag.START | Flag.RESET)["text"], "a")
        self.assertIsNone(self.take([1, 2]))
        self.assertEqual(self.take([0, 2])["text"], "a a")

    def test_a_text_without_an_end_becomes_final_when_it_is_long(self):
        finals = [answer for answer in (self.take([0, 1] * 50) for _ in range(25)) if "final" in answer]
        self.assertEqual([len(answer["text"]) for answer in finals], [LONGEST + 100] * 2)


if __name__ == "__main__":
    unittest.main()
