#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The process `urxe vm` is replaced (--take-over) ten times while programs run in the machine: verbs_flow, which compares
every byte and wants each completion once, perftest, and pings. The machine's kernel must notice nothing.
"""
import contextlib
import os
import re
import sys
import time

from ends import CHECKED, run_both_ways
from nic import ping
from verbs import Lab, add_host
from vm import VERBS_CHECK, VmImage
from host import Failure, free_port, main, wait_listening
from rdma import PATIENT, on_guest, on_host

FLOW = 'tests/migrate/verbs_flow'
REPLACEMENTS, PORT, SECONDS = 10, 18600, 120
PAUSE = 0.5  # seconds of traffic between two replacements
BANDWIDTH = ['ib_write_bw', '-F', '-D', '20', *PATIENT]


def replace_all(*devices):
    """Each device process in turn."""
    for number in range(REPLACEMENTS):
        time.sleep(PAUSE)
        devices[number % len(devices)].replace()
    time.sleep(PAUSE)


def wait_connected(vm):
    vm.run('until rdma resource show qp | grep -q "state RTS"; do usleep 20000; done')


def count_messages(program):
    found = re.search(r'^(\d+) messages each way, all bytes right', program.output(), re.MULTILINE)
    if not found:
        raise Failure(program.describe())
    return int(found[1])


def finish_flow(vm, programs):
    """The client, in the machine, ends the conversation."""
    for program in programs:
        if not program.running():
            raise Failure(f'ended early: {program.describe()}')
    vm.run('killall -TERM verbs_flow')
    for program in programs[::-1]:
        if program.wait(SECONDS):
            raise Failure('\n'.join(one.describe() for one in programs))
    counts = [count_messages(program) for program in programs]
    if counts[0] != counts[1]:
        raise Failure(f'not the same messages: {counts}')
    pauses = re.findall(r'^pause of ([\d.]+) ms', programs[1].output(), re.MULTILINE)
    print(f'  {counts[0]} messages, longest pause {max(map(float, pauses), default=0)} ms', flush=True)


def check_machines(one, two):
    """Messages between two machines, of which both change their device processes."""
    words = ['verbs_flow', '-t', '18']
    server = two.start(on_guest(two, words, PORT, two.address))
    two.wait_listening(PORT)
    client = one.start(f'{on_guest(one, words, PORT, one.address)} {two.address}')
    wait_connected(one)
    replace_all(one.device, two.device)
    finish_flow(one, [server, client])


def check_host(build, host, vm):
    """Messages with a program of the same host, and so with copies at first."""
    port = free_port()
    server = host.start(os.path.join(os.path.abspath(build), FLOW), *on_host(host, ['verbs_flow', '-t', '18'], port,
                                                                           host.address)[1:])
    wait_listening(server, port)
    client = vm.start(f'{on_guest(vm, ["verbs_flow", "-t", "18"], port, vm.address)} {vm.HERE}')
    wait_connected(vm)
    replace_all(vm.device)
    finish_flow(vm, [server, client])


def check_perftest(one, two):
    server = two.start(on_guest(two, BANDWIDTH, PORT, two.address))
    two.wait_listening(PORT)
    client = one.start(f'{on_guest(one, BANDWIDTH, PORT, one.address)} {two.address}')
    wait_connected(one)
    replace_all(one.device, two.device)
    for program in client, server:
        if program.wait(SECONDS):
            raise Failure(f'{client.describe()}\n{server.describe()}')
    print(client.output().splitlines()[-2], flush=True)


def check_nic(one, two):
    """Pings before and after each replacement, one of which runs while the process changes."""
    for _ in range(REPLACEMENTS):
        pings = one.start(f'ping -c 3 -i 0.2 -W 5 {two.address}')
        one.device.replace()
        if pings.wait(SECONDS):
            raise Failure(pings.describe())
        ping(one, two.address)


def run():
    build, doorbells = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        host = add_host(build, stack)
        lab = Lab(build, stack, VmImage(build, [os.path.join(build, name) for name in (VERBS_CHECK, FLOW)]))
        one, two = (lab.boot(host, arguments=['--doorbells', doorbells]) for _ in range(2))
        for check in (lambda: check_machines(one, two), lambda: check_host(build, host, one),
                      lambda: check_perftest(one, two), lambda: check_nic(one, two)):
            check()
        run_both_ways(one, two, CHECKED[:4])
        for vm in one, two:
            vm.expect_healthy()


if __name__ == '__main__':
    main(run)
