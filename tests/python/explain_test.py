# SPDX-License-Identifier: Apache-2.0
"""Streams whose results have the time that they spent in each stage."""
import asyncio
import unittest

from clients import PIPELINE, ClientTest
from harness import samples

import millrace


class Explain(ClientTest):
    def url_where_allowed(self):
        served = self.service(PIPELINE, "explain = true\n")
        self.tap(served)
        return f"ws://127.0.0.1:{served.port}"

    def test_each_result_of_a_stream_that_asks_for_it_has_an_explanation(self):
        client = millrace.Client(self.url_where_allowed())
        for explain in (True, False):
            with client.open(explain=explain) as stream:
                stream.send(samples(0, 3200))
                stream.end()
                results = list(stream)
            self.assertEqual([result.explain is not None for result in results], [explain] * 3)
            if explain:
                self.assertEqual([result.explain["batch"] for result in results], [result.data["batch"] for result in results])
                self.assertEqual([*results[0].explain["ms"]], ["chunk", "batch", "copy", "handover", "compute"])

    def test_results_in_asyncio_have_an_explanation_too(self):
        async def first(url):
            async with millrace.connect(url).open(explain=True) as stream:
                await stream.send(samples(0, 1600))
                return await anext(aiter(stream))

        result = asyncio.run(first(self.url_where_allowed()))
        self.assertEqual(result.explain["slot"], result.data["slot"])

    def test_a_refusal_names_explain_if_it_is_not_available(self):
        for url in self.urls():
            client = millrace.Client(url)
            with self.assertRaisesRegex(millrace.StreamRefused, "explain") as caught:
                client.open(explain=True)
            self.assertEqual((caught.exception.code, caught.exception.parameter), ("schema", "explain"))
            with self.assertRaisesRegex(TypeError, "explain must be True or False, not 1"):
                client.open(explain=1)


if __name__ == "__main__":
    unittest.main()
