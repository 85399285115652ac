# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ranks of Open MPI at a peer, and in a machine that moves."""
import os
import re
import shlex
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../clients'), os.path.join(HERE, '../vm')]
import openmpi  # noqa: E402
from ends import InMachine  # noqa: E402
from host import Failure  # noqa: E402
from moving import MovingImage  # noqa: E402
from software import MpiImage  # noqa: E402
from ucx import LANES  # noqa: E402

PORT = 2222
SECONDS = 400
RANKS = 2
# UCX gives up a connection after 30 s, but an emulated machine may need longer for its rank's start.
CONNECT_SECONDS = 200


class MpiMovingImage(MovingImage):
    PROGRAMS = MpiImage.PROGRAMS
    FOLDERS = MpiImage.FOLDERS
    WITHOUT = MpiImage.WITHOUT


def compile_ranks(stack):
    return openmpi.compile_ranks(stack.enter_context(tempfile.TemporaryDirectory()))


class RanksOnHost:
    """Where mpirun runs: a host, with one rank there."""

    def __init__(self, end, folder):
        self.host = end.host
        self.address = end.address
        self.device = 'urxe0'
        self.program = openmpi.compile_ranks(folder)
        self.agent = os.path.join(folder, 'agent')
        with open(self.agent, 'w', encoding='utf-8') as file:
            file.write('\n'.join(['#!/bin/sh', *agent_lines('busybox nc')]) + '\n')
        os.chmod(self.agent, 0o755)

    def start(self, *argv):
        return self.host.start(*argv)


class RanksInMachine:
    """Where mpirun runs: a machine that stays, with one rank there."""

    def __init__(self, end, _folder):
        self.vm = end.machine
        self.address = end.address
        self.device = self.vm.RDMA
        self.program = '/bin/mpi_payload'
        self.agent = '/tmp/agent'
        self.vm.run('mkdir -p /dev/shm && mount -t tmpfs none /dev/shm')
        self.vm.write_script(self.agent, *agent_lines('nc'))

    def start(self, *argv):
        return self.vm.start(f'HOME=/tmp {self.vm.prefix}{shlex.join(argv)}')


def agent_lines(netcat):
    """mpirun starts this script in place of ssh: AGENT HOST COMMAND..."""
    return ['host=$1', 'shift', f'echo "$*" | {netcat} $host {PORT}']


class Ranks:
    """
    mpirun at the peer, with one rank there and one in the machine that moves, whose agent runs commands on urxe0. The ranks
    connect by UCX.
    """

    title = 'MPI'

    def __init__(self, peer, vm):
        self.vm = vm
        self.end = time.monotonic() + SECONDS
        self.top = tempfile.TemporaryDirectory()
        place = (RanksInMachine if isinstance(peer, InMachine) else RanksOnHost)(peer, self.top.name)
        self.prepare(vm, place.program, place.agent)
        # Each rank uses those of these devices that its kernel or urxe has.
        self.devices = list(dict.fromkeys((place.device, vm.RDMA)))
        self.program = place.start(
            'mpirun', '--allow-run-as-root', '-np', str(RANKS), '--host', f'{place.address}:1,{vm.address}:1',
            '--mca', 'plm_rsh_agent', place.agent, '--mca', 'oob_tcp_if_include', '192.0.2.0/24',
            '--mca', 'mpi_yield_when_idle', '1', *self.transport(), place.program)

    def transport(self):
        """mpirun's options."""
        return ['--mca', 'pml', 'ucx', '--mca', 'pml_ucx_tls', 'any', '--mca', 'pml_ucx_devices', 'any',
                '-x', 'UCX_TLS=rc_v,self', '-x', 'UCX_NET_DEVICES=' + ','.join(f'{name}:1' for name in self.devices),
                '-x', f'UCX_UD_VERBS_TIMEOUT={CONNECT_SECONDS}s', '-x', 'UCX_LOG_LEVEL=info']

    @staticmethod
    def prepare(vm, program, agent):
        """
        The server of the agent, a file system for shared memory, and the program under mpirun's path of it. orted looks
        for the agent, too.
        """
        vm.run(f'mkdir -p /dev/shm {os.path.dirname(agent)} && mount -t tmpfs none /dev/shm && ln -s /bin/true {agent}')
        if program != '/bin/mpi_payload':
            vm.run(f'ln -s /bin/mpi_payload {program}')
        vm.write_script('/tmp/serve', 'read -r command',
                        'HOME=/tmp exec /urxe/tools/urxe run -- sh -c "$command" </dev/null >/tmp/orted 2>&1')
        vm.start(f'nc -ll -p {PORT} -e /tmp/serve')
        vm.wait_listening(PORT)

    def running(self):
        if time.monotonic() > self.end:
            raise Failure(f'hangs: {self.describe()}')
        return self.program.running()

    def describe(self):
        return f'{self.program.describe()}\nthe machine: {self.vm.run("cat /tmp/orted; ps")}'

    def finish(self):
        output = self.program.output()
        if self.program.wait(1) or len(re.findall(rf'^rank \d of {RANKS}: all is as it was sent$', output, re.M)) != RANKS:
            raise Failure(f'not all ranks: {self.describe()}')
        self.check_devices(output + self.program.errors())
        self.top.cleanup()

    def check_devices(self, text):
        """UCX's log: each rank has configured lanes to the other one, by RC and on one of these devices."""
        lanes = {}
        for host, lane in re.findall(r'\[([^\s:]+):\d+ *:\w+\].*(ep_cfg\[.*)', text):
            lanes.setdefault(host, set()).update(set(re.findall(LANES, lane)) - {('self', 'memory0')})
        used = set().union(*lanes.values())
        if len(lanes) != RANKS or not all(lanes.values()) or used != {('rc_verbs', f'{name}:1') for name in self.devices}:
            raise Failure(f'the ranks have {lanes}: {self.describe()}')


class FabricRanks(Ranks):
    """
    The ranks connect by rdma_cm: by libfabric's message endpoints of verbs, with its layer for reliable datagrams. libfabric
    looks for the addresses of localhost and of the machine's name.
    """

    title = 'MPI over libfabric'

    def __init__(self, peer, vm):
        for machine in (vm, peer.machine) if isinstance(peer, InMachine) else (vm,):
            machine.run(f'hostname {machine.name}; echo hosts: files >/etc/nsswitch.conf; '
                        f'echo 127.0.0.1 localhost >/etc/hosts; echo {machine.address} {machine.name} >>/etc/hosts')
        super().__init__(peer, vm)

    def transport(self):
        # The size of CQs follows from the number of ranks; without it, rxe0 refuses them.
        return [*shlex.split(openmpi.FABRIC), '-x', f'FI_UNIVERSE_SIZE={RANKS}']

    def check_devices(self, text):
        openmpi.check_fabric(text, RANKS, f'({"|".join(self.devices)})')
