# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The tests' own programs in C and C++ that run as clients without a compiler command of their own, as MPI has."""
import os
import subprocess

from host import Failure

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
HARNESS = os.path.join(PROGRAMS, '../../harness/programs')
ENDPOINT, EXCHANGE = (os.path.join(HARNESS, f'{name}.c') for name in ('endpoint', 'exchange'))
FRESH = ['gcc', 'fresh_memory.c', ENDPOINT, EXCHANGE, '-libverbs']
# The name of a program: its compiler, its source, and what else it needs.
BUILDS = {
    'fresh_memory': FRESH,
    'fresh_memory_address': [*FRESH, '-fsanitize=address'],
    'fresh_memory_thread': [*FRESH, '-fsanitize=thread'],
    'gloo_payload': ['g++', 'gloo_payload.cc', '-lgloo', '-libverbs', '-lpthread'],
    'nccl_payload': ['gcc', 'nccl_payload.c', EXCHANGE, '-ldl', '-lpthread'],
}


def place(word, top):
    """The word of a command; if it names one of the programs, its path below `top`, where it is compiled at first use."""
    folder, name = os.path.split(word)
    if folder != PROGRAMS or name not in BUILDS:
        return word
    path = os.path.join(top, name)
    if not os.path.exists(path):
        compiler, source, *others = BUILDS[name]
        made = subprocess.run([compiler, '-g', '-O1', '-w', '-D_GNU_SOURCE', f'-I{HARNESS}', '-o', path, os.path.join(PROGRAMS, source),
                               *others], capture_output=True, text=True, check=False)
        if made.returncode:
            raise Failure(f'{compiler}: {made.stderr}')
    return path
