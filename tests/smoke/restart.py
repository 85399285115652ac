#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs outlive their urxed, if another one comes soon enough."""
import os
import re
import signal
import subprocess
import sys
import time

import report
from obedient import Obedient
from host import Failure, Host, Pair, main, succeed, until

PATIENCE = '60'  # seconds for which programs look for a daemon: a busy machine starts one slowly
PAUSES = (0, 0.5, 1)  # seconds without a daemon; what RC's own timeouts last over is less


def restart(host, number, pause=0):
    """Ends the daemon and starts another one in its place, after a while."""
    host.daemon.kill(number)
    host.daemon.wait(10)
    time.sleep(pause)
    host.start_daemon()


def attached_again(program):
    return program.errors().count('attached again')


def wait_attached(pair, times):
    for program in (pair.server, pair.client):
        until(20, lambda: attached_again(program) == times,
              lambda: f'does not find the new daemon: {program.describe()}')


def check_contents(build, number, *options):
    """Every byte is right, whatever the operation, while daemons come and go."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        pair = Pair(host, host, [host.verbs_check, '-l', *options], stdin=subprocess.PIPE)
        for times, pause in enumerate(PAUSES, 1):
            lines = pair.client.output().count('\n')
            until(60, lambda: pair.client.output().count('\n') > lines + 1,
                  lambda: f'does nothing: {pair.client.describe()}')
            restart(host, number, pause)
            wait_attached(pair, times)
        pair.client.process.stdin.close()
        pair.finish(120)


def check_bandwidth(build, *argv):
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        pair = Pair(host, host, [*argv, '-F', '-D', '6'])
        for times, number in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
            time.sleep(1)
            restart(host, number, 0.5)
            wait_attached(pair, times)
        report.check_perftest(pair.finish(60)[1], None)


def endless_pair(host):
    """Two programs that are connected, and go on until something ends them."""
    pair = Pair(host, host, ['stdbuf', '-oL', 'ibv_rc_pingpong', '-e', '-n', '1000000000'])
    for program in (pair.server, pair.client):
        until(20, lambda: 'remote address' in program.output(),
              lambda: f'does not connect: {program.describe()}')
    return pair


def check_too_late(build):
    """Without another daemon in time both sides end, with an error; a later one changes nothing."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='1')
        pair = endless_pair(host)
        host.daemon.kill()
        for program in (pair.server, pair.client):
            if not program.wait(20):
                raise Failure(f'ends well without a daemon: {program.describe()}')
            if 'the device is dead' not in program.errors():
                raise Failure(f'ends before it has looked for long enough: {program.describe()}')
        host.start_daemon()
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)


def leased(program):
    """The block of queue pair numbers that a program says it has."""
    found = re.search(r'attached to \S+: QPNs (0x[0-9a-f]+) to', program.errors())
    return found and found.group(1)


def check_newcomer(build):
    """Who comes while a new daemon waits for the old one's clients gets none of their leases."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='info', URXE_RECONNECT_S=PATIENCE)
        watch = ['stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'urxe0']
        old = [host.start(*watch) for _ in range(2)]
        until(20, lambda: all(leased(program) for program in old), lambda: 'not attached')
        restart(host, signal.SIGKILL)
        new = [host.start(*watch) for _ in range(2)]
        until(20, lambda: all(leased(program) for program in new),
              lambda: f'no lease for a newcomer: {new[0].describe()}')
        for program in old:
            until(20, lambda: attached_again(program),
                  lambda: f'does not find the new daemon: {program.describe()}')
        leases = [leased(program) for program in old + new]
        if len(set(leases)) != len(leases):
            raise Failure(f'two programs have one lease: {leases}')


def obedient(build, host):
    host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
    return Obedient(host, os.path.join(build, 'tests/smoke/verbs_outage'))


def check_orders(build):
    """What is asked of the daemon while there is none waits for the next one."""
    with Host(build) as host:
        connecting, writing = obedient(build, host), obedient(build, host)
        writing.order('cw')
        writing.wait()
        host.daemon.kill()
        connecting.order('ocwf')
        writing.order('owf')
        time.sleep(0.5)  # which is longer than a timeout and a retry
        host.start_daemon()
        for program in (connecting, writing):
            program.wait()
            program.finish()


def check_multicast(build):
    """Who was in a group before is in it afterwards."""
    with Host(build) as host:
        member, sender = obedient(build, host), obedient(build, host)
        member.order('j')
        member.wait()
        restart(host, signal.SIGKILL)
        for program in (member, sender):
            until(20, lambda: attached_again(program.program),
                  lambda: f'does not find the new daemon: {program.program.describe()}')
        sender.order('s')
        sender.wait()
        member.order('h')
        member.wait()


def check_private(build):
    """A private daemon is nobody's to start again, but the next program's."""
    with Host(build, daemon=False) as host:
        program = obedient(build, host)
        program.order('cw')
        program.wait()
        host.kill_private_daemon()
        program.order('w')
        host.run('true')
        program.wait()
        program.finish()


def check_other_host(build):
    """A daemon with another MAC is not the one that the queue pairs were made with."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        pair = endless_pair(host)
        host.daemon.kill()
        host.start_daemon(['--uplink', 'dpdk:net_null0'])
        for program in (pair.server, pair.client):
            if not program.wait(20):
                raise Failure(f'ends well with another host\'s daemon: {program.describe()}')
            if 'is another host: the device is dead' not in program.errors():
                raise Failure(f'does not say why it ends: {program.describe()}')


CHECKS = {
    'term': lambda build: check_contents(build, signal.SIGTERM),
    'kill': lambda build: check_contents(build, signal.SIGKILL),
    'kill_events': lambda build: check_contents(build, signal.SIGKILL, '-e'),
    'too_late': check_too_late,
    'other_host': check_other_host,
    'newcomer': check_newcomer,
    'orders': check_orders,
    'multicast': check_multicast,
    'private': check_private,
    'write_bw': lambda build: check_bandwidth(build, 'ib_write_bw'),
    'send_bw': lambda build: check_bandwidth(build, 'ib_send_bw'),
}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
