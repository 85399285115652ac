#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The commands of docs/virtual-machines.md for a machine with PVRDMA: `urxe vm`, QEMU's arguments, and programs in the
machine. Only the pauses between a server and its client are others: emulated processors need longer.
"""
import contextlib
import json
import os
import shlex
import sys
import tempfile

from ends import wait_gid
from software import MpiImage
from verbs import add_host
from vm import MEMORY_MB, Device, Vm, functions, shared_memory
from host import Failure, main
from rdma import SECONDS
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ('../clients', '../interop')]
from openmpi import compile_ranks  # noqa: E402
from recipe import commands  # noqa: E402

# What a bare image lacks: mpirun wants a program of the kind of ssh, even if it starts nothing by it.
ENVIRONMENT = 'export HOME=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=sh;'
RANKS_MB = 1536  # ranks of Open MPI need more memory than the page's machine has
SOCKET, ADDRESS = '/tmp/vm1', '192.0.2.1'  # of the page
PAUSE = 'sleep 1;'
# Ports of perftest and ucx_perftest, or a listener of rdma_cm.
UNTIL_LISTENING = ("until grep -qE ':(4853|3419) ' /proc/net/tcp* || rdma resource show cm_id | grep -q LISTEN; "
                   'do sleep 1; done;')


class PageImage(MpiImage):
    PROGRAMS = [*MpiImage.PROGRAMS, 'ucx_perftest']


class PageDevice(Device):
    """The process that a command of the page starts, with its sockets in another folder."""

    def __init__(self, host, command):  # pylint: disable=super-init-not-called
        path = os.path.join(host.top, 'vm1')
        self.host = host
        self.arguments = shlex.split(command.replace(SOCKET, path))[2:]
        self.mac = self.arguments[self.arguments.index('--mac') + 1]
        self.sockets = [path, f'{path}.1']
        self.process = None
        self.start()


def joined_lines(title):
    """The commands of a section, each on one line."""
    return commands(title).replace('\\\n', '').splitlines()


def first(lines, start):
    return next(line for line in lines if line.startswith(start))


def check_arguments(command, sockets):
    """The page's arguments for QEMU are those of the tests."""
    def comparable(words):
        return [json.loads(word) if word.startswith('{') else word for word in words]

    page = comparable(shlex.split(command.replace(SOCKET, sockets[0]))[1:])
    tested = comparable(['-m', str(MEMORY_MB), *shared_memory(MEMORY_MB), *functions(sockets)])
    if page != tested:
        raise Failure(f'the page has {page}, and the tests have {tested}')


def type_line(vm, line):
    print(line, flush=True)
    return vm.run(f'{ENVIRONMENT} NIC={vm.nic()}; ' + line.replace(PAUSE, UNTIL_LISTENING), SECONDS)


def check_programs(vm):
    vm.run(f'ip addr flush dev {vm.nic()}; ip link set {vm.nic()} down')
    for line in joined_lines('Trying it'):
        output = type_line(vm, line.replace('PROGRAM', 'mpi_payload'))
        if line.startswith('ip link'):
            wait_gid(vm, ADDRESS)
        elif line.startswith('mpirun') and 'all is as it was sent' not in output:
            raise Failure(f'{line}: {output}')


def run():
    build = sys.argv[1]
    lines = joined_lines('The device process')
    with contextlib.ExitStack() as stack:
        image = PageImage(build, [compile_ranks(stack.enter_context(tempfile.TemporaryDirectory()))])
        device = PageDevice(add_host(build, stack), first(lines, 'urxe vm '))
        check_arguments(first(lines, 'qemu-system-x86_64 '), device.sockets)
        vm = stack.enter_context(Vm(image, device, ADDRESS, 'vm1', RANKS_MB))
        vm.run(f'hostname {vm.name}; mkdir /dev/shm && mount -t tmpfs none /dev/shm')  # as systems have them
        check_programs(vm)
        vm.expect_healthy()


if __name__ == '__main__':
    main(run)
