# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Gloo, the library for collectives that PyTorch uses, by its transport `ibverbs`. Four ranks of the tests' own program, two on
each side, have four threads each, and each thread has a queue pair to every other rank. All compare the results of
allreduce (three algorithms), broadcast and allgather.
"""
import re
from dataclasses import dataclass

from host import Failure
from row import Pair

PACKAGES = ['libgloo-dev']
RANKS = 4


@dataclass(frozen=True)
class Together(Pair):
    """Both sides start at once: they meet in the directory of Gloo's FileStore."""

    def start_server(self, at):
        return self.start(at.server, self.server_argv(at))


def check(client, server):
    if sorted(re.findall(rf'^rank (\d) of {RANKS}: all is as it was sent$', client + server, re.MULTILINE)) != list('0123'):
        raise Failure('not all ranks')


def command(first, last):
    return f'{{programs}}/gloo_payload {first} {last} {RANKS} {{copy}} {{gid}}'


ROWS = [Together(server=command(0, 1), client=command(2, 3), check=check)]
