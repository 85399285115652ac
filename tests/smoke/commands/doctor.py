#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe doctor` tells what works, what is in the way, and the command that mends it."""
import ctypes
import errno
import glob
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from documented import check_document  # noqa: E402
from host import BUSY, Failure, Host, main, until  # noqa: E402

SUBJECTS = {'daemon', 'device', 'run dir', 'copies', 'limits', 'kernel', 'UDP 4791', 'uplinks', 'MTU', 'firewall'}
ROCE_PORT = 4791
STRANGER = 64321  # a user
PROCESS_VM_READV = {'aarch64': 270, 'x86_64': 310}[os.uname().machine]  # the system call's number


def call(host, *arguments, prefix=()):
    return subprocess.run([*prefix, host.urxe, 'doctor', *arguments], capture_output=True, text=True,
                          timeout=20 * BUSY, env=host.environment, check=False)


def ask(host, *arguments, status=0, prefix=(), subjects=SUBJECTS):
    """The findings by subject; MTU may have several, of which one is kept."""
    result = call(host, '--json', *arguments, prefix=prefix)
    if result.returncode != status or result.stderr:
        raise Failure(f'urxe doctor: status {result.returncode}, {result.stdout}{result.stderr}')
    document = json.loads(result.stdout)
    check_document('doctor', document)
    findings = document['findings']
    if {finding['subject'] for finding in findings} != subjects:
        raise Failure(f'other subjects: {findings}')
    if any(set(finding) != {'subject', 'status', 'text', 'remedy'} for finding in findings):
        raise Failure(f'other keys: {findings}')
    return {finding['subject']: finding for finding in findings}


def expect(finding, status, text, remedy=None):
    if finding['status'] != status or text not in finding['text'] or finding['remedy'] != remedy:
        raise Failure(f'not {status}, {text}, {remedy}: {finding}')


def check_healthy(host):
    found = ask(host, '--run-dir', host.run_dir)
    expect(found['daemon'], 'ok', f'urxed serves {host.run_dir}, without an uplink')
    expect(found['device'], 'ok', 'programs have the device urxe0')
    text = call(host, '--run-dir', host.run_dir).stdout
    if 'ok     device     programs have the device urxe0\n' not in text:
        raise Failure(f'the text lacks the device: {text}')


def check_interfaces(host):
    """The interfaces are those of the network namespace, though /sys shows those of another one."""
    if subprocess.run(['unshare', '--net', 'true'], capture_output=True, check=False).returncode:
        return
    arguments = ['--run-dir', host.run_dir]
    found = ask(host, *arguments, prefix=['unshare', '--net'])
    expect(found['MTU'], 'ok', 'no Ethernet interface is up')
    cable = 'ip link add veth0 mtu 1400 type veth peer name veth1 && ip link set veth0 up && exec "$@"'
    found = ask(host, *arguments, prefix=['unshare', '--net', 'sh', '-c', cable, 'sh'])
    expect(found['MTU'], 'note', 'veth0 has an MTU of 1400: packets carry 1024 bytes',
           'ip link set dev veth0 mtu 4200')


def check_socket_uplink(build):
    """A socket of a virtual machine is an uplink, too."""
    with Host(build, daemon=False) as host:
        host.start_daemon(['--uplink', f'qemu:{host.top}/cable'])
        expect(ask(host, '--run-dir', host.run_dir)['daemon'], 'ok', f'with the uplinks qemu:{host.top}/cable')


def check_link(build):
    """An uplink without a link is named, and one with a link is not."""
    cable = 'ip link add veth0 type veth peer name veth1 && exec "$@"'
    prefix = ['unshare', '--net', 'sh', '-c', cable, 'sh']
    if os.getuid() or subprocess.run([*prefix, 'true'], capture_output=True, check=False).returncode:
        return
    with Host(build, daemon=False, prefix=prefix) as host:
        host.start_daemon(['--uplink', 'af_packet:veth0'])
        inside = ['nsenter', f'--net=/proc/{host.daemon_pid()}/ns/net']
        found = ask(host, '--run-dir', host.run_dir, prefix=inside)
        expect(found['daemon'], 'note', 'the uplink af_packet:veth0 is down', 'ip link show dev veth0')
        for end in ('veth0', 'veth1'):
            subprocess.run([*inside, 'ip', 'link', 'set', end, 'up'], check=True)
        until(10, lambda: host.show('port')['ports'][1]['state'] == 'active', lambda: 'veth0 does not come up')
        found = ask(host, '--run-dir', host.run_dir, prefix=inside)
        expect(found['daemon'], 'ok', 'with the uplinks af_packet:veth0')


def check_names(build):
    """The daemon's own device counts, whatever its name, also beside the device of an outer `urxe run`."""
    with Host(build, daemon=False) as host, Host(build) as outer:
        host.start_daemon(['--device', 'foo0'])
        for prefix in ([], outer.command([])):
            expect(ask(host, '--run-dir', host.run_dir, prefix=prefix)['device'], 'ok', 'programs have the device foo0')


def check_private(host):
    """Without a daemon the check starts a private one, as urxe run does."""
    found = ask(host, '--run-dir', os.path.join(host.top, 'none'))
    expect(found['daemon'], 'ok', 'no urxed serves')
    expect(found['device'], 'ok', 'programs have the device urxe0')


def check_run_dir(host):
    """A run directory in memory is better than one on a disk."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as memory:
        run_dir = os.path.join(memory, 'run')
        expect(ask(host, '--run-dir', run_dir)['run dir'], 'ok', f'{run_dir} is in memory')
    system = subprocess.run(['stat', '-f', '-c', '%T', host.run_dir], capture_output=True, text=True, check=True)
    found = ask(host, '--run-dir', host.run_dir)['run dir']
    if system.stdout.strip() == 'tmpfs':
        expect(found, 'ok', 'is in memory')
    else:
        expect(found, 'note', 'is not in memory', 'urxed --run-dir /dev/shm/urxe-$(id -u) OPTION..., '
               'then urxe run --run-dir /dev/shm/urxe-$(id -u) -- CMD')
        found = ask(host, '--run-dir', os.path.join(host.top, 'nobody'))['run dir']
        expect(found, 'note', 'is not in memory', 'urxe run --run-dir /dev/shm/urxe-$(id -u) -- CMD')


def check_faults(host):
    found = ask(host, '--run-dir', '/proc/nowhere', status=1)
    expect(found['device'], 'fault', 'cannot make run directory /proc/nowhere')
    library = os.path.join(host.top, 'verbs/liburxe.so')
    os.rename(library, library + '.gone')
    found = ask(host, '--run-dir', host.run_dir, status=1)
    os.rename(library + '.gone', library)
    expect(found['device'], 'fault', 'liburxe.so cannot be read')


def check_no_run_dir(host):
    """Without a directory for a daemon the other findings are there."""
    if os.getuid():
        return
    squatter = f'/tmp/urxe-{STRANGER}'
    os.makedirs(squatter, exist_ok=True)
    try:
        found = ask(host, status=1, subjects=SUBJECTS - {'daemon', 'run dir'},
                    prefix=['setpriv', f'--reuid={STRANGER}', '--clear-groups', 'env', '-u', 'XDG_RUNTIME_DIR', 'HOME=/nonexistent'])
    finally:
        os.rmdir(squatter)
    expect(found['device'], 'fault', f'{squatter} belongs to user 0', 'urxe run --run-dir /dev/shm/urxe-$(id -u) -- CMD')


def check_limits(host):
    # Too few descriptors for a device; the command names the daemon that was tried.
    found = ask(host, '--run-dir', host.run_dir, status=1, prefix=['prlimit', '--nofile=16'])
    expect(found['device'], 'fault', 'libibverbs cannot open it', f'URXE_LOG=debug urxe run --run-dir {host.run_dir} -- ibv_devinfo')
    odd = os.path.join(host.top, "it's $(x)")
    os.symlink(host.run_dir, odd)
    found = ask(host, '--run-dir', odd, status=1, prefix=['prlimit', '--nofile=16'])
    word = f"'{host.top}/it'\\''s $(x)'"
    expect(found['device'], 'fault', 'libibverbs cannot open it', f'URXE_LOG=debug urxe run --run-dir {word} -- ibv_devinfo')
    found = ask(host, '--run-dir', host.run_dir, prefix=['prlimit', '--nofile=300'])
    expect(found['limits'], 'note', '300 descriptors only; a completion channel needs 3, an rdma_cm event channel 5 or 6', 'ulimit -n 1024')
    found = ask(host, '--run-dir', host.run_dir, prefix=['prlimit', '--fsize=100000'])
    expect(found['limits'], 'note', '100000 bytes only', 'ulimit -f unlimited')
    # A private daemon has the limit of the first `urxe run`, and cannot create shared memory as large as a vNIC's.
    found = ask(host, '--run-dir', os.path.join(host.top, 'small'), status=1, prefix=['prlimit', '--fsize=5000000'])
    expect(found['limits'], 'note', '5000000 bytes only', 'ulimit -f unlimited')


def check_uplinks(host):
    """An uplink needs both capabilities; Docker grants root the first one alone."""
    if os.getuid():
        return
    expect(ask(host, '--run-dir', host.run_dir)['uplinks'], 'ok', 'can have an uplink')
    for lacking in ('net_raw', 'net_admin'):
        found = ask(host, '--run-dir', host.run_dir, prefix=['setpriv', f'--bounding-set=-{lacking}'])
        expect(found['uplinks'], 'note', 'CAP_NET_RAW and CAP_NET_ADMIN', 'sudo urxed --uplink af_packet:IFACE')


def check_port(host):
    """A socket that has RoCE's port is found, at any address."""
    for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
        with socket.socket(family, socket.SOCK_DGRAM) as taken:
            try:
                taken.bind((address, ROCE_PORT))
            except OSError:
                continue  # another program has it, or the host has no IPv6
            found = ask(host, '--run-dir', host.run_dir)
        if 'no socket has' in found['UDP 4791']['text']:
            raise Failure(f'{address}: {found["UDP 4791"]}')


def check_with_files(host, *commands, more=(), status=0):
    """The findings in a mount namespace, where the shell's commands have placed other files."""
    script = '; '.join([*commands, 'exec "$@"'])
    return ask(host, '--run-dir', host.run_dir, status=status, prefix=['unshare', '--mount', 'sh', '-ec', script, 'sh', *more])


def deny(number, error):
    """Makes a system call fail in this process and in the programs that it executes, as a container's filter does."""
    load, equal, ret = 0x20, 0x15, 0x06
    allow, fail = 0x7fff0000, 0x00050000
    code = b''.join(struct.pack('HBBI', *words) for words in (
        (load, 0, 0, 0), (equal, 0, 1, number), (ret, 0, 0, fail | error), (ret, 0, 0, allow)))
    program = struct.pack('HP', 4, ctypes.addressof(buffer := ctypes.create_string_buffer(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), f'no filter of system calls: {buffer}')


def check_copies(host):
    """A filter of system calls, and Linux' Yama, forbid copies from another process."""
    scope = ['mount -t tmpfs none /proc/sys/kernel', 'mkdir /proc/sys/kernel/yama', 'echo 2 >/proc/sys/kernel/yama/ptrace_scope']
    expect(check_with_files(host, 'true')['copies'], 'ok', 'copy WRITEs')
    expect(check_with_files(host, *scope)['copies'], 'ok', 'copy WRITEs')
    more = [sys.executable, __file__, '--deny']
    expect(check_with_files(host, *scope, more=more)['copies'], 'note', 'kernel.yama.ptrace_scope is 2',
           'sysctl -w kernel.yama.ptrace_scope=0')
    scope[-1] = scope[-1].replace('2', '3', 1)
    expect(check_with_files(host, *scope, more=more)['copies'], 'note', 'kernel.yama.ptrace_scope is 3')
    expect(check_with_files(host, 'mount -t tmpfs none /proc/sys/kernel', more=more)['copies'], 'note',
           'process_vm_readv fails (Operation not permitted)', 'docker run --cap-add SYS_PTRACE ...')


def check_kernel(host):
    """Devices of the kernel, and rdma_rxe that has RoCE's port."""
    expect(check_with_files(host, 'mount -t tmpfs none /sys/class')['kernel'], 'ok', 'the kernel has no RDMA device')
    found = check_with_files(host, 'mount -t tmpfs none /sys/class', 'mkdir -p /sys/class/infiniband/mlx5_0')
    expect(found['kernel'], 'ok', "the kernel's RDMA devices beside urxe's: mlx5_0")
    # Within `urxe run` the device of urxe is no device of the kernel.
    found = check_with_files(host, 'mount -t tmpfs none /sys/class', more=host.command([]))
    expect(found['kernel'], 'ok', 'the kernel has no RDMA device')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        try:
            taken.bind(('127.0.0.1', ROCE_PORT))
        except OSError:
            pass  # another program has it
        found = check_with_files(host, 'mount -t tmpfs none /sys/module', 'mkdir /sys/module/rdma_rxe')
        expect(found['UDP 4791'], 'note', "rdma_rxe is loaded and has RoCE's port", 'modprobe -r rdma_rxe')
        found = check_with_files(host, 'mount -t tmpfs none /sys/module')
        expect(found['UDP 4791'], 'ok', "a socket has RoCE's port", "ss -lunp 'sport = 4791'")


def check_providers(host):
    """libibverbs without the provider rxe, and no libibverbs."""
    found = check_with_files(host, 'mount -t tmpfs none /etc/libibverbs.d', status=1)
    expect(found['device'], 'fault', 'libibverbs has no provider rxe', 'apt-get install ibverbs-providers')
    library, = {os.path.realpath(path) for path in glob.glob('/usr/lib/*/libibverbs.so.1')}
    found = check_with_files(host, f'mount --bind /dev/null {library}', status=1)
    expect(found['device'], 'fault', 'libibverbs is not installed', 'apt-get install ibverbs-providers')


def check_noise(host):
    """libibverbs writes many lines before the probe's answer."""
    result = subprocess.run([host.urxe, 'doctor', '--run-dir', host.run_dir], capture_output=True, text=True, timeout=20 * BUSY,
                            env={**host.environment, 'IBV_DRIVERS': ':'.join(f'nosuchprovider{i}' for i in range(100))}, check=False)
    if result.returncode or 'programs have the device urxe0' not in result.stdout:
        raise Failure(f'with unknown providers: status {result.returncode}, {result.stdout}{result.stderr}')


def check_proc(host):
    found = check_with_files(host, 'mount -t tmpfs none /proc', status=1)
    expect(found['device'], 'fault', '/proc is not mounted', 'mount -t proc proc /proc')


def check_firewall(host):
    """Only chains of nftables at an interface are in the way of packet sockets."""
    table = "nft add table {0} t && nft add chain {0} t early '{{ type filter hook {1} priority 0; }}' && "

    def found_with(rules):
        return ask(host, '--run-dir', host.run_dir, prefix=[
            'unshare', '--net', 'sh', '-ec', f'ip link set lo up; {rules} exec "$@"', 'sh'])['firewall']
    expect(found_with(''), 'ok', 'do not concern packet sockets')
    expect(found_with(table.format('inet', 'input')), 'ok', 'do not concern packet sockets')
    expect(found_with(table.format('netdev', 'ingress device lo')), 'note', 'the chain early of the table t takes',
           'nft list ruleset netdev')
    # A user who may not list them.
    found = ask(host, '--run-dir', host.run_dir, prefix=['setpriv', '--bounding-set=-net_admin'])['firewall']
    expect(found, 'ok', 'for root only')


def check_mistakes(host):
    for arguments, word in ((['surplus'], 'no argument'), (['--frobnicate'], '--frobnicate'),
                            (['--run-dir'], 'needs a value')):
        result = call(host, *arguments)
        if result.returncode != 2 or word not in result.stderr or len(result.stderr.splitlines()) != 1:
            raise Failure(f'{arguments}: status {result.returncode}, {result.stderr}')
    with open('/dev/full', 'w', encoding='ascii') as full:
        result = subprocess.run([host.urxe, 'doctor', '--run-dir', host.run_dir], stdout=full,
                                stderr=subprocess.PIPE, text=True, env=host.environment, check=False)
    if result.returncode != 1 or 'cannot write' not in result.stderr:
        raise Failure(f'/dev/full: status {result.returncode}, {result.stderr}')


def run():
    if sys.argv[1] == '--deny':
        deny(PROCESS_VM_READV, errno.EPERM)
        os.execvp(sys.argv[2], sys.argv[2:])
    with Host(sys.argv[1]) as host:
        check_healthy(host)
        check_socket_uplink(sys.argv[1])
        check_link(sys.argv[1])
        check_names(sys.argv[1])
        check_interfaces(host)
        check_private(host)
        check_run_dir(host)
        check_faults(host)
        check_no_run_dir(host)
        check_limits(host)
        check_uplinks(host)
        check_port(host)
        check_noise(host)
        if not subprocess.run(['unshare', '--mount', '--net', 'true'], capture_output=True, check=False).returncode:
            check_copies(host)
            check_kernel(host)
            check_providers(host)
            check_proc(host)
            check_firewall(host)
        check_mistakes(host)


main(run)
