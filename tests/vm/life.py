#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Ends and restarts under load: of the guest's drivers and kernel, of the machine, of `urxe vm`, and of urxed. Afterwards
the same programs must work again, and the other machine and the host must have lost nothing.
"""
import contextlib
import functools
import http.server
import os
import re
import sys
import tempfile
import threading

from ends import CHECKED, CONNECTED, run_both_ways, run_connected_both_ways, run_pair, wait_gid
from verbs import Lab, add_host
from vm import VERBS_CHECK, Vm, VmImage
from host import Failure, main, succeed, until
from qmp import Qmp

PORT = 18700
MEMORY_MB = 1024  # for a second kernel with its initramfs
SMALL_MB = 640    # of a machine whose balloon is large
LOST = re.compile(r'vmw_pvrdma .*request error reg: -1')  # a read of a register whose device is gone
PROGRAMS = [CHECKED[0], CHECKED[3]]
WAIT_EVENT = 'until [ $(grep -c "{}" /tmp/events) -ge {} ]; do usleep 20000; done'
DRIVERS = ['vmw_pvrdma', 'vmxnet3']


def check_all(one, two):
    """Programs between both machines, in both directions."""
    for vm in one, two:
        wait_gid(vm, vm.address)
    one.wait_neighbour(two.address)
    run_both_ways(one, two, PROGRAMS)
    run_connected_both_ways(one, two, CONNECTED[:1])


@contextlib.contextmanager
def load(server, client):
    """WRITEs between two machines that never end by themselves; they may end with any status."""
    jobs = [server.start(f'ib_write_bw -F --run_infinitely -D 1 -p {PORT} -d {server.RDMA} -x {server.gid(server.address)}')]
    server.wait_listening(PORT)
    jobs.append(client.start(f'ib_write_bw -F --run_infinitely -D 1 -p {PORT} -d {client.RDMA} '
                             f'-x {client.gid(client.address)} {server.address}'))
    client.run('until rdma resource show qp | grep -q "state RTS"; do usleep 20000; done; sleep 1')
    yield
    for vm in server, client:
        if vm.qemu.running():
            vm.start('killall -9 ib_write_bw').wait(60)


# --- The guest

def check_unload(lab, one, two):
    """The drivers leave the devices, and return."""
    for _ in range(3):
        one.unload(*DRIVERS)
        one.load(*reversed(DRIVERS))
        one.configure()
        check_all(one, two)


def check_unload_while_used(lab, one, two):
    """The PVRDMA driver is unbound while a program has queue pairs: it waits for the program's end."""
    with load(two, one):
        unbinding = one.start('echo 0000:00:05.1 >/sys/bus/pci/drivers/vmw_pvrdma/unbind')
        one.run('sleep 1; killall -9 ib_write_bw')
        succeed(unbinding, 60)
    one.run('echo 0000:00:05.1 >/sys/bus/pci/drivers/vmw_pvrdma/bind')
    check_all(one, two)


def check_port(lab, one, two):
    """The NIC goes down and up, and programs get the events of the RDMA device's port."""
    watch = one.start('ibv_asyncwatch >/tmp/events')
    one.run(WAIT_EVENT.format('async event FD', 1))  # it listens
    for number in range(1, 4):
        one.run(f'ip link set {one.nic()} down')
        one.run(WAIT_EVENT.format('PORT_ERR', number))
        one.configure()
        one.run(WAIT_EVENT.format('PORT_ACTIVE', number))
        check_all(one, two)
    one.run('killall ibv_asyncwatch')
    watch.wait(60)


def check_reboot(lab, one, two):
    with load(two, one):
        one.reboot()
    check_all(one, two)


def check_kernel_crash(lab, one, two):
    """The guest's kernel panics in the middle of a transfer, and boots."""
    with load(two, one):
        one.crash()
    check_all(one, two)


def check_suspend(lab, one, two):
    """The kernel suspends all devices, waits 5 s, and resumes them; the NIC is down meanwhile."""
    with load(two, one):
        one.run('echo devices >/sys/power/pm_test && echo freeze >/sys/power/state')
    check_all(one, two)


@contextlib.contextmanager
def served(folder):
    """Serves the files of a folder to machines by HTTP; gives the address."""
    handler = functools.partial(Files, directory=folder)
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://{Vm.HERE}:{server.server_address[1]}'
        server.shutdown()


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def load_kernel(lab, vm):
    """Loads the kernel and the initramfs that the machine was booted from, for kexec."""
    with tempfile.TemporaryDirectory() as top:
        os.symlink(os.path.abspath(lab.image.packed_kernel()), os.path.join(top, 'kernel'))
        os.symlink(lab.image.initramfs, os.path.join(top, 'initramfs'))
        with served(top) as address:
            for name in 'kernel', 'initramfs':
                vm.run(f'wget -q -O /tmp/{name} {address}/{name}')
    vm.run('kexec -l /tmp/kernel --initrd=/tmp/initramfs --command-line="$(cat /proc/cmdline)"; '
           'rm /tmp/kernel /tmp/initramfs; grep -q 1 /sys/kernel/kexec_loaded')


def check_kexec(lab, one, two):
    """The kernel starts another one while the other machine writes to its memory. Linux' PVRDMA driver does not notice."""
    for _ in range(2):
        load_kernel(lab, one)
        with load(one, two):
            one.boot_again('kexec -e')
        check_all(one, two)


# --- The machine

def check_power(lab, one, two):
    """QEMU is killed in the middle of a transfer; a new machine connects to the same device process."""
    with load(two, one):
        one.kill()
    with Vm(lab.image, one.device, one.address, 'vm1', MEMORY_MB) as again:
        check_all(again, two)
        again.expect_healthy()


# --- Processes of the host

def check_lost(vm):
    """The machine goes on without its device: programs get an error, and the kernel logs one."""
    lost = vm.start('ibv_rc_pingpong')
    status, log = lost.wait(120), vm.run('dmesg')
    if not status or not LOST.search(log):
        raise Failure(f'no error of a device that is gone: {lost.describe()}\n{log}')


def check_device(lab, one, two):
    """`urxe vm` is killed. Its machine loses the device, the other machine works, and a new machine takes its place."""
    with load(two, one):
        one.device.kill()
    check_lost(one)
    run_pair(two, two, PROGRAMS[0])
    one.kill()
    one.device.start()
    with Vm(lab.image, one.device, one.address, 'vm1', MEMORY_MB) as again:
        check_all(again, two)


def check_daemon(lab, one, two):
    """urxed is killed and started again; the machines go on, and join the new one while a machine writes to itself."""
    host = one.device.host
    for server in two, one:
        with load(server, one):
            host.daemon.kill()
            host.start_daemon()
            until(60, lambda: one.start(f'ping -c 1 -W 1 {two.address}').wait(60) == 0, one.describe)
        check_all(one, two)


# --- The hypervisor

def resize(monitor, megabytes):
    """The balloon leaves the guest that much memory."""
    monitor.ask('balloon', value=megabytes << 20)
    until(60, lambda: monitor.ask('query-balloon')['actual'] == megabytes << 20,
          lambda: f'the balloon has not arrived: {monitor.ask("query-balloon")}')


def check_balloon(lab, one, two):
    """A balloon takes memory of a machine that sends, and gives it back; programs run before, between and after."""
    monitor = Qmp(lab.monitor)
    for megabytes in SMALL_MB, MEMORY_MB, SMALL_MB:
        with load(two, one):
            resize(monitor, megabytes)
        check_all(one, two)
    monitor.close()


PARTS = {
    'drivers': [check_unload, check_unload_while_used],
    'port': [check_port],
    'boot': [check_reboot, check_kernel_crash],
    'suspend': [check_suspend],
    'kexec': [check_kexec],
    'machine': [check_power],
    'device': [check_device],
    'daemon': [check_daemon],
    'daemon_mapped': [check_daemon],
    'balloon': [check_balloon],
}


class LifeImage(VmImage):
    PROGRAMS = [*VmImage.PROGRAMS, 'kexec']
    BOOT = [*VmImage.BOOT, 'virtio_balloon']


def run():
    build, part = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        image = LifeImage(build, [os.path.join(build, VERBS_CHECK)])
        lab, host = Lab(build, stack, image), add_host(build, stack)
        lab.monitor = os.path.join(host.top, 'monitor')
        balloon = ['-device', 'virtio-balloon-pci', '-qmp', f'unix:{lab.monitor},server=on,wait=off']
        doorbells = ['--doorbells', 'mapped' if part == 'daemon_mapped' else 'trapped']
        one, two = (lab.boot(host, arguments=doorbells, memory_mb=MEMORY_MB, extra=extra) for extra in (balloon, ()))
        for check in PARTS[part]:
            print(check.__name__, flush=True)
            check(lab, one, two)
        for vm in lab.machines:
            if vm.qemu.running():
                vm.expect_healthy()


if __name__ == '__main__':
    main(run)
