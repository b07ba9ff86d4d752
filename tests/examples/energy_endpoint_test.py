# SPDX-License-Identifier: Apache-2.0
"""The worker that ends segments by energy, at a running service."""
import json
import os
import sys
import unittest
import wave

from harness import Process, SystemTest, run

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "energy_endpoint")
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
UTTERANCES = ("0870", "0880", "0890", "0920", "0930")
ROW, SILENCE = 1600, 16000  # samples


def recording():
    """The samples of all utterances with silence between them, and the positions at which the silences begin."""
    samples, silences = b"", []
    for utterance in UTTERANCES:
        if samples:
            silences.append(len(samples) // 2)
            samples += bytes(2 * SILENCE)
        with wave.open(SPEECH.format(utterance)) as file:
            samples += file.readframes(file.getnframes())
    return samples, silences


async def results_of(connection, samples):
    """Sends a row when the row before it is answered, so that no endpoint is late. Returns all results."""
    results = []

    async def answered(rows):
        while sum(result["end"] > result["begin"] for result in results) < rows:
            message = json.loads(await connection.recv())
            results.extend([message] if message["type"] == "result" else [])

    for row in range(len(samples) // (2 * ROW)):
        await connection.send(samples[2 * ROW * row:2 * ROW * (row + 1)])
        await answered(row + 1)
    await connection.send(json.dumps({"type": "end"}))
    async for message in connection:
        results.extend([json.loads(message)] if '"result"' in message else [])
    return results


class EnergyEndpoint(SystemTest):
    def test_five_utterances_with_silence_between_them_become_five_segments(self):
        with open(os.path.join(EXAMPLE, "millrace.toml")) as file:
            service = self.service(file.read())
        worker = Process(sys.executable, os.path.join(EXAMPLE, "worker.py"), "--url", service.workers)
        self.addCleanup(worker.kill)
        samples, silences = recording()

        async def stream():
            async with service.connect(pipeline="speech") as connection:
                return await results_of(connection, samples)

        results = run(stream())
        ends = [result["end"] for result in results if "LAST" in result["flags"]]
        self.assertEqual(len(ends), len(UTTERANCES))
        for end, silence in zip(ends, silences):
            self.assertTrue(silence < end < silence + SILENCE, (end, silence))
        begins = [result["begin"] for result in results if "SEGMENT" in result["flags"]]
        self.assertEqual(begins, [0, *ends[:-1]])
        service.recount()
        self.assertEqual(service.metric("millrace_endpoints_total", by="worker"), len(silences))
        self.assertEqual(service.metric("millrace_endpoints_late_total"), 0)
        self.assertEqual(worker.stop(), 0, worker.errors)


if __name__ == "__main__":
    unittest.main()
