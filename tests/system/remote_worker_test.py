# SPDX-License-Identifier: Apache-2.0
"""Workers on other machines: the tests of local workers, over TCP. Ids like F2 are those of docs/internals/guarantees.md."""
import unittest

import conformance_test
import worker_faults_test
import worker_lies_test
from worker_faults import REMOTE


class Losses(worker_faults_test.Losses):  # F2, F3
    remote = True


class InvalidMessages(worker_lies_test.InvalidMessages):  # F5, F6
    remote = True


class Rows(conformance_test.Conformance):
    """Every row that a tap gets over TCP is the row of the contract, including its values."""

    test_every_row_over_a_real_socket_is_the_row_of_the_contract = None

    def service(self, *arguments):
        return super().service(*arguments, extra=REMOTE)

    def tap(self, service, pipeline="default", *more):
        service.workers = service.workers_remote
        return super().tap(service, pipeline, *more)

    def test_every_row_over_tcp_is_the_row_of_the_contract(self):
        everything = list(conformance_test.cases())
        self.check(everything[::len(everything) // conformance_test.AT_ONCE])


if __name__ == "__main__":
    unittest.main()
