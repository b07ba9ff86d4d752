#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sizes that the rule `random` draws. docs/rules.md prints this program.

    drawn_sizes.py SEED STREAM ROWS SIZE...     the sizes of the first rows of a stream, one a line
"""
import sys


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def drawn_size(sizes, seed, stream, row):
    name = 0xCBF29CE484222325
    for byte in stream.encode():
        name = (name ^ byte) * 0x100000001B3 % 2**64
    return sizes[len(sizes) * mix((mix(seed ^ name) + row) % 2**64) >> 64]


if __name__ == "__main__":
    for row in range(int(sys.argv[3])):
        print(drawn_size([int(size) for size in sys.argv[4:]], int(sys.argv[1]), sys.argv[2], row))
