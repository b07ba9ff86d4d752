# SPDX-License-Identifier: Apache-2.0
"""Reads arrays on simulated devices by their DLPack capsules. The host can read the memory of simulated devices."""
import ctypes

import numpy as np

from millrace import _core

CUDA = ctypes.CDLL(_core.__file__)  # the simulation's functions


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
_TAKEN = b"used_dltensor"
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}


def managed(capsule):
    return Managed.from_address(_pointer(capsule, b"dltensor"))


def release(capsule):
    """Takes the tensor and frees it, as a consumer does."""
    taken = managed(capsule)
    _rename(capsule, _TAKEN)
    taken.deleter(ctypes.byref(taken))


def about(tensor):
    """(device, dtype, shape, strides)."""
    sizes = range(tensor.ndim)
    return ((tensor.device_type, tensor.device_id), np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}"),
            tuple(tensor.shape[i] for i in sizes), tuple(tensor.strides[i] for i in sizes))


def content(array, stream=1):
    """A copy of an array, made when the stream has waited for it."""
    capsule = array.__dlpack__(stream=stream)
    CUDA.cudaStreamSynchronize(ctypes.c_void_p(stream))
    tensor = managed(capsule).tensor
    _, dtype, shape, _ = about(tensor)
    values = np.empty(shape, dtype)
    ctypes.memmove(values.ctypes.data, (tensor.data or 0) + tensor.byte_offset, values.nbytes)
    return values
