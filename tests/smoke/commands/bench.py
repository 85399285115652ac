#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe bench` on both ends of a veth cable: both sides meet and measure, with and without the engine, also twice."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
from documented import check_document  # noqa: E402
from host import BUSY, Failure, Program, succeed, until  # noqa: E402

NAMES = [f'bench{os.getpid()}{side}' for side in 'ab']
PORT = 'af_packet:eth0'


def bench(build, name, *arguments):
    return [*network.inside(name), os.path.join(build, 'tools/urxe'), 'bench', *arguments]


def measure(build, *arguments):
    client = Program(bench(build, NAMES[1], '--port', PORT, *arguments), os.environ)
    succeed(client, 60)
    return client.output()


def check_figures(build):
    with_json = json.loads(measure(build, '--json', '--size', '4K'))
    check_document('bench', with_json)
    if not (0 < with_json['send_latency_s'] < 10 and with_json['write_bytes_per_s'] > 0
            and with_json['write_size'] == 4096):
        raise Failure(f'unlikely figures: {with_json}')
    # A second measurement with the same listener: text output, and the largest message.
    text = measure(build, '--size', '8M')
    if 'send latency, 2 B' not in text or 'write bandwidth, 8388608 B' not in text:
        raise Failure(f'no such rows:\n{text}')


def check_bare_figures(build):
    figures = json.loads(measure(build, '--bare', '--json'))
    check_document('bench', figures)
    if not 0 < figures['frame_latency_s'] < 10 or figures['frame_size'] != 74:
        raise Failure(f'unlikely figures: {figures}')
    text = measure(build, '--bare')
    if 'frame latency, 74 B' not in text:
        raise Failure(f'no such row:\n{text}')


def check_mistakes(build):
    for arguments, status, said in (
            ([], 2, 'needs a port'),
            (['--port'], 2, 'option --port needs a value'),
            (['--frobnicate'], 2, 'unknown option --frobnicate'),
            (['--port', PORT, 'surplus'], 2, 'surplus'),
            (['--port', PORT, '--size', '0'], 2, '--size 0 is not a number from 1 to 8388608'),
            (['--port', PORT, '--size', '9M'], 2, '--size 9M is not a number from 1 to 8388608'),
            (['--port', PORT, '--seconds', 'x'], 2, '--seconds x is not a number from 1 to 3600'),
            (['--port', PORT, '--bare', '--size', '4K'], 2, '--size cannot be combined with --bare'),
            (['--port', 'frob:eth0'], 1, 'unknown kind of port'),
            (['--port', 'af_packet:frob0'], 1, 'frob0'),
            (['--port', PORT], 1, 'no peer answers'),
            (['--port', PORT, '--bare'], 1, 'no peer answers within 10 s; does urxe bench --listen --bare run there?')):
        result = subprocess.run(bench(build, NAMES[1], *arguments), capture_output=True, text=True,
                                timeout=30 * BUSY, check=False)
        if (result.returncode != status or result.stdout or said not in result.stderr
                or result.stderr.count('\n') != 1):
            raise Failure(f'urxe bench {arguments}: {result}')


def check_with(build, check, *arguments):
    listener = Program(bench(build, NAMES[0], '--port', PORT, '--listen', *arguments), os.environ)
    try:
        until(60, lambda: 'listening' in listener.output() or not listener.running(),
              listener.describe)
        check(build)
        listener.kill(signal.SIGTERM)
        succeed(listener, 20)
    finally:
        listener.kill()


def run():
    build = sys.argv[1]
    check_mistakes(build)
    check_with(build, check_figures)
    check_with(build, check_bare_figures, '--bare')


network.run(run, NAMES)
