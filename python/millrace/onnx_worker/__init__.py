# SPDX-License-Identifier: Apache-2.0
"""The command ``millrace-onnx-worker``: a worker for a model in an ONNX file (docs/onnx.md)."""
