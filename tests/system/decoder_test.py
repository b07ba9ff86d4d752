# SPDX-License-Identifier: Apache-2.0
"""The PocketSphinx decoder killed while it decodes, and started again."""
import asyncio
import json
import os
import signal
import subprocess
import unittest
import wave

from harness import PATIENCE, Process, SystemTest, await_decoder, read_all, run, wait_for

WORKER, DIRECT = os.environ["POCKETSPHINX_WORKER"], os.environ["POCKETSPHINX_DIRECT"]
SPEECH = ("/usr/share/pocketsphinx/test/data/librivox/"
          "sense_and_sensibility_01_austen_64kb-0880.wav")
PACKET = 1600


def decode_directly(frames, folder):
    """The result of the same decoder for these frames without Millrace."""
    path = os.path.join(folder, "rest.wav")
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(frames)
    line = json.loads(subprocess.run([DIRECT, path], check=True, capture_output=True,
                                     timeout=4 * PATIENCE).stdout)
    return {key: line[key] for key in ("text", "score")}


class Decoder(SystemTest):
    def decoder(self, service):
        decoder = Process(WORKER, "--url", service.workers, "--warm", "1")
        self.addCleanup(decoder.kill)
        await_decoder(decoder)
        return decoder

    def test_a_decoder_killed_in_mid_stream_and_started_again_continues_with_a_reset(self):
        service = self.service('[[pipeline]]\nworker_wait = "1h"\nchunk = { size = 1600 }\n')
        first = self.decoder(service)
        with wave.open(SPEECH) as file:
            speech = file.readframes(file.getnframes())
        packets = [speech[at:at + 2 * PACKET] for at in range(0, len(speech), 2 * PACKET)]
        middle = len(packets) // 3

        async def stream():
            async with service.connect() as connection:
                for packet in packets[:middle]:
                    await connection.send(packet)
                before = [json.loads(await connection.recv()) for _ in range(1 + middle)]
                first.process.send_signal(signal.SIGSTOP)
                for packet in packets[middle:middle + 3]:
                    await connection.send(packet)
                await asyncio.to_thread(wait_for, lambda: service.metric(
                    "millrace_batches_total") == middle + 2, "batches that it does not answer")
                first.kill()
                for packet in packets[middle + 3:]:
                    await connection.send(packet)
                await connection.send('{"type":"end"}')
                await asyncio.to_thread(self.decoder, service)
                after, code = await read_all(connection)
                return before[1:] + after[:-1], after[-1], code

        results, closed, code = run(stream())
        self.assertEqual(code, 1000)
        self.assertEqual(closed, {"type": "closed", "frames": len(speech) // 2, "chunks": len(packets)})
        self.assertEqual([(each["type"], each["seq"]) for each in results],
                         [("result", seq) for seq in range(len(packets))])  # the end makes the last row shorter
        self.assertEqual([each["seq"] for each in results if "RESET" in each["flags"]], [0, middle])
        rest = speech[2 * PACKET * middle:]
        self.assertEqual(results[-1]["data"], results[-1]["data"] | decode_directly(rest, service.folder.name))
        self.await_metric(service, 1, "millrace_stream_resets_total", reason="worker_lost")


if __name__ == "__main__":
    unittest.main()
