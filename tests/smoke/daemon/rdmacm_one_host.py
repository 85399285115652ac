#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
rdma_cm over one urxed: Debian's programs connect by address and port, and a program gets a disconnect event
if its peer dies.
"""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from obedient import Obedient  # noqa: E402
from host import Failure, Host, main, skip, succeed, until, wait_stopped  # noqa: E402
from rdmacm import (PROGRAMS, SECONDS, check_group, check_ipv6, check_nobody_listens, check_pair,  # noqa: E402
                    start_server)

STOPPED_SECONDS = 6  # longer than a program waits for a new daemon


def check_port_taken(host):
    server = start_server(host, ['rping', '-s', '-C', '1'])
    other = host.start('rping', '-s', '-C', '1')
    if not other.wait(30) or 'rdma_bind_addr' not in other.errors():
        raise Failure(f'two programs could listen on one port: {other.describe()}')
    server.kill()


def check_death(host):
    """rping ends after its peer was killed, because of the disconnect event."""
    server = start_server(host, ['rping', '-s', '-v'])
    client = host.start('stdbuf', '-oL', 'rping', '-c', '-a', '127.0.0.1', '-v')
    until(30, lambda: 'ping data' in client.output(), lambda: f'no ping: {client.describe()}')
    client.kill()
    server.wait(30)
    if 'DISCONNECT' not in server.output() + server.errors():
        raise Failure(f'no disconnect: {server.describe()}')


def check_daemon_stopped(host, build):
    """Programs wait for a stopped daemon without a time limit."""
    program = Obedient(host, os.path.join(build, 'tests/smoke/cm_reconnect'))
    program.obey('lcp')
    pid = host.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    wait_stopped(pid)
    program.order('idci')
    time.sleep(STOPPED_SECONDS)
    os.kill(pid, signal.SIGCONT)
    program.wait()
    program.obey('pd')
    program.finish()


def check_restart(host, build, number):
    """Listeners, IDs, connections and unread events survive a restart of the daemon."""
    host.environment['URXE_RECONNECT_S'] = '60'
    program = Obedient(host, os.path.join(build, 'tests/smoke/cm_reconnect'))
    del host.environment['URXE_RECONNECT_S']
    program.obey('vlcp')
    host.daemon.kill(number)
    host.daemon.wait(10)
    program.order('ip')
    host.start_daemon()
    program.wait()
    program.obey('vdvcp')
    host.daemon.kill(number)
    host.daemon.wait(10)
    program.order('dc')
    host.start_daemon()
    program.wait()
    program.obey('pd')
    program.finish()


def check_device_back(host, build):
    """A program whose device has died connects again with a later daemon, once librdmacm has listed the devices."""
    host.environment['URXE_RECONNECT_S'] = '1'
    program = Obedient(host, os.path.join(build, 'tests/smoke/cm_reconnect'))
    del host.environment['URXE_RECONNECT_S']
    program.obey('lcp')
    host.daemon.kill()
    host.daemon.wait(10)
    program.obey('r')
    host.start_daemon()
    program.obey('ulcpd')
    program.finish()


def check_daemon_gone(host):
    """Programs get an event when the daemon dies; other programs connect with a new daemon."""
    program = host.start(sys.executable, os.path.join(os.path.dirname(__file__), 'rdmacm_daemon_gone.py'))
    until(30, lambda: 'ready' in program.output() or not program.running(), program.describe)
    host.daemon.kill()
    succeed(program, SECONDS)
    host.start_daemon()
    check_pair(host, host, *PROGRAMS[0], '127.0.0.1')


def run():
    build, = sys.argv[1:]
    for program in ('rping', 'ib_write_bw'):
        if not shutil.which(program):
            skip(f'{program} is not installed')
    with Host(build) as host:
        for server, client in PROGRAMS:
            check_pair(host, host, server, client, '127.0.0.1')
        check_group(host, host)
        check_ipv6(host)
        check_nobody_listens(host)
        check_port_taken(host)
        check_death(host)
        check_daemon_stopped(host, build)
        for number in (signal.SIGTERM, signal.SIGKILL):
            check_restart(host, build, number)
        check_device_back(host, build)
        check_daemon_gone(host)


main(run)
