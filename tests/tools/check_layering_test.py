# SPDX-License-Identifier: Apache-2.0
"""Trees with one offence each, given to the program tools/check_layering.py."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layering.py"

MOST_FILES = 25

RIGHT = {
    "base/bytes.h": "#pragma once\n#include <span>\n",
    "base/queue.h": "#pragma once\n#include <mutex>\n",
    "base/stats.h": "#pragma once\n",
    "chunker/row.h": '#pragma once\n#include "base/bytes.h"\n',
    "workers/lanes/stats.h": '#pragma once\n#include "base/stats.h"\n',
    "service/config/options.h": '#pragma once\n#include "chunker/row.h"\n',
    "monitoring/exporter.cpp": '#include <prometheus/collectable.h>\n#include "workers/lanes/stats.h"\n',
    "transport/websocket/websocket_connection.cpp": "",
    "bench/bare_beast.cpp": "#include <boost/beast/websocket.hpp>\n",
    "tests/base/queue_test.cpp": '#include "base/queue.h"\n#include "chunker/row.h"\n',
}


class CheckLayering(unittest.TestCase):
    def offences(self, files, rules=()):
        """The lines that the tool prints for RIGHT with `files` added or replaced. `rules`: options of the tool."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (RIGHT | files).items():
                file = Path(folder) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            done = subprocess.run([sys.executable, TOOL, folder, *rules], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        *lines, _ = done.stdout.splitlines()
        self.assertEqual(done.returncode, 1 if lines else 0)
        return lines

    def assert_offence(self, path, text, line):
        self.assertEqual(self.offences({path: text}), [f"{path}:{line}"])

    def test_a_right_tree_has_no_offence(self):
        self.assertEqual(self.offences({}), [])

    def test_a_folder_includes_only_what_its_line_names(self):
        self.assert_offence("batcher/clock.h", '#include "workers/lanes/stats.h"\n',
                            "1: batcher/ may not include workers/lanes/stats.h")
        self.assert_offence("chunker/cut.cpp", '\n#include "monitoring/exporter.cpp"\n',
                            "2: chunker/ may not include monitoring/exporter.cpp")

    def test_a_folder_within_a_folder_has_a_line_of_its_own(self):
        self.assertEqual(self.offences({"transport/http/io.h": '#pragma once\n#include "transport/net/net.h"\n',
                                        "transport/net/net.h": "#pragma once\n"}), [])
        self.assert_offence("transport/net/tcp.cpp", '#include "transport/websocket/websocket_connection.cpp"\n',
                            "1: transport/net/ may not include transport/websocket/websocket_connection.cpp")

    def test_a_folder_without_a_line_of_its_own_belongs_to_the_one_around_it(self):
        self.assertEqual(self.offences({"client/internal/pipe.h": "#pragma once\n",
                                        "client/client.cpp": '#include "client/internal/pipe.h"\n'}), [])

    def offences_of_line(self, line, files):
        """The offences of `files` with this line for a folder in place of its own, or added."""
        rules = (TOOL.parent / "layers.toml").read_text()
        folder = line.split(" = ")[0]
        rules = "\n".join(r for r in rules.splitlines() if not r.startswith(f"{folder} = "))
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(rules.replace("[folders]", f"[folders]\n{line}"))
            file.flush()
            return self.offences(files, ["--rules", file.name])

    def test_a_line_names_folders_only(self):
        for other in ("base/bytes.h", "*/stats.h"):
            self.assertEqual(self.offences_of_line(f'chunker = ["base", "{other}"]', {}),
                             [f"tools/layers.toml:1: chunker/ may include folders only, not {other}"])

    def test_folders_form_no_circle(self):
        below = {"base/up.h": '#pragma once\n#include "chunker/row.h"\n'}
        offences = self.offences_of_line('base = ["chunker"]', below)
        self.assertEqual(len(offences), 1, offences)
        self.assertRegex(offences[0], "^(base|chunker)/:1: a circle of folders: .*base includes chunker")

    def test_an_include_is_written_from_the_root(self):
        self.assert_offence("chunker/cut.cpp", '#include "row.h"\n',
                            '1: no file of the tree, or not written from the root: "row.h"')
        self.assert_offence("chunker/cut.cpp", '#include "../base/bytes.h"\n',
                            '1: no file of the tree, or not written from the root: "../base/bytes.h"')
        self.assert_offence("chunker/cut.cpp", "#include <base/bytes.h>\n",
                            "1: write our own header in quotes: base/bytes.h")

    def test_a_library_is_included_in_its_one_place(self):
        self.assert_offence("chunker/cut.cpp", "#include <cuda_runtime_api.h>\n",
                            "1: only gpu/*, tests/gpu/*, tests/support/simulated_cuda/*, bench/gpu*, tools/gpu_probe/* may "
                            "include cuda_runtime_api.h")
        self.assert_offence("commands/main.cpp", "#include <prometheus/counter.h>\n",
                            "1: only monitoring/*, tests/monitoring/* may include prometheus/counter.h")
        self.assert_offence("transport/http/server.cpp", "#include <boost/beast/websocket.hpp>\n",
                            "1: only tests/fuzz/websocket_frames.cpp, tests/fuzz/seen_frames.h, bench/bare_beast.cpp may "
                            "include boost/beast/websocket.hpp")
        self.assert_offence("transport/sessions/session.cpp", "#include <boost/beast/http.hpp>\n",
                            "1: only transport/http/*, transport/websocket/client.cpp, "
                            "tests/fuzz/websocket_frames.cpp, bench/bare_beast.cpp may include boost/beast/http.hpp")

    def test_only_the_service_includes_its_options(self):
        self.assert_offence("tests/chunker/row_test.cpp", '#include "service/config/options.h"\n',
                            "1: only service/*, replay/*, checking/*, commands/*, tests/checking/*, tests/service/*, tests/replay/*, tests/commands/*, "
                            "tests/fuzz/* may include service/config/options.h")

    def test_generated_headers_stay_in_schemas(self):
        self.assertEqual(self.offences({"schemas/codec.cpp": '#include "client_generated.h"\n'}), [])
        self.assert_offence("transport/sessions/session.cpp", '#include "client_generated.h"\n',
                            "1: only schemas/* may include client_generated.h")

    def test_a_mutex_is_included_only_in_listed_files(self):
        self.assert_offence("service/log/log.h", "#include <mutex>\n",
                            "1: only service/pipelines/name_book.h, base/queue.h, transport/addresses/address_limits.h, streams/resume/detached_list.h, training/processes/process_pool.h, workers/library/attachment.h, "
                            "client/internal/changes.h, client/internal/stream_pipe.h, tests/support/simulated_cuda/*, "
                            "tools/gpu_probe/disturbance.h may "
                            "include mutex")

    def test_conditionals_are_offences_and_pragma_once_is_not(self):
        for line in ("#if 1", "  # ifdef CUDA", "#ifndef X", "#elif Y"):
            self.assert_offence("base/bytes.h", f"#pragma once\n{line}\n",
                                f"2: not allowed here (allowed: nowhere): {line.strip()}")

    def test_sleeping_is_an_offence_also_in_tests(self):
        line = "std::this_thread::sleep_for(1ms);"
        for file in ("service/log/wait.cpp", "tests/service/wait.cpp"):
            self.assert_offence(file, f"{line}\n", f"1: not allowed here (allowed: nowhere): {line}")

    def test_reading_the_wall_clock_is_an_offence(self):
        line = "auto due = std::chrono::system_clock::now() + 1s;"
        self.assert_offence("transport/sessions/session.cpp", f"{line}\n",
                            f"1: not allowed here (allowed: service/log/wall_clock.cpp): {line}")

    def test_a_coroutine_lambda_with_captures_is_an_offence(self):
        line = "auto task = [this](int n) -> net::awaitable<void> { co_return; };"
        self.assert_offence("transport/sessions/session.cpp", f"{line}\n", f"1: not allowed here (allowed: nowhere): {line}")
        self.assertEqual(self.offences({"transport/sessions/session.cpp": line.replace("this", "")}), [])

    def test_words_in_comments_and_literals_are_no_offences(self):
        text = ('// #if or sleep_for\n/* #include <mutex>\n#if */\n'
                'auto a = "std::this_thread::sleep_for";\nauto b = R"(\n#if 1\n)";\n')
        self.assertEqual(self.offences({"service/log/text.cpp": text}), [])
        self.assert_offence("service/log/text.cpp", text + "#if 1\n", "8: not allowed here (allowed: nowhere): #if 1")

    def test_a_digit_separator_opens_no_literal(self):
        self.assert_offence("service/log/size.cpp", "auto a = 1'000;\n#if 1\nauto b = 2'000;\n",
                            "2: not allowed here (allowed: nowhere): #if 1")

    def test_a_folder_links_only_what_it_may_include(self):
        self.assert_offence("chunker/CMakeLists.txt", "# millrace::gpu_cuda\nDEPS millrace::base millrace::gpu_cuda\n",
                            "2: chunker/ may not link gpu_cuda")

    def test_a_folder_that_the_rules_do_not_name_is_an_offence(self):
        self.assert_offence("misc/a.cpp", "", "1: a folder that tools/layers.toml does not name")

    def test_a_file_has_at_most_350_lines(self):
        self.assertEqual(self.offences({"tests/a.py": "\n" * 350}), [])
        self.assert_offence("tests/a.py", "\n" * 351, "351: longer than 350 lines")

    def test_a_folder_has_a_bounded_number_of_files(self):
        files = {f"batcher/part{number}.h": "#pragma once\n" for number in range(MOST_FILES)}
        self.assertEqual(self.offences(files), [])
        self.assertEqual(self.offences(files | {"batcher/one_more.h": "#pragma once\n"}),
                         [f"batcher/:1: more than {MOST_FILES} files: {MOST_FILES + 1}"])

    def test_a_file_name_that_is_too_general_is_an_offence(self):
        self.assert_offence("base/time_utils.h", "", "1: a name that is too general: utils")


if __name__ == "__main__":
    unittest.main()
