#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A machine with the devices of `urxe vm` migrates to another QEMU and another device process. QEMU 11.1 does not migrate
the state of vfio-user devices: then the test says so, and is skipped.
"""
import contextlib
import os
import socket
import sys
import tempfile

from ends import CHECKED, run_both_ways
from verbs import ADDRESSES, Lab, add_host
from vm import Device, VmImage, functions, make_image, shared_memory
from host import START_SECONDS, Failure, Program, free_port, main, skip, until
from qmp import Qmp

PINGPONG = 'ibv_rc_pingpong -c -n 200000 -p {} -d {} -g {}'


def has_port(host, device):
    """Whether the machine of a device process is on the switch: a paused function has left it."""
    return any(port['name'] == f'vm:{device.name}' for port in host.show('port')['ports'])


def named_device(host, number, name, *arguments):
    device = Device(host, number, arguments=['--name', name, *arguments])
    device.name = name
    return device


def check_qemu(build, host):
    """Skips the test if QEMU does not tell a vfio-user device that the machine has stopped."""
    qemu = VmImage(build).qemu
    device = named_device(host, 30, 'probe')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'monitor')
        program = Program([qemu, '-accel', 'tcg', '-m', '64', '-nodefaults', '-no-user-config', '-display', 'none',
                           *shared_memory(64), *functions(device.sockets), '-qmp', f'unix:{path},server=on,wait=off'],
                          os.environ)
        try:
            monitor = Qmp(path)
            until(START_SECONDS, lambda: has_port(host, device), lambda: 'the device process has no port')
            monitor.ask('stop')
            version = monitor.ask('query-version')['qemu']
            stays = has_port(host, device)
        finally:
            program.kill()
            device.kill()
    if stays:
        number = '.'.join(str(version[part]) for part in ('major', 'minor', 'micro'))
        skip(f'QEMU {number} has no migration of vfio-user devices: it did not tell the device that the machine stopped')


def start_target(vm, first, device, folder):
    """A QEMU with the arguments of the machine's, other sockets, and the device process."""
    words = [word.replace(vm.top.name, folder).replace(first, folder) for word in vm.qemu.argv]
    for old, new in zip(vm.device.sockets, device.sockets):
        words = [word.replace(f'"{old}"', f'"{new}"') for word in words]
    vm.port, port = free_port(), vm.port
    words = [word.replace(f':{port}-', f':{vm.port}-') for word in words]
    return Program([*words, '-incoming', f'unix:{folder}/migration'], os.environ)


def migrate(vm, first, device, folder):
    """Moves the machine, with which `vm` then talks at its new place. Its monitor is in the folder `first`."""
    source = Qmp(os.path.join(first, 'monitor'))
    program = start_target(vm, first, device, folder)
    target = Qmp(os.path.join(folder, 'monitor'))
    source.ask('migrate', uri=f'unix:{folder}/migration')
    until(120, lambda: source.ask('query-migrate').get('status') in ('completed', 'failed'),
          lambda: f'the migration does not end: {source.ask("query-migrate")}')
    state = source.ask('query-migrate')
    if state['status'] != 'completed' or target.ask('query-status')['status'] != 'running':
        raise Failure(f'the migration failed: {state}\n{program.describe()}')
    vm.qemu.kill()
    vm.qemu, vm.device = program, device
    vm.socket = socket.socket(socket.AF_UNIX)
    vm.socket.connect(os.path.join(folder, 'agent'))
    vm.socket.setblocking(False)


def run():
    build = sys.argv[1]
    with contextlib.ExitStack() as stack:
        host = add_host(build, stack)
        check_qemu(build, host)
        lab = Lab(build, stack, make_image(build))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='guest-'))
        other = lab.boot(host)
        first = stack.enter_context(tempfile.TemporaryDirectory(prefix='monitor-'))
        vm = lab.boot(host, extra=['-qmp', f'unix:{first}/monitor,server=on,wait=off'])
        port = free_port()
        server = other.start(f'{PINGPONG.format(port, other.RDMA, other.gid(ADDRESSES[0]))}')
        other.wait_listening(port)
        client = vm.start(f'{PINGPONG.format(port, vm.RDMA, vm.gid(ADDRESSES[1]))} {ADDRESSES[0]}')
        migrate(vm, first, named_device(host, 3, 'target', '--mac', vm.mac, '--incoming'), folder)
        for job in client, server:
            if job.wait(300):
                raise Failure(job.describe())
        run_both_ways(vm, other, CHECKED[:4])
        vm.expect_healthy()


if __name__ == '__main__':
    main(run)
