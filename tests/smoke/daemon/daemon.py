#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Start and end of daemons: private daemons, stale run directories, options, users, and hostile clients."""
import contextlib
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, Pair, main, skip, succeed, until  # noqa: E402

PRIVATE_LINGER_SECONDS = 5
ANOTHER_DAEMON = 3  # exit status of a daemon that does not serve because another one does


def check_one_daemon_for_all(build):
    """Many programs that start at once on an empty run directory share one private daemon."""
    with Host(build, daemon=False) as host:
        programs = [host.start('sleep', '2') for _ in range(8)]
        until(10, host.answers, lambda: 'no private daemon came up')
        pid = host.daemon_pid()
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        for program in programs:
            succeed(program, 10)
            if program.errors():
                raise Failure(f'it was no error that another started it: {program.errors()}')
        if host.daemon_pid() != pid:
            raise Failure('a second private daemon took over from the first')
        check_private_end(host, pid)


def check_private_end(host, pid):
    """A private daemon stays while a program runs, then ends by itself and leaves nothing."""
    seconds = PRIVATE_LINGER_SECONDS + 3
    earliest = time.monotonic() + seconds + PRIVATE_LINGER_SECONDS  # the earliest end of the daemon
    succeed(host.start('sleep', str(seconds)), seconds)
    time.sleep(PRIVATE_LINGER_SECONDS / 2)
    if not os.path.exists(f'/proc/{pid}') and time.monotonic() < earliest:
        raise Failure('the private daemon did not linger behind its last program')
    until(PRIVATE_LINGER_SECONDS + 5, lambda: not os.path.exists(f'/proc/{pid}'),
          lambda: 'the private daemon does not end by itself')
    check_left_nothing(host)


def check_left_nothing(host, but=()):
    left = [name for name in os.listdir(host.run_dir)
            if name not in ('urxed.log', 'urxed.lock', *but)] if os.path.isdir(host.run_dir) else []
    if left:
        raise Failure(f'urxed left {left} in its run directory')


def check_stale_directory(build):
    """A new daemon starts in the run directory of a killed one."""
    with Host(build) as host:
        host.daemon.kill()
        if not os.listdir(host.run_dir):
            raise Failure('a killed daemon left no files, so the test checks nothing')
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)  # with a private daemon
        host.kill_private_daemon()
        host.start_daemon()
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        host.daemon.kill()
        host.run('true')  # with a private daemon again, which removes the files of all of them
        until(PRIVATE_LINGER_SECONDS + 5, lambda: not os.path.exists(host.run_dir),
              lambda: f'a private daemon left {os.listdir(host.run_dir)}')


def check_removed_directory(build):
    """A private daemon whose run directory was removed leaves that of the next daemon alone when it ends."""
    with Host(build, daemon=False) as host:
        host.run('true')
        first = host.daemon_pid()
        shutil.rmtree(host.run_dir)
        program = host.start('sleep', '15')
        until(10, host.answers, lambda: 'no second daemon came up')
        files = set(os.listdir(host.run_dir))
        until(PRIVATE_LINGER_SECONDS + 10, lambda: not os.path.exists(f'/proc/{first}'), lambda: 'the first daemon does not end')
        removed = files - set(os.listdir(host.run_dir)) if os.path.exists(host.run_dir) else files
        if not program.running() or removed:
            raise Failure(f'the first daemon removed {removed}')
        host.run('true')


def check_second_refused(build):
    with Host(build) as host:
        second = host.spawn(host.daemon.argv[-4:])
        status = second.wait(5)
        text = second.errors()
        if status != ANOTHER_DAEMON or len(text.splitlines()) != 1:
            raise Failure(f'a second daemon: status {status}, {text!r}')
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)


def await_counter(host, line):
    """Asks the daemon for its counters by SIGUSR1 until the line is among them: it may not have seen all frames at first."""
    def printed():
        host.daemon.kill(signal.SIGUSR1)
        return re.search(f'^urxed: {line}$', host.daemon.errors(), re.MULTILINE)
    until(5, printed, lambda: f'SIGUSR1 does not show {line}: {host.daemon.errors()}')


def check_counters(build):
    """On SIGUSR1 the daemon prints the counters of vNICs, also of ended processes, and the drops."""
    with Host(build) as host:
        # The first datagram to a process goes through the switch, the others through the inbox.
        for _ in range(2):
            Pair(host, host, ['ibv_ud_pingpong', '-n', '10']).finish(20)
        await_counter(host, r'vnic tx_frames: ([2-9]|\d\d+)')


def check_clean_end(build):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Host(build) as host:
            host.daemon.kill(number)
            succeed(host.daemon, 5)
            check_left_nothing(host)


def check_configuration(build):
    """Options of the command line add to those of the configuration file, or replace them."""
    with Host(build, daemon=False) as host:
        path = os.path.join(host.top, 'urxe.conf')
        with open(path, 'w') as config:
            config.write('# a host\n  address = 192.0.2.1/24  # first\n\tforeground yes\n'
                         'pkey 0x8001\npkey=0xffff\nprivate no\nrun-dir /proc/nowhere\n')
        host.start_daemon(['--config', path, '--address', '192.0.2.2/24', '--pkey', '0x0002'])
        text = host.run('ibv_devinfo', '-v')
        if re.findall(r'::ffff:(192\.0\.2\.\d+),', text) != ['192.0.2.1', '192.0.2.2']:
            raise Failure(f'wrong addresses of file and command line: {text}')
        with open(os.path.join(host.run_dir, 'sys/class/infiniband/urxe0/ports/1/pkeys/2')) as pkey:
            if pkey.read() != '0x0002\n':
                raise Failure('the P_Key of the command line does not follow those of the file')


def as_user(name, group, *argv):
    """The command line that runs argv as an ordinary user with one group."""
    user, gid = pwd.getpwnam(name).pw_uid, grp.getgrnam(group).gr_gid
    return ['setpriv', f'--reuid={user}', f'--regid={gid}', '--clear-groups', '--inh-caps=-all',
            *argv]


def directory_of(host, *argv):
    """The run directory that `urxe run` chooses for a user."""
    program = host.spawn(argv + (host.urxe, 'run', '--', 'printenv', 'URXE_DIR'))
    succeed(program, 20)
    return program.output().strip()


@contextlib.contextmanager
def namespace(name):
    """Creates a network namespace; returns the prefix of a command line in it. Skips the test without permission."""
    made = subprocess.run(['ip', 'netns', 'add', name], capture_output=True, text=True, check=False)
    inside = ['ip', 'netns', 'exec', name]
    try:
        if made.returncode == 0:
            made = subprocess.run(inside + ['true'], capture_output=True, text=True, check=False)
        if made.returncode:
            skip(f'no network namespace: {made.stderr.strip()}')
        yield inside
    finally:
        subprocess.run(['ip', 'netns', 'delete', name], stderr=subprocess.DEVNULL, check=False)


def check_system(build):
    """Root's daemon serves the members of its group; other users start daemons of their own."""
    if os.getuid():
        skip('only root has a daemon for all users')
    name = f'system-{os.getpid()}'
    with namespace(name) as inside:
        with Host(build, daemon=False, prefix=inside) as host:
            inode = os.stat(f'/run/netns/{name}').st_ino
            host.run_dir = f'/run/urxe/{inode}'
            member, stranger = (as_user('nobody', group) for group in ('games', 'nogroup'))
            host.daemon = host.spawn([os.path.join(host.top, 'tools/urxed'), '--foreground',
                                      '--group', 'games'])
            until(10, host.answers, lambda: f'no answer: {host.daemon.describe()}')
            with open(os.path.join(host.run_dir, 'urxed.pid')) as pid:
                if int(pid.read()) != host.daemon.process.pid:
                    raise Failure('urxed.pid does not contain the pid of urxed')
            if directory_of(host) != host.run_dir or directory_of(host, *member) != host.run_dir:
                raise Failure('root or a member of the group gets another run directory')
            own = directory_of(host, *stranger)
            if own != f'/tmp/urxe-{pwd.getpwnam("nobody").pw_uid}/{inode}':
                raise Failure(f'a user without permission gets run directory {own}')
            devices = host.spawn(member + [host.urxe, 'run', '--', 'ibv_devinfo', '-v'])
            succeed(devices, 20)
            refused = host.spawn(stranger + [host.urxe, 'run', '--run-dir', host.run_dir, '--', 'true'])
            if refused.wait(20) != 2 or 'does not admit this user: choose another --run-dir, or let root start its urxed with --group' not in refused.errors():
                raise Failure(f'no remedy for a stranger: {refused.describe()}')
            if 'PORT_ACTIVE' not in devices.output():
                raise Failure(f'no port for a member of the group: {devices.describe()}')
            if directory_of(host, *member) != own:
                raise Failure('a daemon of the own user does not come before the one of root')
            host.daemon.kill()
            host.daemon = host.spawn(host.daemon.argv[len(host.prefix):])
            until(10, host.answers, lambda: f'no answer: {host.daemon.describe()}')
            host.daemon.kill(signal.SIGTERM)
            succeed(host.daemon, 5)
            if os.path.exists(host.run_dir):
                raise Failure(f'urxed left {os.listdir(host.run_dir)}')
            until(PRIVATE_LINGER_SECONDS + 5, lambda: not os.path.exists(own),
                  lambda: f'the private daemon left {own}')


WITHOUT_LOCKED_MEMORY = ['prlimit', '--memlock=65536', 'setpriv', '--bounding-set=-ipc_lock,-sys_resource']


def check_interface(build):
    """A missing, forbidden or busy interface gives one error line, and the daemon leaves no files."""
    if os.getuid():
        skip('packet sockets need root')
    name = f'interface-{os.getpid()}'
    with namespace(name) as inside:
        subprocess.run([*inside, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1'],
                       check=True)
        subprocess.run([*inside, 'ip', 'addr', 'add', '192.0.2.1/24', 'dev', 'eth0'], check=True)
        subprocess.run([*inside, 'ip', 'link', 'add', 'eth2', 'mtu', '200', 'type', 'veth'], check=True)
        subprocess.run([*inside, 'ip', 'link', 'add', 'eth3', 'type', 'veth', 'peer', 'name', 'eth4'],
                       check=True)
        subprocess.run([*inside, 'ip', 'addr', 'add', '198.51.100.9/24', 'dev', 'eth4'], check=True)
        # Without ARP: the kernel would answer for the address of eth4, too.
        subprocess.run([*inside, 'ip', 'link', 'add', 'eth5', 'type', 'veth', 'peer', 'name', 'eth6', 'arp', 'off'], check=True)
        for link in ('eth0', 'eth1', 'eth2', 'veth0', 'eth3', 'eth4', 'eth5', 'eth6'):
            subprocess.run([*inside, 'ip', 'link', 'set', link, 'up'], check=True)
        uplink = ['--uplink', 'af_packet:eth0']
        with Host(build, prefix=inside, arguments=uplink) as host:
            urxed = [os.path.join(host.top, 'tools/urxed'), '--foreground', '--run-dir']
            elsewhere = os.path.join(host.top, 'elsewhere')
            for user, argv, sentence in (
                    ([], uplink, r'of eth0: .* another urxed has the interface, or two uplinks name it'),
                    ([], ['--uplink', 'af_packet:eth7'], 'no interface eth7'),
                    # Without the prefix that urxed adds.
                    ([], ['--uplink', 'af_xdp:eth7'], '^urxed: af_xdp:eth7: .* no interface eth7'),
                    ([], ['--uplink', 'af_packet:eth1', '--mtu', '4000'],
                     'af_packet:eth1 carries 1500 bytes, less than the mtu of 4000$'),
                    ([], ['--uplink', 'af_packet:eth3', '--address', '198.51.100.9/24'],
                     'address 198.51.100.9 is already served on eth3 by another host, ..:'),
                    # In the network of another member than the first.
                    ([], ['--uplink', 'af_packet:eth5', '--uplink', 'af_packet:eth3', '--bond', 'balance',
                          '--address', '198.51.100.9/24'],
                     'address 198.51.100.9 is already served on eth3 by another host, ..:'),
                    ([], ['--uplink', 'af_packet:eth2'],
                     "af_packet:eth2 carries 200 bytes, less than RoCE's minimum of 348$"),
                    (as_user('nobody', 'nogroup'), ['--uplink', 'af_packet:eth1'],
                     'af_packet:eth1: needs root, or CAP_NET_RAW and CAP_NET_ADMIN$'),
                    (as_user('nobody', 'nogroup'), ['--uplink', 'tap:eth9'],
                     'tap:eth9: needs root, or CAP_NET_ADMIN$'),
                    (WITHOUT_LOCKED_MEMORY, ['--uplink', 'af_packet:eth1'], r'limit of locked memory \(ulimit -l\)'),
                    (WITHOUT_LOCKED_MEMORY, ['--uplink', 'af_xdp:eth1'], r'limit of locked memory \(ulimit -l\)')):
                refused = host.spawn([*user, *urxed, f'/tmp/urxe-{name}' if user else elsewhere,
                                      *argv])
                lines = [refused.wait(10), *refused.errors().splitlines()]
                if lines[0] != 1 or len(lines) != 2 or not re.search(sentence, lines[1]):
                    raise Failure(f'not one sentence as {sentence}: {lines}')
                if os.path.exists(elsewhere) or os.path.exists(f'/tmp/urxe-{name}'):
                    raise Failure('urxed left its run directory')
            host.run('ibv_devinfo')


def check_strangers(build):
    """Connections that send nothing, garbage or too much do no harm."""
    with Host(build) as host:
        path = os.path.join(host.run_dir, 'urxed.sock')
        for text in (None, b'\0', b'\xff' * 4, b'\1\0\0\0' * 3, os.urandom(64), b'\1' * 60000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(path)
                if text:
                    client.send(text)
                Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        if not host.daemon.running():
            raise Failure(f'urxed died: {host.daemon.describe()}')


# Connects as often as the daemon permits, up to a maximum, and keeps the connections.
GREEDY = """
import socket, sys
connections = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.connect(sys.argv[1])
    connections.append(one)
print('connected', flush=True)
sys.stdin.read()
"""


def check_greedy(build):
    """A user with as many connections as possible leaves resources for other users."""
    if os.getuid():
        skip('only root has a daemon for all users')
    limit = 800
    with Host(build, daemon=False) as host:
        host.prefix = ['prlimit', f'--nofile={limit}']
        host.start_daemon(['--group', 'games'])
        host.prefix = []
        host.spawn(as_user('nobody', 'games', sys.executable, '-c', GREEDY,
                           os.path.join(host.run_dir, 'urxed.sock'), str(limit)),
                   stdin=subprocess.PIPE)
        until(30, lambda: 'connections' in host.daemon.errors(), lambda: 'nobody is refused')
        for other in ('daemon', 'root'):
            host.prefix = as_user(other, 'games')
            host.run('ibv_devinfo')


def read_status(pid, thread):
    with open(f'/proc/{pid}/task/{thread}/status') as status:
        return dict(line.rstrip('\n').split(':\t', 1) for line in status if ':\t' in line)


CAP_DAC_OVERRIDE, CAP_SYS_PTRACE = 1 << 1, 1 << 19
KEPT = {'urxed-fds': 0, 'urxed-userns': CAP_SYS_PTRACE, 'urxed-vms': CAP_DAC_OVERRIDE}


def check_process(pid, capabilities):
    """All threads of a process have these capabilities at most, no way to more, and a filter."""
    for thread in os.listdir(f'/proc/{pid}/task'):
        status = read_status(pid, thread)
        if int(status['CapPrm'], 16) & ~capabilities:
            raise Failure(f'{status["Name"]} has capabilities {status["CapPrm"]}')
        if status['NoNewPrivs'] != '1' or status['Seccomp'] != '2':
            raise Failure(f'{status["Name"]} can get privileges, or make any system call')


def check_privileges(build):
    """Root's daemon, its threads and its helpers have dropped what they do not need."""
    with Host(build, daemon=False) as host:
        host.start_daemon(['--uplink', f'qemu:{host.run_dir}/vm'])
        # It serves when it has dropped them.
        host.run('ibv_devinfo')
        pid = host.daemon.process.pid
        check_process(pid, 0)
        with open(f'/proc/{pid}/task/{pid}/children') as children:
            helpers = [int(child) for child in children.read().split()]
        names = {read_status(helper, helper)['Name'] for helper in helpers}
        if names != (set(KEPT) if os.getuid() == 0 else {'urxed-fds'}):
            raise Failure(f'not the helpers that urxed needs: {names}')
        for helper in helpers:
            check_process(helper, KEPT[read_status(helper, helper)['Name']])
            if len(os.listdir(f'/proc/{helper}/fd')) > 5:
                raise Failure('a helper has inherited descriptors')
        host.daemon.kill(signal.SIGTERM)
        succeed(host.daemon, 5)
        # The program's queue pair numbers may not go to another user soon.
        check_left_nothing(host, but=['urxed.leases'])
        until(10, lambda: not any(os.path.exists(f'/proc/{helper}/exe') for helper in helpers),
              lambda: 'a helper has outlived the daemon')


# No other test has a daemon of this user, which would find its directory taken.
SQUATTED_USER = 'games'


def check_squatted(build):
    """Another user has made /tmp/urxe-UID: the run directory lies in the home directory."""
    if os.getuid():
        skip('only root can be two users')
    name = f'squatted-{os.getpid()}'
    uid = pwd.getpwnam(SQUATTED_USER).pw_uid
    squatted = f'/tmp/urxe-{uid}'
    with namespace(name) as inside:
        with Host(build, daemon=False, prefix=inside) as host:
            try:
                os.mkdir(squatted)
            except FileExistsError:
                skip(f'{squatted} exists')
            try:
                home = os.path.join(host.top, 'home')
                os.mkdir(home)
                os.chown(home, uid, -1)
                host.environment['HOME'] = home
                user = as_user(SQUATTED_USER, 'nogroup')
                own = directory_of(host, *user)
                if os.path.dirname(own) != f'{home}/.cache/urxe':
                    raise Failure(f'the run directory is {own}')
                host.run_dir = own
                program = host.spawn(user + [host.urxe, 'run', '--', 'ibv_devinfo'])
                succeed(program, 20)
                if f'{squatted} belongs to user 0' not in program.errors():
                    raise Failure(f'urxe does not say why: {program.describe()}')
                until(PRIVATE_LINGER_SECONDS + 5, lambda: not os.path.exists(own),
                      lambda: f'the private daemon left {own}')
            finally:
                os.rmdir(squatted)


def check_rogue(build):
    """A process that breaks the rules of the vNIC gets an event, and the log has the reason."""
    with Host(build) as host:
        program = host.spawn([os.path.join(build, 'tests/smoke/rogue_nic'), host.run_dir])
        succeed(program, 10)
        pid = program.process.pid
        until(5, lambda: f'process {pid} is disconnected: its NIC' in host.daemon.errors(),
              lambda: f'urxed does not log the reason: {host.daemon.errors()}')
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)


# The frames of forger.c, by drop counter.
FORGED = {'spoofed_mac': 2, 'spoofed_ip': 4, 'spoofed_qpn': 1, 'management': 2, 'unregistered': 3,
          'not_roce': 1, 'malformed': 1}


def check_forger(build):
    """Forged frames arrive nowhere, and each is counted by its reason."""
    with Host(build) as host:
        succeed(host.spawn([os.path.join(build, 'tests/smoke/forger'), host.run_dir]), 20)
        for reason, times in FORGED.items():
            await_counter(host, f'dropped {reason}: {times}')


def check_trespass(build):
    """A user neither keeps another user from connecting nor sends into that user's queue pairs."""
    if os.getuid():
        skip('only root has a daemon for all users')
    with Host(build, daemon=False) as host:
        host.start_daemon(['--group', 'games'])
        succeed(host.spawn([os.path.join(build, 'tests/smoke/trespass'), host.run_dir]), 60)
        await_counter(host, 'dropped not_mutual: 4')


def check_parting(build):
    """A queue pair that ends acknowledges a repeated message once more (verbs_parting.c)."""
    with Host(build) as host:
        host.run(os.path.join(build, 'tests/smoke/verbs_parting'), host.run_dir)


CHECKS = {
    'private': check_one_daemon_for_all,
    'stale_directory': check_stale_directory,
    'removed_directory': check_removed_directory,
    'second_refused': check_second_refused,
    'counters': check_counters,
    'clean_end': check_clean_end,
    'configuration': check_configuration,
    'system': check_system,
    'interface': check_interface,
    'strangers': check_strangers,
    'greedy': check_greedy,
    'privileges': check_privileges,
    'squatted': check_squatted,
    'rogue': check_rogue,
    'forger': check_forger,
    'trespass': check_trespass,
    'parting': check_parting,
}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
