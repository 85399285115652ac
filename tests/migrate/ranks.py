# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ranks of Open MPI on a host and in a machine that moves."""
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../clients'), os.path.join(HERE, '../vm')]
import openmpi  # noqa: E402
from host import Failure  # noqa: E402
from moving import MovingImage  # noqa: E402
from software import MpiImage  # noqa: E402

PORT = 2222
SECONDS = 400
RANKS = 2


class MpiMovingImage(MovingImage):
    PROGRAMS = MpiImage.PROGRAMS
    FOLDERS = MpiImage.FOLDERS
    WITHOUT = MpiImage.WITHOUT


def compile_ranks(stack):
    return openmpi.compile_ranks(stack.enter_context(tempfile.TemporaryDirectory()))


class Ranks:
    """mpirun on the host, with one rank there and one in the machine, whose agent runs commands on urxe0."""

    title = 'MPI'

    def __init__(self, end, vm):
        self.vm = vm
        self.end = time.monotonic() + SECONDS
        self.top = tempfile.TemporaryDirectory()
        program = openmpi.compile_ranks(self.top.name)
        agent = os.path.join(self.top.name, 'agent')
        with open(agent, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\nhost=$1\nshift\necho "$*" | busybox nc $host {PORT}\n')
        os.chmod(agent, 0o755)
        self.prepare(vm, program, agent)
        self.program = end.host.start(
            'mpirun', '--allow-run-as-root', '-np', str(RANKS), '--host', f'{end.address}:1,{vm.address}:1',
            '--mca', 'plm_rsh_agent', agent, '--mca', 'oob_tcp_if_include', '192.0.2.0/24', '--mca', 'pml', 'ucx',
            '--mca', 'pml_ucx_tls', 'any', '--mca', 'pml_ucx_devices', 'any', '--mca', 'mpi_yield_when_idle', '1',
            '-x', 'UCX_TLS=rc_v,self', '-x', 'UCX_NET_DEVICES=urxe0:1', '-x', 'UCX_LOG_LEVEL=info', program)

    @staticmethod
    def prepare(vm, program, agent):
        """
        The server of the agent, a file system for shared memory, and the program under the path of the host. orted
        looks for the agent, too.
        """
        vm.run(f'mkdir -p /dev/shm {os.path.dirname(program)} && mount -t tmpfs none /dev/shm && '
               f'ln -s /bin/mpi_payload {program} && ln -s /bin/true {agent} && '
               "printf '%s\\n' '#!/bin/sh' 'read -r command' "
               "'HOME=/tmp exec /urxe/tools/urxe run -- sh -c \"$command\" </dev/null >/tmp/orted 2>&1' >/tmp/serve && "
               'chmod +x /tmp/serve')
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
        self.top.cleanup()
