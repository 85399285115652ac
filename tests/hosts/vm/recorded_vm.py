#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The device process of a virtual machine is recorded by urxe capture --state while the machine (conversing_vm.c) exchanges
messages, and the replay does the same. The peer is on another host and on the same host in turn.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, size_of, succeed, until  # noqa: E402
from network import run  # noqa: E402
import replaced_vm  # noqa: E402
from migrating_vm import two_hosts  # noqa: E402
from replaced_vm import ADDRESSES, NAMES  # noqa: E402


def start_capture(host, path):
    program = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '--state', '-w', path])
    until(20, lambda: not program.running() or size_of(path), program.describe)
    if not program.running():
        raise Failure(program.describe())
    return program


def replay(host, path, pid):
    """The number of calls, which the engine has repeated with the same effects."""
    program = host.spawn([host.urxe, 'replay', '--engine', path, '--json', '--process', str(pid)])
    program.wait(60)
    found = json.loads(program.output() or '[]')
    if len(found) != 1 or found[0]['result'] not in ('same', 'capture_ends') or found[0]['calls'] < 100:
        raise Failure(program.describe())
    return found[0]['calls']


def end_capture(host, capture, path, pid):
    capture.kill(signal.SIGINT)
    succeed(capture, 20)
    return replay(host, path, pid)


def check_peer(hosts, number):
    device = replaced_vm.Device(hosts[0], 'trapped')
    paths = [os.path.join(hosts[0].top, f'{when}{number}') for when in ('early', 'middle')]
    pid = device.process.process.pid
    # The capture begins before the guest's driver starts, and in the middle of messages.
    capture = start_capture(hosts[0], paths[0])
    talk = replaced_vm.Conversation(device, hosts[number], number, 'trapped')
    calls = [end_capture(hosts[0], capture, paths[0], pid)]
    capture = start_capture(hosts[0], paths[1])
    talk.go_on()
    calls.append(end_capture(hosts[0], capture, paths[1], pid))
    print(f'{talk.finish()} messages, {calls} calls with the peer on host {number}')
    device.process.kill()


def check():
    with two_hosts(NAMES, ADDRESSES) as hosts:
        for number in 1, 0:
            check_peer(hosts, number)


if __name__ == '__main__':
    replaced_vm.BUILD = sys.argv[1]
    run(check, NAMES)
