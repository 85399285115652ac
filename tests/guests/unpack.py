#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests that start at the same time unpack the kernel once and completely."""
import lzma
import multiprocessing
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../harness'))
from host import Failure, main  # noqa: E402
import image  # noqa: E402

SIDES = 8
IMAGE = b'\x7fELF' + bytes(range(256)) * (1 << 16)


def unpack(folder, start, results):
    start.wait()
    try:
        with open(image.kernel(folder), 'rb') as file:
            results.put(file.read() == IMAGE)
    except OSError as error:
        results.put(str(error))


def run():
    with tempfile.TemporaryDirectory(prefix='unpack-') as folder:
        os.mkdir(os.path.join(folder, 'boot'))
        with open(os.path.join(folder, 'boot/vmlinuz-0'), 'wb') as file:
            file.write(b'what unpacks the rest' + lzma.compress(IMAGE) + b'and what follows')
        start, results = multiprocessing.Barrier(SIDES), multiprocessing.Queue()
        sides = [multiprocessing.Process(target=unpack, args=(folder, start, results)) for _ in range(SIDES)]
        for side in sides:
            side.start()
        got = [results.get() for _ in sides]
        for side in sides:
            side.join()
    if got != [True] * SIDES:
        raise Failure(f'not all had the kernel: {got}')


if __name__ == '__main__':
    main(run)
