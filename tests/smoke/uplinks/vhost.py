#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The process of a vhost: uplink. Hostile virtual machines may end it, and urxed goes on: its other
uplinks carry frames meanwhile, and it starts the process again for the next machine.
"""
import contextlib
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, Pair, main, until  # noqa: E402
from vhost_port import port, port_process, status, wait_restarted  # noqa: E402

ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
EXCHANGE = [['verbs_check'], ['ib_write_bw', '-F', '-n', '500'],
            ['ib_send_bw', '-F', '-c', 'UD', '-n', '500']]
# DPDK's own virtio NIC is to a vhost: port what a machine's is. The second one listens.
MACHINE = 'dpdk:net_virtio_user0,path={},mac=02:00:00:00:00:02'
MACHINE_LISTENS = MACHINE + ',server=1'
SOAK_SECONDS = '10'


@contextlib.contextmanager
def hosts(build, count, user='nobody'):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Host(build, user=user if os.getuid() == 0 else None,
                                        daemon=False)) for _ in range(count)]


def start(host, number, *specs):
    host.start_daemon([word for spec in specs for word in ('--uplink', spec)] +
                      ['--address', f'{ADDRESSES[number]}/24'])


def exchange(server, client, numbers=(0, 1), programs=tuple(EXCHANGE)):
    gids = [host.gid(ADDRESSES[number]) for host, number in zip((server, client), numbers)]
    for argv in programs:
        argv = [server.verbs_check if argv[0] == 'verbs_check' else argv[0], *argv[1:]]
        Pair(server, client, argv, gids[0], client_gid=gids[1]).finish(60)


class Traffic:
    """A pair of programs that exchanges by another uplink of the daemon, without an end."""

    def __init__(self, server, client):
        argv = ['ibv_rc_pingpong', '-n', '100000000', '-s', '1024']
        self.pair = Pair(server, client, argv, server.gid(ADDRESSES[0]),
                         client_gid=client.gid(ADDRESSES[2]))
        self.host, self.frames = server, 0

    def check(self):
        """Waits for more frames of it."""
        before = self.frames

        def moved():
            self.frames = port(self.host, 'qemu:')['counters']['in_frames']
            return self.frames > before + 10

        until(20, moved, lambda: f'the traffic stands still: {self.pair.client.describe()}')
        if not (self.pair.server.running() and self.pair.client.running()):
            raise Failure(f'the traffic ended: {self.pair.client.describe()}')


@contextlib.contextmanager
def beside_traffic(build):
    """A host with a vhost: port, and one that exchanges with it by another uplink."""
    with hosts(build, 3) as (host, neighbour, machine):
        path, cable = (os.path.join(host.run_dir, name) for name in ('vm', 'cable'))
        start(host, 0, f'vhost:{path}', f'qemu:{cable}')
        start(neighbour, 2, f'qemu:{cable},connect')
        traffic = Traffic(host, neighbour)
        traffic.check()
        pid = host.daemon_pid()
        yield host, machine, path, traffic
        if host.daemon_pid() != pid or not host.daemon.running():
            raise Failure(f'urxed has ended: {host.daemon.describe()}')
        traffic.check()
        traffic.pair.kill()


def play_master(build, *argv, seconds=0):
    """Carries an attack out."""
    return subprocess.run([os.path.join(build, 'tests/smoke/vhost_master'), *argv],
                          timeout=seconds + 240,
                          capture_output=True, text=True, check=False)


def check_machine_afterwards(host, machine, path):
    """An honest machine that comes after the hostile ones is served. A new process of the port may not listen yet."""
    until(10, lambda: os.path.exists(path), lambda: f'no socket for the machine: {port(host)}')
    start(machine, 1, MACHINE.format(path))
    exchange(host, machine)


def attack(build, path, name):
    """Repeats an attack that finds nobody listening: the process that the one before has ended is not replaced yet."""
    result = None

    def has_run():
        nonlocal result
        result = play_master(build, path, name)
        return not result.returncode

    until(30, has_run, lambda: f'{name}: {result}')


def check_attacks(build):
    """Each attack once. Most do nothing to DPDK 22.11; truncated memory ends the process."""
    with beside_traffic(build) as (host, machine, path, traffic):
        for name in play_master(build, path).stdout.split():
            wait_restarted(host, 0)
            attack(build, path, name)
            traffic.check()
            print(f'{name}: {port(host)["device"]["restarts"]} restarts', flush=True)
        wait_restarted(host, 1)
        if 'restarts in' not in host.daemon.errors():
            raise Failure(f'the log lacks the end of the process: {host.daemon.errors()}')
        check_machine_afterwards(host, machine, path)


def check_soak(build):
    """Attacks in random order for as long as the environment says."""
    seconds = os.environ.get('URXE_VHOST_SOAK', SOAK_SECONDS)
    with beside_traffic(build) as (host, machine, path, traffic):
        result = play_master(build, path, 'soak', seconds, '1', seconds=int(seconds))
        print(result.stdout, f'{port(host)["device"]["restarts"]} restarts', flush=True)
        if result.returncode:
            raise Failure(f'{result}')
        traffic.check()
        wait_restarted(host, 0)
        check_machine_afterwards(host, machine, path)


def check_restart(build):
    """A process that is killed is replaced, and the machine, which listens, is served again."""
    with hosts(build, 2) as (host, machine):
        path = os.path.join(machine.run_dir, 'vm')
        # The machine waits for its peer before it listens for programs.
        start(host, 0, f'vhost:{path},connect')
        if port(host)['state'] != 'down':
            raise Failure(f'up without a machine: {port(host)}')
        start(machine, 1, MACHINE_LISTENS.format(path))
        exchange(host, machine, programs=EXCHANGE[:1])
        if port(host)['device']['restarts'] or port(host)['state'] != 'active':
            raise Failure(f'not the first process: {port(host)}')
        for restarts in (1, 2):
            os.kill(port_process(host), signal.SIGKILL)
            wait_restarted(host, restarts)
            exchange(host, machine, programs=EXCHANGE[:1])
        machine.daemon.kill(signal.SIGTERM)
        until(10, lambda: port(host)['state'] == 'down', lambda: f'up after the machine: {port(host)}')
        text = host.daemon.errors()
        if text.count('was killed by signal 9') != 2 or text.count('serves the port') != 2:
            raise Failure(f'the log lacks the end or the restart: {text}')
        if 'RESTARTS' not in host.run(host.urxe, 'show', '--run-dir', host.run_dir, 'port'):
            raise Failure('urxe show port does not tell of restarts')


def check_hung(build):
    """A process that takes no frames is replaced; urxed waits for it meanwhile with nothing."""
    with hosts(build, 2) as (host, machine):
        path = os.path.join(machine.run_dir, 'vm')
        start(host, 0, f'vhost:{path},connect')
        start(machine, 1, MACHINE_LISTENS.format(path))
        exchange(host, machine, programs=EXCHANGE[:1])
        os.kill(port_process(host), signal.SIGSTOP)
        # Their packets come to the stopped process, and after the restart to the machine.
        gids = host.gid(ADDRESSES[0]), machine.gid(ADDRESSES[1])
        pair = Pair(machine, host, ['ibv_ud_pingpong', '-n', '100'], gids[1], client_gid=gids[0])
        wait_restarted(host, 1)
        pair.kill()
        if 'accepts no frames' not in host.daemon.errors():
            raise Failure(f'another reason: {host.daemon.errors()}')
        exchange(host, machine, programs=EXCHANGE[:1])


def check_delay(build):
    """Ends soon after the start make the next start later."""
    with hosts(build, 1) as (host,):
        path = os.path.join(host.run_dir, 'vm')
        start(host, 0, f'vhost:{path}')
        for restarts in range(1, 5):
            os.kill(port_process(host), signal.SIGKILL)
            until(10, lambda: f'restarts in {50 << restarts} ms' in host.daemon.errors(),
                  lambda: f'a wrong delay: {host.daemon.errors()}')
            wait_restarted(host, restarts)


def filters(process):
    """The number of filters of system calls: the one of the start, and the stricter one with an open socket."""
    return int(status(process)['Seccomp_filters'])


def check_confined(build):
    """What the process may do, of an ordinary user and of root."""
    for user in ('nobody', None):
        with hosts(build, 1, user) as (host,):
            path = os.path.join(host.run_dir, 'vm')
            start(host, 0, f'vhost:{path}')
            pid = port_process(host)
            found = status(pid)
            if (found['Seccomp'], found['NoNewPrivs']) != ('2', '1'):
                raise Failure(f'no filter of system calls: {found}')
            if int(found['CapEff'], 16) & ~(1 << 1):  # CAP_DAC_OVERRIDE
                raise Failure(f'too many capabilities: {found["CapEff"]}')
            for task in os.listdir(f'/proc/{pid}/task'):
                if filters(f'{pid}/task/{task}') != filters('self') + 2:
                    raise Failure(f'a thread without both filters: {task}')
            # An ordinary user needs user namespaces for it, and the log says if there are none. Root needs none.
            unlimited = user and 'sees all directories' in host.daemon.errors()
            if os.getuid() == 0 and not unlimited and os.readlink(f'/proc/{pid}/root') != host.run_dir:
                raise Failure(f'the root directory is {os.readlink(f"/proc/{pid}/root")}')
            if len(os.listdir(f'/proc/{pid}/fd')) > 30:
                raise Failure('urxed left descriptors open for the process')


def check_end(build):
    """urxed's end is the end of the process, and the socket goes where urxed can remove it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with hosts(build, 1) as (host,):
            path = os.path.join(host.run_dir, 'vm')
            start(host, 0, f'vhost:{path}')
            if not stat.S_ISSOCK(os.stat(path).st_mode):
                raise Failure(f'{path} is no socket')
            pid = port_process(host)
            os.kill(host.daemon_pid(), number)
            until(10, lambda: not os.path.exists(f'/proc/{pid}') or
                  status(pid)['State'].startswith('Z'), lambda: 'the process goes on')
            host.daemon.wait(10)
            if number == signal.SIGTERM and os.listdir(host.run_dir) not in ([], ['urxed.lock']):
                raise Failure(f'left: {os.listdir(host.run_dir)}')
            start(host, 0, f'vhost:{path}')


def check_refused(build):
    """Errors of the start are told as before, and DPDK's vhost does not run in urxed itself."""
    with hosts(build, 1) as (host,):
        path = os.path.join(host.run_dir, 'vm')
        for spec, text in (('vhost:/proc/vm', 'vhost:/proc/vm: cannot create a socket in /proc'),
                           ('vhost:/etc/passwd', 'not a socket'),
                           (f'dpdk:net_vhost0,iface={path}', 'use vhost:PATH'),
                           (f'dpdk:bus=vdev,name=net_vhost0,iface={path}', 'use vhost:PATH')):
            daemon = host.spawn([os.path.join(host.top, 'tools/urxed'), '--foreground',
                                 '--run-dir', host.run_dir, '--uplink', spec])
            if daemon.wait(20) != 1 or text not in daemon.errors() or \
                    len(daemon.errors().splitlines()) != 1:
                raise Failure(f'{spec}: {daemon.describe()}')


def check_one_queue(build):
    """The port does not offer multiqueue to the machine, which would send into rings that the port does not read.

    QEMU itself may have queues=2, as machines that were started with an earlier urxed may."""
    get_features, get_protocol_features, version = 1, 15, 1
    multiqueue = {get_features: (22, 0), get_protocol_features: (0, 1)}
    for connects in (False, True):
        with hosts(build, 1) as (host,), socket.socket(socket.AF_UNIX) as machine:
            path = os.path.join(host.run_dir, 'vm')
            if connects:
                os.makedirs(host.run_dir, exist_ok=True)
                machine.bind(path)
                os.chmod(path, 0o666)
                machine.listen()
            start(host, 0, f'vhost:{path}' + (',connect' if connects else ''))
            if not connects:
                machine.connect(path)
            peer = machine.accept()[0] if connects else machine
            peer.settimeout(20 * BUSY)
            for request, (bit, value) in multiqueue.items():
                peer.sendall(struct.pack('=III', request, version, 0))
                features = struct.unpack('=IIIQ', peer.recv(20, socket.MSG_WAITALL))[3]
                if not features or features >> bit & 1 != value:
                    raise Failure(f'the answer to request {request} is {features:#x}')


def ticks(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))


def check_helper(build):
    """Without the helper that starts the process, urxed goes on and uses no processor; the port stays down."""
    with hosts(build, 1) as (host,):
        start(host, 0, f'vhost:{os.path.join(host.run_dir, "vm")}')
        process = port_process(host)
        os.kill(int(status(process)['PPid']), signal.SIGKILL)
        os.kill(process, signal.SIGKILL)
        until(10, lambda: not port_process(host), lambda: 'the process of the port lives')
        before = ticks(host.daemon_pid())
        time.sleep(2)
        used = ticks(host.daemon_pid()) - before
        if used > os.sysconf('SC_CLK_TCK') // 2:
            raise Failure(f'urxed used {used} ticks in 2 s')
        host.run('ibv_devinfo')
        text = host.daemon.errors()
        if text.count('stay down until urxed is started again') != 1 or 'next try' in text or 'restarts in' in text:
            raise Failure(f'the log tells of restarts: {text}')
        if 'its process has ended' not in text:
            raise Failure(f'the log does not tell of the end: {text}')


def check_slow_helper(build):
    """A helper that answers later than urxed waits starts the process of the port all the same."""
    with hosts(build, 1) as (host,):
        start(host, 0, f'vhost:{os.path.join(host.run_dir, "vm")}')
        process = port_process(host)
        helper = int(status(process)['PPid'])
        os.kill(helper, signal.SIGSTOP)
        os.kill(process, signal.SIGKILL)
        until(10, lambda: 'does not answer' in host.daemon.describe(), lambda: 'urxed waits for its helper')
        os.kill(helper, signal.SIGCONT)
        wait_restarted(host, 1)
        host.run('ibv_devinfo')


def check_idle(build):
    """With a machine that says nothing, both processes sleep; the first frame after that is no hanging process's."""
    with hosts(build, 2) as (host, machine):
        path = os.path.join(host.run_dir, 'vm')
        start(host, 0, f'vhost:{path}')
        start(machine, 1, MACHINE.format(path))
        exchange(host, machine, programs=EXCHANGE[:1])
        time.sleep(1)
        pids = [host.daemon_pid(), port_process(host)]
        before = [ticks(pid) for pid in pids]
        time.sleep(11)
        spent = [ticks(pid) - start for pid, start in zip(pids, before)]
        if max(spent) > 55:
            raise Failure(f'{spent} ticks of 10 ms in 11 s of silence')
        exchange(host, machine, programs=EXCHANGE[:1])
        if port(host)['device']['restarts']:
            raise Failure(f'the port restarted after the silence: {host.daemon.errors()}')


CHECKS = {'attacks': check_attacks, 'soak': check_soak, 'restart': check_restart, 'hung': check_hung,
          'delay': check_delay, 'confined': check_confined, 'end': check_end,
          'refused': check_refused, 'one_queue': check_one_queue, 'helper': check_helper,
          'slow_helper': check_slow_helper, 'idle': check_idle}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
