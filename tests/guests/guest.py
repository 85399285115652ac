# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Virtual machines with Debian's kernel; rdma_rxe can make the device rxe0 on their NICs."""
import base64
import contextlib
import ipaddress
import os
import socket
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../hosts/paths')]
from ethernet import prefer  # noqa: E402
from host import BUSY, Failure, Program, free_port, until  # noqa: E402

BOOT_SECONDS = 300
MEMORY_MB = 512
QEMU = 'qemu-system-x86_64'
OWN_MAC = '52:54:00:00:00:01'  # of the NIC that connects the guest to this machine

# The kernel prints errors only. A host with much other work stops a virtual processor for long: the kernel does not test
# its timer, and calls a processor locked up after 120 s, not after 20 s.
APPEND = 'console=ttyS0 panic=-1 mitigations=off no_timer_check watchdog_thresh=60 quiet loglevel=5'


def command(image, folder, memory_mb, cpu='max', qemu=QEMU):
    """
    QEMU's command line for an image, without NICs. The folder has the console (a log and a socket), and the socket
    `agent` of the guest's agent.
    """
    return [
        # The kernel kills QEMU when this process ends in any way.
        'setpriv', '--pdeathsig', 'KILL',
        qemu, '-accel', 'tcg,thread=multi', '-cpu', cpu, '-smp', '2',
        '-m', str(memory_mb), '-nodefaults', '-no-user-config', '-display', 'none',
        '-kernel', image.kernel, '-initrd', image.initramfs, '-append', APPEND,
        '-chardev', f'socket,id=console,path={folder}/terminal,server=on,wait=off,logfile={folder}/console',
        '-serial', 'chardev:console',
        '-chardev', f'socket,id=agent,path={folder}/agent,server=on,wait=off',
        '-serial', 'chardev:agent']


class Job:
    """A command that runs in a guest, with the methods of Program in host.py."""

    def __init__(self, guest, number, command):
        self.guest = guest
        self.number = number
        self.argv = [f'({guest.name})', command]
        self.result = None  # (exit status, output, errors)

    def running(self):
        self.guest.listen()
        return self.result is None

    def wait(self, seconds):
        until(seconds, lambda: not self.running(),
              lambda: f'still running after {seconds * BUSY} s: {self.describe()}')
        return self.result[0]

    def output(self):
        return self.result[1] if self.result else ''

    def errors(self):
        return self.result[2] if self.result else ''

    def describe(self):
        return f'{" ".join(self.argv)}\n{self.output()}{self.errors()}'


class Machine:
    """
    A virtual machine, which the constructor boots. `arguments` are QEMU's, with a NIC whose MAC is `mac`. A second NIC
    connects the guest to this machine: the guest reaches listeners on this machine's 127.0.0.1 as 10.0.2.2, and `port`
    of 127.0.0.1 is forwarded to the guest. `prefix` precedes QEMU's command; with the prefix of a Namespace, that
    namespace takes the place of this machine.
    """

    HERE = '10.0.2.2'
    RDMA = 'rxe0'

    def __init__(self, image, arguments, mac, name='guest', memory_mb=MEMORY_MB, prefix=(), cpu='max',
                 qemu=QEMU):
        self.name = name
        self.mac = mac
        self.top = tempfile.TemporaryDirectory(prefix='guest-')
        self.port = free_port()
        self.console = os.path.join(self.top.name, 'console')
        self.terminal = os.path.join(self.top.name, 'terminal')  # a socket: input and output of the console
        self.jobs = {}  # unfinished jobs by number
        self.started = 0
        self.heard = b''
        self.socket = socket.socket(socket.AF_UNIX)
        agent = os.path.join(self.top.name, 'agent')
        self.qemu = self.start_qemu([
            *prefix, *command(image, self.top.name, memory_mb, cpu, qemu), *self.control_nic(), *arguments])
        try:
            self.call(agent)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def start_qemu(argv):
        program = Program(argv, os.environ)
        prefer(program)
        return program

    def control_nic(self):
        """QEMU's arguments for the NIC that connects the guest to this machine."""
        return ['-netdev', f'user,id=n1,hostfwd=tcp:127.0.0.1:{self.port}-:{self.port}',
                '-device', f'virtio-net-pci,netdev=n1,mac={OWN_MAC}']

    def raise_control_nic(self):
        name = self.interface(OWN_MAC)
        self.run(f'ip addr add 10.0.2.15/24 dev {name} && ip link set {name} up')

    def connects(self, agent):
        """Connects to QEMU; False if it does not listen yet."""
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            self.socket.connect(agent)
            return True
        return not self.running()

    def call(self, agent):
        """Waits for the guest's first message, and configures its NIC to this machine."""
        until(BOOT_SECONDS, lambda: self.connects(agent), self.describe)
        self.socket.setblocking(False)
        self.wait_booted()

    def wait_booted(self):
        """Waits for the first message of a kernel that boots, and configures the NIC to this machine."""
        ready = self.jobs[0] = Job(self, 0, 'boot')
        until(BOOT_SECONDS, lambda: not ready.running(), self.describe)
        self.raise_control_nic()

    def interface(self, mac):
        """The name of the NIC with a MAC, which interfaces of its VLANs have too."""
        return self.run('cd /sys/class/net; for link in */device; do '
                        f'grep -l {mac} ${{link%device}}address; done; true').split('/')[0]

    def running(self):
        if not self.qemu.running():
            raise Failure(f'QEMU ended: {self.describe()}')
        return True

    def describe(self):
        console = ''
        if os.path.exists(self.console):
            with open(self.console, encoding='utf-8', errors='replace') as file:
                console = file.read()
        return f'{self.qemu.describe()}\n{console}'

    # --- Commands

    def listen(self):
        """Reads the guest's answers."""
        with contextlib.suppress(BlockingIOError):
            while part := self.socket.recv(65536):
                self.heard += part
            raise Failure(f'QEMU has ended: {self.describe()}')
        *lines, self.heard = self.heard.split(b'\n')
        for line in lines:
            number, status, *texts = line.decode().split(' ')
            job = self.jobs.pop(int(number), None)
            if job is None:
                continue  # of a kernel that has ended since
            job.result = (int(status), *(base64.b64decode(text).decode(errors='replace')
                                         for text in texts))

    def start(self, command):
        self.started += 1
        job = self.jobs[self.started] = Job(self, self.started, command)
        self.socket.sendall(f'{job.number} {command}\n'.encode())
        return job

    def run(self, command, seconds=120):
        """Runs a command, which must succeed; returns its output."""
        job = self.start(command)
        if job.wait(seconds):
            raise Failure(f'exit status {job.result[0]}: {job.describe()}')
        return job.output()

    def write_script(self, path, *lines):
        """Makes a shell script of these lines, which contain no single quotes."""
        self.run("printf '%s\\n' '#!/bin/sh' " + ' '.join(f"'{line}'" for line in lines) + f' >{path}; chmod +x {path}')

    # --- RDMA

    def raise_link(self, mtu, ipv4, ipv6=None):
        """Gives the NIC its MTU and its addresses; returns the interface's name."""
        name = self.interface(self.mac)
        # Without duplicate address detection an address can be used at once.
        self.run(f'echo 0 >/proc/sys/net/ipv6/conf/{name}/accept_dad; '
                 f'ip link set {name} mtu {mtu} up && ip addr add {ipv4}/24 dev {name}')
        if ipv6:
            self.run(f'ip addr add {ipv6}/64 dev {name}')
        return name

    def make_rxe(self, ipv4, mtu, ipv6=None):
        """Gives the NIC addresses, and makes the device rxe0 on it."""
        self.run(f'rdma link add rxe0 type rxe netdev {self.raise_link(mtu, ipv4, ipv6)}')

    def gid(self, address, device=None):
        """The index of an address in the GID table of the RDMA device, or of the device of another folder."""
        device = device or f'/sys/class/infiniband/{self.RDMA}'
        wanted = ipaddress.ip_address(address)
        if wanted.version == 4:
            wanted = ipaddress.ip_address(f'::ffff:{address}')
        # The entry for RoCEv2 is the first one.
        return min(map(int, self.run(f'cd {device}/ports/1/gids; '
                                     f'grep -l {wanted.exploded} *').split()))

    def wait_neighbour(self, address):
        """Waits until the station at the other end of the wire answers."""
        name = self.interface(self.mac)
        self.run(f'until arping -q -c 1 -w 1 -I {name} {address}; do usleep 20000; done')

    def wait_listening(self, port):
        self.run(f'until grep -q "^ *[0-9]*: 0*:{port:04X} " /proc/net/tcp /proc/net/tcp6; do '
                 'usleep 20000; done')

    def kill(self):
        """Kills the machine, like a power failure."""
        self.qemu.kill()

    def close(self):
        self.kill()
        self.socket.close()
        self.top.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.describe())
        self.close()


class Guest(Machine):
    """A virtual machine with a NIC of QEMU's; `wire` are QEMU's arguments for the netdev n0."""

    def __init__(self, image, wire, nic='virtio-net-pci', mac='52:54:00:00:00:02', name='guest', memory_mb=MEMORY_MB,
                 prefix=(), cpu='max', qemu=QEMU):
        super().__init__(image, ['-no-reboot', *wire, '-device', f'{nic},netdev=n0,mac={mac}'], mac, name, memory_mb,
                         prefix, cpu, qemu)
