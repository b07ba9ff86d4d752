# SPDX-License-Identifier: Apache-2.0
"""Streams from end to end: results, markers, refusals, workers that die, the end."""
import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import unittest
import wave

import websockets

from harness import MILLRACE, PATIENCE, Process, SystemTest, read_all, run, samples, wait_for

PIPELINE_OF_FOUR = '[[pipeline]]\nslots = 4\nchunk = { size = 1600 }\n'
STAGES = ("chunk", "batch", "copy", "handover", "compute", "result")


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

    def test_the_stages_add_up_to_chunk_to_result(self):
        service = self.service()
        self.tap(service)

        async def many():
            await asyncio.gather(*(self.stream(service, [1600] * 20) for _ in range(8)))

        run(many())
        def total(name, **labels):
            return service.metric(name, pipeline="default", **labels)

        count = 8 * 21  # 20 rows with frames and one that ends the stream
        wait_for(lambda: total("millrace_result_latency_seconds_count") == count, "fresh metrics")
        stages = [total("millrace_queue_wait_seconds_sum", stage=stage) for stage in STAGES]
        self.assertEqual([total("millrace_queue_wait_seconds_count", stage=stage) for stage in STAGES],
                         [count] * 6)
        self.assertTrue(all(stage >= 0 for stage in stages))
        self.assertAlmostEqual(sum(stages), total("millrace_result_latency_seconds_sum"), delta=1e-6)

    def test_a_worker_killed_in_mid_stream_causes_a_reset_and_loses_no_frame(self):
        service = self.service()
        tap = self.tap(service)

        async def stream():
            async with service.connect() as connection:
                position = 0

                async def send(packets):
                    nonlocal position
                    for _ in range(packets):
                        await connection.send(samples(position, 1600))
                        position += 1600

                await send(5)
                for _ in range(6):
                    await connection.recv()
                # Two batches are with a worker that does not answer when it dies.
                tap.process.send_signal(signal.SIGSTOP)
                await send(5)
                await asyncio.to_thread(wait_for, lambda: service.metric(
                    "millrace_batches_total") == 7, "batches in flight")
                tap.kill()
                second = await asyncio.to_thread(self.tap, service)
                await connection.send('{"type":"end"}')
                return await read_all(connection), second

        (messages, code), second = run(stream())
        self.assertEqual(code, 1000)
        self.assertEqual(messages[-1], {"type": "closed", "frames": 16000, "chunks": 10})
        rows = [message["data"] for message in results(messages)]
        self.assertEqual([(row["seq"], row["begin"], row["size"]) for row in rows],
                         [(seq, seq * 1600, 1600) for seq in range(5, 10)] + [(10, 16000, 0)])
        self.assertEqual([row["reason"] for row in rows], ["worker_lost"] + [None] * 5)
        self.await_metric(service, 1, "millrace_worker_failures_total")
        self.await_metric(service, 1, "millrace_stream_resets_total", reason="worker_lost")

    def test_a_client_that_vanishes_frees_its_slot(self):
        service = self.service("[[pipeline]]\nslots = 1\nchunk = { size = 1600 }\n")
        tap = self.tap(service)

        async def vanish():
            connection = await service.connect()
            await connection.send(samples(0, 2000))
            wait_for(lambda: tap.lines, "the first row")
            connection.transport.abort()

        run(vanish())
        wait_for(lambda: len(tap.lines) == 2, "the ABORT row")
        self.assertEqual(json.loads(tap.lines[1])["flags"], ["LAST", "END", "ABORT"])
        wait_for(lambda: not service.streams(), "the slot")
        messages, code = run(self.stream(service, [1600]))
        self.assertEqual((len(results(messages)), code), (2, 1000))

    def test_sigterm_ends_live_streams_with_all_results(self):
        service = self.service()
        self.tap(service)

        async def stream():
            async with service.connect() as connection:
                await connection.send(samples(0, 2000))
                await connection.recv()
                await connection.recv()
                service.process.send_signal(signal.SIGTERM)
                return await read_all(connection)

        messages, code = run(stream())
        self.assertEqual([m["type"] for m in messages], ["goaway", "result", "closed"])
        self.assertEqual(messages[1]["flags"], ["LAST", "END"])
        self.assertEqual(messages[2], {"type": "closed", "frames": 2000, "chunks": 2})
        self.assertEqual(code, 1012)
        self.assertEqual(service.wait(), 0)

    def test_a_second_sigterm_cuts_off_live_streams(self):
        service = self.service()

        async def stream():
            async with service.connect() as connection:
                await connection.send(samples(0, 2000))
                await connection.recv()
                service.process.send_signal(signal.SIGTERM)
                await connection.recv()
                service.process.send_signal(signal.SIGTERM)
                return await read_all(connection)

        messages, code = run(stream())
        self.assertEqual((messages, code), ([], 1006))
        self.assertEqual(service.wait(), 1)

    def test_a_silent_connection_does_not_delay_the_end(self):
        service = self.service()
        with socket.create_connection(("127.0.0.1", service.port)):
            wait_for(lambda: service.get("/livez")[0] == 200, "/livez to answer")
            self.assertEqual(service.stop(), 0)

    def test_sigterm_without_streams_ends_at_once(self):
        service = self.service()
        self.assertEqual(service.stop(), 0)

    def test_a_tap_that_starts_first_waits_for_the_service(self):
        service = self.service()
        late = os.path.join(service.folder.name, "late.sock")
        tap = Process(MILLRACE, "tap", "--url", f"unix:{late}")
        self.addCleanup(tap.kill)
        wait_for(lambda: tap.errors, "the line about the wait")
        os.symlink(service.workers.removeprefix("unix:"), late)
        messages, code = run(self.stream(service, [1600]))
        self.assertEqual((len(results(messages)), code), (2, 1000))

    def test_a_tap_that_does_not_wait_prints_that_there_is_no_service(self):
        ended = subprocess.run([MILLRACE, "tap", "--url", "unix:/nowhere/at/all", "--wait", "0s"],
                               capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1))
        self.assertIn("no service at unix:/nowhere/at/all", ended.stderr)

    def test_a_second_tap_only_watches_and_sees_the_same_rows(self):
        service = self.service()
        first = self.tap(service)

        async def until_watched():
            async with service.connect(id="watched") as connection:
                messages = [json.loads(await connection.recv())]

                async def packet():
                    await connection.send(samples(1600 * (len(messages) - 1), 1600))
                    messages.append(json.loads(await connection.recv()))

                await packet()
                second = Process(MILLRACE, "tap", "--url", service.workers)
                self.addCleanup(second.kill)
                while not second.lines:
                    await packet()
                await connection.send('{"type":"end"}')
                rest, code = await read_all(connection)
                return second, messages + rest, code

        second, messages, code = run(until_watched())
        self.assertEqual(code, 1000)
        for tap in (first, second):
            wait_for(lambda: any("END" in line for line in tap.lines), "the last row")
        self.assertEqual(len(results(messages)), len(first.lines))
        self.assertEqual(second.lines, first.lines[-len(second.lines):])
        self.assertIn('{"stream":"watched",', second.lines[0])


class Requests(SystemTest):
    def test_a_wrong_unknown_or_repeated_parameter_is_named_and_disturbs_no_stream(self):
        service = self.service()
        self.tap(service)

        def upgrade(query):
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
            with contextlib.closing(connection):
                connection.request("GET", "/v1/stream" + query, headers={
                    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
                answer = connection.getresponse()
                return answer.status, json.load(answer)["error"].get("parameter")

        async def beside():
            async with service.connect(id="taken") as good:
                await good.recv()
                for query, status in [("?rate=7999", 415), ("?rate=fast", 400), ("?colour=red", 400),
                                      ("?rate=16000&rate=16000", 400), ("?format=mp3", 415),
                                      ("?channels=0", 415), ("?pipeline=none", 404), ("?dim=80", 415),
                                      ("?id=a/b", 400), ("?id=taken", 409), ("?options=[]", 400)]:
                    with self.subTest(query=query):
                        name = query[1:].split("=")[0]
                        self.assertEqual(await asyncio.to_thread(upgrade, query), (status, name))
                await good.send(samples(0, 1600))
                await good.send('{"type":"end"}')
                return await read_all(good)

        messages, code = run(beside())
        self.assertEqual((len(results(messages)), code), (2, 1000))
        self.await_metric(service, 11, "millrace_ingest_connections_rejected_total", reason="parameter")

    def test_an_invalid_message_is_an_error_of_its_connection(self):
        service = self.service()
        self.tap(service)

        async def talk(message):
            async with service.connect() as connection:
                await connection.send(message)
                return await read_all(connection)

        for message in ("hello", "[]", '{"type":"dance"}', '{"type":"gap"}'):
            with self.subTest(message=message):
                messages, code = run(talk(message))
                self.assertEqual((messages[-1]["type"], messages[-1]["code"], code),
                                 ("error", "schema", 4400))

    def test_a_stream_beyond_the_last_slot_is_refused_with_retry_after(self):
        service = self.service("[[pipeline]]\nslots = 1\nchunk = { size = 1600 }\n")

        async def refusal():
            async with service.connect():
                try:
                    async with service.connect():
                        self.fail("accepted")
                except websockets.InvalidStatusCode as error:
                    return error.status_code, error.headers.get("Retry-After")

        self.assertIn(run(refusal()), [(503, str(seconds)) for seconds in range(1, 6)])

    def test_a_port_in_use_is_one_line_and_exit_code_1(self):
        service = self.service()
        with open(service.config) as file:
            text = file.read().replace('websocket = "127.0.0.1:0"', f'websocket = "127.0.0.1:{service.port}"')
        other = service.config + ".2"
        with open(other, "w") as file:
            file.write(text.replace("workers.sock", "other.sock"))
        second = Process(MILLRACE, "serve", "--config", other)
        self.addCleanup(second.kill)
        self.assertEqual(second.wait(), 1)
        self.assertEqual(len(second.errors), 1)
        self.assertIn(str(service.port), second.errors[0])

    def test_an_invalid_configuration_is_one_line_and_exit_code_1(self):
        service = self.service()
        other = service.config + ".2"
        with open(other, "w") as file:
            file.write("[[pipeline]]\nslotz = 3\n")
        second = Process(MILLRACE, "serve", "--config", other)
        self.addCleanup(second.kill)
        self.assertEqual(second.wait(), 1)
        self.assertEqual(len(second.errors), 1)
        self.assertIn(":2:", second.errors[0])
        self.assertIn("slotz", second.errors[0])

    def test_admin_pages_show_the_state(self):
        service = self.service()
        self.assertEqual(service.get("/livez")[0], 200)
        status, text = service.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn("no worker", text)
        self.tap(service)
        self.assertEqual(service.get("/readyz")[0], 200)

        async def live():
            async with service.connect(id="here") as connection:
                await connection.recv()
                return await asyncio.to_thread(service.streams)

        self.assertEqual([stream["stream"] for stream in run(live())], ["here"])
        self.assertEqual(service.get("/nothing")[0], 404)


if __name__ == "__main__":
    unittest.main()
