# SPDX-License-Identifier: Apache-2.0
"""Streams from end to end."""
import json
import os
import subprocess
import unittest
import wave

from harness import MILLRACE, PATIENCE, SystemTest, read_all, run, samples

PIPELINE_OF_FOUR = '[[pipeline]]\nslots = 4\nchunk = { size = 1600 }\n'


def results(messages):
    return [message for message in messages if message["type"] == "result"]


class Streams(SystemTest):
    async def stream(self, service, packets, **parameters):
        async with service.connect(**parameters) as connection:
            position = 0
            for packet in packets:
                if isinstance(packet, int):
                    await connection.send(samples(position, packet))
                    position += packet
                else:
                    await connection.send(json.dumps(packet))
            await connection.send('{"type":"end"}')
            return await read_all(connection)

    def test_a_stream_is_answered_row_by_row_and_closed_with_its_totals(self):
        service = self.service()
        self.tap(service)
        messages, code = run(self.stream(service, [1600, 800, {"type": "flush", "mark": 7}, 1600], id="a"))
        self.assertEqual(messages[0], {"type": "ready", "stream": "a", "pipeline": "default", "frames": 0})
        self.assertEqual([(m["seq"], m["begin"], m["end"], m["begin_s"], m["end_s"], m["flags"])
                          for m in results(messages)],
                         [(0, 0, 1600, 0, 0.1, ["START", "RESET", "SEGMENT"]),
                          (1, 1600, 2400, 0.1, 0.15, ["LAST"]),
                          (2, 2400, 4000, 0.15, 0.25, ["SEGMENT"]),
                          (3, 4000, 4000, 0.25, 0.25, ["LAST", "END"])])
        kinds = [message["type"] for message in messages]
        self.assertEqual(kinds, ["ready", "result", "result", "flushed", "result", "result", "closed"])
        self.assertEqual(messages[-1], {"type": "closed", "frames": 4000, "chunks": 3})
        self.assertEqual(code, 1000)

    def test_files_give_the_same_results_over_each_transport(self):
        service = self.service(PIPELINE_OF_FOUR)
        self.tap(service, "default", "--data", "crc32c")
        path = os.path.join(service.folder.name, "speech.wav")
        with wave.open(path, "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples(0, 20001))

        def streamed(url, *more):
            ended = subprocess.run([MILLRACE, "stream", "--json", path, "--url", url, "--streams", "3", *more],
                                   capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            by_stream = {}
            for line in map(json.loads, ended.stdout.splitlines()):
                row = line.get("data", {})
                fields = {key: value for key, value in line.items() if key not in ("stream", "data")}
                by_stream.setdefault(line["stream"], []).append(
                    (fields, [row.get(key) for key in ("seq", "begin", "size", "flags", "crc32c")]))
            self.assertEqual(len(by_stream), 3)
            return list(by_stream.values())

        first = streamed(f"ws://127.0.0.1:{service.port}")
        self.assertEqual(first[0][-1][0], {"file": path, "type": "closed", "frames": 20001, "chunks": 13})
        self.assertEqual(first, [first[0]] * 3)
        self.assertEqual(streamed(f"tcp://127.0.0.1:{service.zeromq_port}"), first)
        self.assertEqual(streamed(f"tcp://127.0.0.1:{service.zeromq_port}", "--packet", "7ms", "--realtime"), first)


if __name__ == "__main__":
    unittest.main()
