# SPDX-License-Identifier: Apache-2.0
"""explain=1: results with the time that they spent in each stage."""
import unittest

from harness import SystemTest, read_all, run, samples

STAGES = ["chunk", "batch", "copy", "handover", "compute"]


class Explain(SystemTest):
    async def results(self, service, **parameters):
        async with service.connect(**parameters) as connection:
            for position in range(0, 5 * 1600, 1600):
                await connection.send(samples(position, 1600))
            await connection.send('{"type":"end"}')
            return [message for message in (await read_all(connection))[0] if message["type"] == "result"]

    def test_with_explain_each_result_has_its_time_in_each_stage(self):
        service = self.service(extra="explain = true\n")
        self.tap(service)
        for message in run(self.results(service, explain=1)):
            explain, row = message["explain"], message["data"]
            self.assertEqual((explain["slot"], explain["batch"]), (row["slot"], row["batch"]))
            if row["size"]:  # a marker row may be in the batch of the row before it
                self.assertEqual(explain["rows"], 1)
            self.assertIn(explain["trigger"], ("full", "complete", "deadline"))
            self.assertEqual(list(explain["ms"]), STAGES)
            self.assertTrue(all(ms >= 0 for ms in explain["ms"].values()), explain)
        self.assertEqual([message for message in run(self.results(service)) if "explain" in message], [])


if __name__ == "__main__":
    unittest.main()
