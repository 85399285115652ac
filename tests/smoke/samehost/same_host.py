#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Processes of one user exchange frames without the daemon: connected programs continue while the daemon is
stopped, and a receiver continues while senders are stopped and killed.
"""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import report  # noqa: E402
from endless import EndlessPair  # noqa: E402
from host import BUSY, Failure, Host, Pair, main, skip, succeed, until, wait_stopped  # noqa: E402

# In the source tree.
UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../tools/dist/urxed.service.in')

BANDWIDTH = [
    ['ib_send_bw', '-F'],
    ['ib_write_bw', '-F', '-q', '4'],
    ['ib_read_bw', '-F'],
]
# Bytes; requests before the first ACK always go in packets, and no program sends more than this before it.
UNPROVEN = 100_000_000
# Programs that spin on memory, and programs that poll.
LATENCY = [
    ['ib_write_lat', '-F'],
    ['ib_send_lat', '-F'],
    ['ib_atomic_lat', '-F'],
    ['ib_send_lat', '-F', '-c', 'UD'],
]
# Run times of these programs. On a busy machine a short one may end before the test has stopped the daemon.
LATENCY_SECONDS = (2, 8, 32, 128)
# Frames of each queue pair beside those through the switch; after them each side uses the peer's inbox.
STRAIGHT = 10


class Stopped:
    """Stops the daemon for the duration of a block."""

    def __init__(self, host):
        self.pid = host.daemon_pid()

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        wait_stopped(self.pid)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def check_bandwidth(host, argv):
    pair = EndlessPair(host, host, argv)
    pair.go_on()
    with Stopped(host):
        pair.go_on()
    pair.kill()


def introduced(host):
    """
    Waits until the daemon has introduced the two processes. Datagrams before that go through the switch, and
    one that waits in a stopped daemon would stop the programs, too.
    """
    told = host.show()
    switched = sum(port['counters']['out_frames'] for port in told['ports'])
    return all(qp['counters'].get('rx_packets', 0) >= switched + STRAIGHT for qp in told['qps'])


def goes_on_without_daemon(host, argv, seconds):
    """Whether the program ran, for some seconds, when the daemon was stopped. It must end well."""
    pair = Pair(host, host, ['stdbuf', '-oL', *argv, '-D', str(seconds)])
    # The programs print the heading when both are connected. They hang if one message is lost.
    until(30, lambda: '#bytes' in pair.client.output(),
          lambda: f'does not begin: {pair.client.describe()}')

    def ended():
        return report.rows(pair.client.output())

    if 'UD' in argv:
        until(30, lambda: introduced(host) or ended(), lambda: f'still by the switch: {host.show()}')
    with Stopped(host):
        early = ended()
        until(seconds + 30, ended, lambda: f'stands still without urxed: {pair.client.describe()}')
    pair.finish(30)
    if not early:
        print(f'{" ".join(argv)}: {ended()[0][1]} iterations without urxed')
    return not early


def check_latency(host, argv):
    if not any(goes_on_without_daemon(host, argv, seconds) for seconds in LATENCY_SECONDS):
        raise Failure(f'{argv} always ended before urxed was stopped')


def stopped_daemon(build):
    with Host(build) as host:
        for argv in BANDWIDTH:
            check_bandwidth(host, argv)
        for argv in LATENCY:
            check_latency(host, argv)


def crowd(build):
    with Host(build) as host:
        print(host.run(os.path.join(build, 'tests/smoke/verbs_crowd'), seconds=150))


def executed(program):
    """Number of requests that the program's processes have executed by copies."""
    return sum(int(n) for n in re.findall(r'direct_requests: (\d+)', program.read(1)))


def check_shown(build, transport):
    """`urxe show` prints the reason for packets for the requester, and for no other process."""
    with Host(build) as host:
        pair = EndlessPair(host, host, ['env', f'URXE_TRANSPORT={transport}', *BANDWIDTH[1]])
        processes = [program.process.pid for program in (pair.client, pair.server)]
        wanted = {processes[0]: 0 if transport == 'packet' else 4, processes[1]: 0}

        def shown():
            told = host.show()
            sent = sum(qp['counters'].get('tx_bytes', 0) for qp in told['qps'])
            return (transport != 'packet' or sent > UNPROVEN,
                    {way['pid']: way['memory'] for way in told['transports']},
                    {pid: sum(qp['memory'] for qp in told['qps'] if qp['pid'] == pid)
                     for pid in processes})

        until(30, lambda: shown() == (True, wanted, wanted),
              lambda: f'{transport}: not {wanted}: {shown()} {pair.client.describe()}')
        pair.kill()


def memory(build):
    program = os.path.join(build, 'tests/smoke/verbs_memory')
    for transport in 'auto', 'packet':
        with Host(build) as host:
            run = host.start('env', 'URXE_LOG=info', f'URXE_TRANSPORT={transport}', program)
            succeed(run, 150)
            if (executed(run) > 0) != (transport != 'packet'):
                raise Failure(f'{transport}: {executed(run)} requests without packets')
            print(f'{transport}: {run.output()}{executed(run)} requests without packets')
        check_shown(build, transport)


def large_sends(build):
    """Large SENDs refer to their payload, and the receiver copies it."""
    program = os.path.join(build, 'tests/smoke/verbs_large_sends')
    for transport in 'auto', 'packet':
        with Host(build) as host:
            run = host.start('env', 'URXE_LOG=info', f'URXE_TRANSPORT={transport}', program)
            succeed(run, 150)
            counts = {name: sum(map(int, re.findall(rf'direct_{name}: (\d+)', run.read(1))))
                      for name in ('referred', 'pulled')}
            print(f'{transport}: {counts}')
            if any(bool(n) != (transport == 'auto') for n in counts.values()):
                raise Failure(f'{transport}: {counts} {run.describe()}')


def capabilities():
    """The capabilities of the systemd unit, in the syntax of setpriv(1)."""
    with open(UNIT, encoding='utf-8') as file:
        names = next(line for line in file if line.startswith('CapabilityBoundingSet='))
    return ','.join('+' + name.removeprefix('CAP_').lower() for name in names.split('=')[1].split())


def paths(host):
    """The paths between connected processes, according to `urxe show` of root."""
    shown = subprocess.run([host.urxe, 'show', 'transport', '--json', '--run-dir', host.run_dir],
                           capture_output=True, text=True, timeout=20 * BUSY, check=False)
    if shown.returncode:
        raise Failure(f'urxe show: {shown}')
    return [way['path'] for way in json.loads(shown.stdout)['transports']]


def unit(build):
    """A daemon with the privileges of the systemd unit introduces the processes of users."""
    if os.getuid():
        skip('only root has a daemon for all users')
    with Host(build, daemon=False) as host:
        host.prefix = ['setpriv', '--bounding-set=-all,' + capabilities(), '--no-new-privs']
        host.start_daemon(['--group', 'nogroup'])
        host.prefix = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups',
                       '--inh-caps=-all']
        pair = EndlessPair(host, host, BANDWIDTH[1])
        until(30, lambda: paths(host) == ['direct'] * 2,
              lambda: f'two processes of one user go by {paths(host)}: {pair.client.describe()}')
        pair.kill()


CHECKS = {'stopped_daemon': stopped_daemon, 'crowd': crowd, 'memory': memory, 'large_sends': large_sends, 'unit': unit}

main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
