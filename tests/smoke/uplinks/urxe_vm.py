#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
`urxe vm` with drivers by hand: frames between machines, and the ends of the hypervisor, of urxed and of the device
process in any order.
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
from host import BUSY, Failure, Host, Program, main, succeed, until  # noqa: E402
from vfio_user import CONFIG_REGION, Client, Vmxnet3  # noqa: E402

NAMES = [f'urxe{os.getpid()}{side}' for side in 'ab']
MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02']
IDLE_SECONDS = 10
# Of a core, while nothing happens.
IDLE_SHARE = 0.001


def creation(path):
    return os.stat(path).st_ctime_ns if os.path.exists(path) else None


class Machine:
    """A device process."""

    def __init__(self, host, number, arguments=()):
        self.path = os.path.join(host.top, f'vm{number}')
        # A killed process leaves its sockets.
        self.before = creation(f'{self.path}.1')
        self.process = host.spawn([host.urxe, 'vm', '--run-dir', host.run_dir, '--socket', self.path, '--mac',
                                   MACS[number], '--name', f'm{number}', *arguments])
        until(20, self.listens, lambda: f'no socket: {self.process.describe()}')

    def listens(self):
        if not self.process.running():
            raise Failure(f'ended: {self.process.describe()}')
        return creation(f'{self.path}.1') not in (None, self.before)


def frame(to, sender, text):
    macs = bytes.fromhex((MACS[to] + MACS[sender]).replace(':', ''))
    return (macs + b'\x88\xb5' + text).ljust(60, b'\0')


def expect_frame(drivers, to, text):
    drivers[to].client.read(1, 0)  # each driver's process works
    sent = frame(to, 1 - to, text)
    drivers[1 - to].send(sent)
    got = drivers[to].receive()
    if got != sent:
        raise Failure(f'sent {sent}, received {got}')


def expect_states(host, wanted):
    def states():
        return {port['name']: port['state'] for port in host.show('port')['ports'] if port['kind'] == 'vm'}
    until(10, lambda: states() == wanted, lambda: f'{states()}, not {wanted}')


def delivered(host, name):
    """The number of frames that urxed has delivered to a port."""
    return next(port['counters']['out_frames'] for port in host.show('port')['ports'] if port['name'] == name)


def lose_frame(host, machine, driver):
    """Sends a frame to machine 0, which has no driver, and waits until its process has dropped the frame."""
    before = delivered(host, 'vm:m0')
    driver.send(frame(0, 1, b'lost'))
    until(10, lambda: delivered(host, 'vm:m0') > before, lambda: 'urxed has not delivered the frame')
    # Before the process handles what comes after this reply, it handles the frames.
    function = Client(machine.path + '.1')
    function.greet()
    function.close()


def check_frames():
    """Two machines; then one without its hypervisor, which comes back."""
    with Host(sys.argv[1]) as host:
        machines = [Machine(host, number) for number in range(2)]
        expect_states(host, {'vm:m0': 'active', 'vm:m1': 'active'})
        drivers = [Vmxnet3(machine.path) for machine in machines]
        for text in (b'first', b'second', b'third'):
            expect_frame(drivers, 0, text)
            expect_frame(drivers, 1, text)
        for machine, number in zip(machines, (0x07b0, 0x0820)):
            function = Client(machine.path + '.1')
            function.greet()
            if function.read(CONFIG_REGION, 0) != 0x082015ad:
                raise Failure('function 1 is no PVRDMA')
            function.close()
        refused = Client(machines[0].path)
        if refused.socket.recv(1):
            raise Failure('a second client was not refused')
        # The end of a client and the next one at the same time.
        drivers[0].close()
        drivers[0] = Vmxnet3(machines[0].path)
        expect_frame(drivers, 0, b'back')
        drivers[0].close()
        # A frame to the machine without a hypervisor is lost, and harms nothing.
        lose_frame(host, machines[0], drivers[1])
        drivers[0] = Vmxnet3(machines[0].path)
        expect_frame(drivers, 0, b'again')
        machines[1].process.kill()
        expect_states(host, {'vm:m0': 'active'})
        drivers[0].send(frame(1, 0, b'nobody'))


def check_daemon_killed():
    with Host(sys.argv[1]) as host:
        machines = [Machine(host, number) for number in range(2)]
        drivers = [Vmxnet3(machine.path) for machine in machines]
        expect_frame(drivers, 0, b'before')
        host.daemon.kill()
        until(10, lambda: not any(driver.link_is_up() for driver in drivers), lambda: 'the link is still up')
        drivers[0].send(frame(1, 0, b'lost'))
        host.start_daemon()
        until(10, lambda: all(driver.link_is_up() for driver in drivers),
              lambda: f'the link is down: {machines[0].process.describe()}')
        expect_states(host, {'vm:m0': 'active', 'vm:m1': 'active'})
        expect_frame(drivers, 1, b'after')


def check_lost_memory():
    """A hypervisor that shortens the file of its machine's memory harms that machine only."""
    with Host(sys.argv[1]) as host:
        machines = [Machine(host, number) for number in range(2)]
        drivers = [Vmxnet3(machine.path) for machine in machines]
        expect_frame(drivers, 0, b'before')
        os.ftruncate(drivers[0].fd, 0)
        drivers[1].send(frame(0, 1, b'lost'))
        until(10, lambda: "cannot give the machine's memory" in machines[0].process.errors(),
              lambda: f'no word about lost memory: {machines[0].process.describe()}')
        drivers[0].close()
        drivers[0] = Vmxnet3(machines[0].path)
        expect_frame(drivers, 0, b'again')
        expect_frame(drivers, 1, b'and back')


def check_private():
    """Without a daemon; SIGTERM removes the sockets."""
    with Host(sys.argv[1], daemon=False) as host:
        machine = Machine(host, 0)
        driver = Vmxnet3(machine.path)
        # Longer than the life of a daemon without clients.
        time.sleep(7)
        expect_states(host, {'vm:m0': 'active'})
        if not driver.link_is_up():
            raise Failure('the link is down')
        machine.process.kill(signal.SIGTERM)
        if machine.process.wait(5):
            raise Failure(f'not a clean end: {machine.process.describe()}')
        if os.path.exists(machine.path) or os.path.exists(machine.path + '.1'):
            raise Failure('the sockets are still there')
        # A look by a connection would keep it alive.
        until(10, lambda: not os.path.exists(os.path.join(host.run_dir, 'urxed.sock')), lambda: 'the private daemon lives')


def run_vm(host, *arguments):
    """The exit status and the errors of a command that cannot start."""
    result = subprocess.run([host.urxe, 'vm', '--run-dir', host.run_dir, *arguments], capture_output=True, text=True,
                            timeout=20 * BUSY, env=host.environment, check=False)
    return result.returncode, result.stderr


def check_mistakes():
    with Host(sys.argv[1]) as host:
        path = os.path.join(host.top, 'socket')
        file = os.path.join(host.top, 'file')
        with open(file, 'w', encoding='utf-8'):
            pass
        machine = Machine(host, 0)
        for status, text, arguments in [
                (2, 'vm needs --socket', []),
                (2, 'has 1 to 99 characters', ['--socket', '']),
                (2, 'has 1 to 99 characters', ['--socket', 'x' * 100]),
                (2, 'not the MAC', ['--socket', path, '--mac', '01:00:00:00:00:00']),
                *((2, 'not the MAC', ['--socket', path, '--mac', mac])
                  for mac in ('x', '52:54:00:12:34:56:78', '52:54:00:12:34:56 ', '00:00:00:00:00:00')),
                (2, '--mtu 575 is not', ['--socket', path, '--mtu', '575']),
                (2, '--mtu 9001 is not', ['--socket', path, '--mtu', '9001']),
                (2, '--roce is v1 or v2', ['--socket', path, '--roce', 'v3']),
                (2, 'unknown option', ['--socket', path, '--what']),
                (2, 'unexpected argument', ['--socket', path, 'what']),
                (1, 'another port has this name', ['--socket', path, '--name', 'm0']),
                (1, 'the process that listens at --socket', ['--socket', machine.path, '--name', 'm0']),
                (1, 'letters, digits', ['--socket', path, '--name', 'a b']),
                (1, 'another process listens', ['--socket', machine.path, '--name', 'x']),
                (1, 'cannot listen', ['--socket', file, '--name', 'x']),
                (1, 'cannot listen', ['--socket', os.path.join(host.top, 'no/where')])]:
            found = run_vm(host, *arguments)
            if found[0] != status or text not in found[1]:
                raise Failure(f'{arguments}: {found}')
        if not os.path.exists(file):
            raise Failure('a file that is no socket was removed')
        expect_states(host, {'vm:m0': 'active'})
        # The socket that a killed process has left.
        machine.process.kill()
        Vmxnet3(Machine(host, 0).path)


def processor_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as stat:
        fields = stat.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def check_idle():
    with Host(sys.argv[1]) as host:
        machines = [Machine(host, number) for number in range(2)]
        drivers = [Vmxnet3(machine.path) for machine in machines]
        expect_frame(drivers, 0, b'once')
        pids = [machine.process.process.pid for machine in machines]
        before = [processor_seconds(pid) for pid in pids]
        time.sleep(IDLE_SECONDS)
        used = [processor_seconds(pid) - then for pid, then in zip(pids, before)]
        # One tick of the clock is more than the share.
        if max(used) > IDLE_SECONDS * IDLE_SHARE + 1 / os.sysconf('SC_CLK_TCK'):
            raise Failure(f'{used} s of processor time in {IDLE_SECONDS} s')


LONG_MTU = 9000
# Says that it listens, and receives frames of an interface until one has argv[2] bytes.
LISTENER = """
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((sys.argv[1], 0))
print('listens', flush=True)
while len(link.recv(65600)) != int(sys.argv[2]):
    pass
"""


class LongVmxnet3(Vmxnet3):
    MTU = LONG_MTU


def check_long_frames():
    """A machine may send what the uplink's interface carries, although packets of the host are never so long."""
    sent = frame(1, 0, bytes(LONG_MTU))
    with Host(sys.argv[1], prefix=network.inside(NAMES[0]), arguments=['--uplink', 'af_packet:eth0']) as host:
        driver = LongVmxnet3(Machine(host, 0).path)
        listener = Program([*network.inside(NAMES[1]), 'python3', '-c', LISTENER, 'eth0', str(len(sent))], os.environ)
        try:
            until(20, lambda: 'listens' in listener.output(), listener.describe)
            driver.send(sent)
            succeed(listener, 20)
        finally:
            listener.kill()


CHECKS = {'frames': check_frames, 'daemon_killed': check_daemon_killed, 'lost_memory': check_lost_memory,
          'private': check_private, 'mistakes': check_mistakes, 'idle': check_idle}
if sys.argv[2] == 'long_frames':
    network.run(check_long_frames, NAMES, mtu=LONG_MTU)
else:
    main(CHECKS[sys.argv[2]])
