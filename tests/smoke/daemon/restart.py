#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs survive a restart of urxed if the new daemon starts soon enough."""
import errno
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from endless import EndlessPair  # noqa: E402
from obedient import Obedient  # noqa: E402
from host import Failure, Host, Pair, main, open_files, succeed, until  # noqa: E402
from refusing_daemon import refusing_daemon  # noqa: E402

PATIENCE = '60'  # seconds for which programs wait for a daemon, for busy machines
PAUSES = (0, 0.5, 1)  # seconds without a daemon; RC's retries alone would end earlier


def restart(host, number, pause=0):
    """Ends the daemon by a signal and starts a new one after a pause."""
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
    """All operations deliver the right contents while daemons are replaced."""
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
        pair = EndlessPair(host, host, [*argv, '-F'])
        for times, number in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
            pair.go_on()
            restart(host, number, 0.5)
            wait_attached(pair, times)
        pair.finish()


def endless_pair(host):
    """Two connected programs that run until the test ends them."""
    pair = Pair(host, host, ['stdbuf', '-oL', 'ibv_rc_pingpong', '-e', '-n', '1000000000'])
    for program in (pair.server, pair.client):
        until(20, lambda: 'remote address' in program.output(),
              lambda: f'does not connect: {program.describe()}')
    return pair


def check_too_late(build):
    """Without a new daemon in time both sides fail; a later daemon does not help."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='1')
        pair = endless_pair(host)
        host.daemon.kill()
        for program in (pair.server, pair.client):
            if not program.wait(20):
                raise Failure(f'a program succeeds without a daemon: {program.describe()}')
            if 'the device is dead' not in program.errors():
                raise Failure(f'a program ended before its time limit for a new daemon: {program.describe()}')
        host.start_daemon()
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)


def leased(program):
    """The lease of QPNs that a program prints."""
    found = re.search(r'attached to \S+: QPNs (0x[0-9a-f]+) to', program.errors())
    return found and found.group(1)


def is_attaching(program):
    """Whether the program is ibv_devinfo and sleeps with a connection to the daemon."""
    pid = program.process.pid
    with open(f'/proc/{pid}/stat', encoding='utf-8') as stat:
        name, _, rest = stat.read().partition(' (')[2].rpartition(') ')
    sockets = [link for link in open_files(pid) if link.startswith('socket:')]
    return name == 'ibv_devinfo' and rest[0] == 'S' and sockets


def check_while_attaching(build):
    """A program whose daemon ends while it attaches waits for the next daemon."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        program = host.start('sh', '-c', 'echo ready; read line; exec ibv_devinfo', stdin=subprocess.PIPE)
        until(20, lambda: 'ready' in program.output(), lambda: f'does not start: {program.describe()}')
        host.daemon.kill(signal.SIGSTOP)
        program.process.stdin.close()
        until(20, lambda: is_attaching(program), lambda: f'does not attach: {program.describe()}')
        host.daemon.kill()
        host.daemon.wait(10)
        host.start_daemon()
        succeed(program, 20)


def check_newcomer(build):
    """A new program gets no lease of the old daemon's programs, for which the new daemon still waits."""
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


def obedient(build, host, log='warning'):
    host.environment.update(URXE_LOG=log, URXE_RECONNECT_S=PATIENCE)
    return Obedient(host, os.path.join(build, 'tests/smoke/verbs_reconnect'))


def check_orders(build):
    """Requests to the daemon wait for the next daemon."""
    with Host(build) as host:
        connecting, writing = obedient(build, host), obedient(build, host)
        writing.order('cw')
        writing.wait()
        host.daemon.kill()
        connecting.order('ocwf')
        writing.order('owf')
        time.sleep(0.5)  # longer than a timeout and a retry
        host.start_daemon()
        for program in (connecting, writing):
            program.wait()
            program.finish()


def check_device_stays(build):
    """The next daemon has the same device, and its files are there until then."""
    for number in signal.SIGTERM, signal.SIGKILL:
        with Host(build) as host:
            program = obedient(build, host)
            host.daemon.kill(number)
            host.daemon.wait(10)
            program.obey('gl')
            host.start_daemon()
            program.obey('gl')
            until(20, lambda: attached_again(program.program),
                  lambda: f'does not find the new daemon: {program.program.describe()}')
            program.obey('glcw')
            program.finish()


def check_multicast(build):
    """Multicast memberships survive a restart of the daemon."""
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


def check_multicast_late(build):
    """While a thread waits for a daemon that does not answer its request to join a group, the others exchange messages."""
    with Host(build) as host:
        program = obedient(build, host)
        program.obey('cw')
        host.daemon.kill(signal.SIGSTOP)
        try:
            program.order('J')
            time.sleep(0.5)  # the thread sends its request
            program.obey('w')
        finally:
            host.daemon.kill(signal.SIGCONT)
        program.obey('e')
        # A thread that held the lock for the whole time of an answer would have given up the daemon.
        if 'urxed has gone' in program.program.errors():
            raise Failure(f'messages wait for the daemon: {program.program.describe()}')
        program.finish()


def check_descriptors(build):
    """A process at its limit of descriptors attaches to the next daemons, also if it opens more between two daemons."""
    with Host(build) as host:
        program = obedient(build, host, 'info')
        program.obey('cwd')
        for times in (1, 2):
            host.daemon.kill()
            host.daemon.wait(10)
            time.sleep(0.5)  # the program looks for a daemon, and finds none
            program.obey('d')
            host.start_daemon()
            until(20, lambda times=times: attached_again(program.program) == times,
                  lambda: f'does not find the new daemon: {program.program.describe()}')
            program.obey('w')
        if 'does not take the inbox' in program.program.errors():
            raise Failure(f'peers get no inbox: {program.program.describe()}')
        program.finish()


def check_pkeys(build):
    """Programs get an event if the next daemon has another P_Key table."""
    with Host(build) as host:
        program = obedient(build, host)
        host.daemon.kill()
        host.daemon.wait(10)
        host.start_daemon(['--pkey', '0x8001'])
        program.obey('p')
        program.finish()


def check_private(build):
    """Running programs do not restart a private daemon; the next program does."""
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
    """Programs fail if the new daemon has another MAC, because it is another host."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        pair = endless_pair(host)
        host.daemon.kill()
        host.start_daemon(['--uplink', 'dpdk:net_null0'])
        for program in (pair.server, pair.client):
            if not program.wait(20):
                raise Failure(f'a program succeeds with another host\'s daemon: {program.describe()}')
            if 'serves another host: the device is dead' not in program.errors():
                raise Failure(f'a program does not print why it ends: {program.describe()}')


def check_other_version(build):
    """Programs fail if the new daemon has another version."""
    with Host(build) as host:
        host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S=PATIENCE)
        pair = endless_pair(host)
        host.daemon.kill()
        with refusing_daemon(host.run_dir, [errno.EPROTO]):
            for program in (pair.server, pair.client):
                if not program.wait(20):
                    raise Failure(f'a program succeeds with a daemon of another version: {program.describe()}')
                if 'has another version: the device is dead' not in program.errors():
                    raise Failure(f'a program does not print why it ends: {program.describe()}')


CHECKS = {
    'term': lambda build: check_contents(build, signal.SIGTERM),
    'kill': lambda build: check_contents(build, signal.SIGKILL),
    'kill_events': lambda build: check_contents(build, signal.SIGKILL, '-e'),
    'too_late': check_too_late,
    'other_host': check_other_host,
    'other_version': check_other_version,
    'newcomer': check_newcomer,
    'while_attaching': check_while_attaching,
    'orders': check_orders,
    'device_stays': check_device_stays,
    'multicast': check_multicast,
    'multicast_late': check_multicast_late,
    'descriptors': check_descriptors,
    'pkeys': check_pkeys,
    'private': check_private,
    'write_bw': lambda build: check_bandwidth(build, 'ib_write_bw'),
    'send_bw': lambda build: check_bandwidth(build, 'ib_send_bw'),
}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
