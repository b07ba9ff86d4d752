# SPDX-License-Identifier: Apache-2.0
"""A process of ``millrace train-serve``, which calls the function of the key ``augment``. Its socket is descriptor 3."""

import importlib
import json
import os
import socket
import sys
import types

from millrace.augmentation import SourceOfChanges
from millrace.process_calls import serve


def main() -> None:
    described = types.SimpleNamespace(**json.loads(sys.argv[1]))
    module, _, name = described.function.partition(":")
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    described.companions = [tuple(entry) for entry in described.companions]
    changes = SourceOfChanges(function, described.seed, described)  # type: ignore[arg-type]
    serve(socket.socket(fileno=3), [changes], os.getppid())


if __name__ == "__main__":
    main()
