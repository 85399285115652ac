#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
pyverbs_workers.py GID_INDEX: the workers of Python's multiprocessing, forked and spawned by a process that uses the
device already, exchange messages with it as the two sides of pyverbs_pair.py do. Every byte is compared.
"""
import multiprocessing
import sys

from pyverbs_pair import Peer, ask, serve

WORKERS = 3
DEVICE = 'urxe0'


def exchange_by(pipe):
    def exchange(what=None):
        pipe.send(what)
        return pipe.recv()
    return exchange


def work(pipe, gid_index):
    me = Peer(DEVICE, gid_index)
    exchange = exchange_by(pipe)
    me.connect(exchange(me.card()))
    ask(me, exchange)


def run_workers(method, gid_index):
    context = multiprocessing.get_context(method)
    sides = []
    for _ in range(WORKERS):
        me = Peer(DEVICE, gid_index)  # before the fork, which copies it
        pipe, other = context.Pipe()
        worker = context.Process(target=work, args=(other, gid_index))
        worker.start()
        sides.append((me, pipe, worker))
    for me, pipe, worker in sides:
        exchange = exchange_by(pipe)
        me.connect(exchange(me.card()))
        serve(me, exchange)
    for _, _, worker in sides:
        worker.join()
        if worker.exitcode:
            sys.exit(f'{method}: a worker ended with status {worker.exitcode}')
    print(f'{method}: all is as it was sent', flush=True)


if __name__ == '__main__':
    for start_method in 'fork', 'spawn', 'forkserver':
        run_workers(start_method, int(sys.argv[1]))
