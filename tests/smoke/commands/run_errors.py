#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe run` and `urxed` answer each mistake by one line that tells the remedy."""
import errno
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, main  # noqa: E402
from refusing_daemon import refusing_daemon  # noqa: E402


def call(argv, environment, **options):
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=20 * BUSY,
                          check=False, **options)


def refuse(host, argv, status, pattern, **variables):
    """The command must fail with this status and one matching line on stderr."""
    result = call(argv, {**host.environment, **variables}, stdin=subprocess.DEVNULL)
    lines = result.stderr.splitlines()
    if (result.returncode != status or result.stdout or len(lines) != 1
            or not re.search(pattern, lines[0])):
        raise Failure(f'{" ".join(argv)}: status {result.returncode}, not {status}, and a line '
                      f'like {pattern}:\n{result.stdout}{result.stderr}')


def accept(host, argv, stdout, status=0, **options):
    result = call(argv, host.environment, **options)
    if result.returncode != status or not re.search(stdout, result.stdout):
        raise Failure(f'{" ".join(argv)}: status {result.returncode}:\n'
                      f'{result.stdout}{result.stderr}')


def check_mistakes(host):
    run = [host.urxe, 'run', '--run-dir', host.run_dir]
    refuse(host, [host.urxe, 'run'], 2, 'command')
    refuse(host, run + ['--'], 2, 'command')
    refuse(host, run + ['--frobnicate', '--', 'true'], 2, '--frobnicate')
    refuse(host, run + ['-xy', '--', 'true'], 2, 'option -xy;')
    refuse(host, run + ['--transport', 'frob', '--', 'true'], 2, "not 'frob'")
    refuse(host, run + ['--', 'true'], 2, "URXE_LOG is none, error, warning, info or debug, not 'frob'", URXE_LOG='frob')
    refuse(host, run + ['--', 'true'], 2, "URXE_WAY is hca, engine or auto, not 'frob'", URXE_WAY='frob')
    for seconds in ('frob', '-1', '30s', '30.0', '3601'):
        refuse(host, run + ['--', 'true'], 2, f"URXE_RECONNECT_S is a number of seconds up to 3600, not '{seconds}'",
               URXE_RECONNECT_S=seconds)
    accept(host, ['env', 'URXE_RECONNECT_S=30', *run, '--', 'echo', 'runs'], '^runs$')
    refuse(host, [host.urxe, 'run', '--run-dir'], 2, 'option --run-dir needs')
    refuse(host, [host.urxe, 'replay', 'file', '--frobnicate'], 2, '--frobnicate')
    refuse(host, [host.urxe, 'replay', 'file', '-xy'], 2, 'option -xy;')
    refuse(host, [host.urxe, 'replay', '--json=1', 'file'], 2, 'option --json=1 takes no value')
    refuse(host, [host.urxe, 'replay', '--engine', host.top], 1, 'Is a directory')
    refuse(host, [host.urxe, 'frobnicate'], 2, 'frobnicate')
    refuse(host, run + ['--', 'no-such-program-anywhere'], 127, 'no-such-program-anywhere')
    refuse(host, run + ['--', '/etc/passwd'], 126, '/etc/passwd')
    refuse(host, [host.urxe, 'run', '--run-dir', '/proc/nowhere', '--', 'true'], 2, '/proc/nowhere')
    refuse(host, [host.urxe, 'run', '--run-dir', '/tmp/' + 'x' * 120, '--', 'true'], 2,
           'long|108|107')


def check_daemon_mistakes(host):
    urxed = os.path.join(host.top, 'tools/urxed')
    elsewhere = os.path.join(host.top, 'elsewhere')
    base = [urxed, '--foreground', '--run-dir', elsewhere]
    for argv, pattern in ((['--frobnicate'], '--frobnicate'), (['surplus'], 'surplus'),
                          (['surplus', '-xy'], 'option -xy;'),
                          (['--uplink', 'frob:eth0'], 'frob'),
                          (['--uplink', 'af_packet:no-such-if'], 'no-such-if'),
                          (['--private=maybe'], 'private is yes or no'),
                          (['--run-dir='], 'run-dir needs a value'),
                          (['--pkey', '0x8000'], 'pkey 0x8000 is not'),
                          (['--mtu', '300'], 'mtu 300 is not a number of bytes from 348 to 4200'),
                          (['--mtu', '9000'], 'mtu 9000 is not'),
                          (['--group', 'no-such-group'], 'group no-such-group does not exist'),
                          (['--address', '192.0.2.1/24'] * 2, '192.0.2.1/24 is given twice'),
                          (sum((['--address', f'192.0.2.{i}/24'] for i in range(1, 18)), []),
                           'address 192.0.2.17/24 exceeds the limit'),
                          (['--fault', 'drop=lots', '--uplink', 'tap:x'], 'drop is a fraction'),
                          (['--fault', 'drop=1%'], 'needs an uplink'),
                          (['--bond', '802.3ad'], 'bond 802.3ad is not a mode: active-backup or balance'),
                          (['--bond', 'balance'], 'needs at least two uplinks to an Ethernet, but has 0$'),
                          (['--bond', 'balance', '--uplink', 'tap:x'], 'but has 1$'),
                          (['--bond', 'balance', '--uplink', 'qemu:/x', '--uplink', 'vhost:/y'],
                           'but has 0; virtual machines do not count'),
                          (['--bond', 'balance', '--bond', 'balance'], '--bond is given twice'),
                          (['--address', '192.0.2.1/24@5000'], r'optional VLAN \(1 to 4094\)'),
                          *((['--address', f'{ip}/8'], f'{ip}/8 is not a host.s unicast address')
                            for ip in ('300.1.2.3', '127.0.0.1', '::', '::1', 'ff02::1', '0.0.0.0'))):
        result = call(base + argv, host.environment, stdin=subprocess.DEVNULL)
        lines = result.stderr.splitlines()
        if result.returncode <= 0 or len(lines) != 1 or not re.search(pattern, lines[0]):
            raise Failure(f'urxed {argv}: status {result.returncode}:\n{result.stderr}')
        if os.path.exists(os.path.join(elsewhere, 'urxed.sock')):
            raise Failure(f'urxed {argv} left a socket behind')


def check_configuration(host):
    """An error in the configuration file names file and line, and no daemon starts."""
    urxed = os.path.join(host.top, 'tools/urxed')
    elsewhere = os.path.join(host.top, 'configured')
    path = os.path.join(host.top, 'urxe.conf')
    argv = [urxed, '--config', path, '--foreground', '--run-dir', elsewhere]
    refuse(host, argv, 2, 'cannot read .*urxe.conf: No such file')
    for text, pattern in (('# one\n\nfoo bar\n', r'urxe\.conf:3: unknown option foo$'),
                          ('uplink\n', r'urxe\.conf:1: option uplink needs a value, SPEC$'),
                          ('private perhaps\n', r'urxe\.conf:1: .*yes or no'),
                          ('\naddress 192.0.2.1\n', r'urxe\.conf:2: address 192.0.2.1 is not'),
                          ('bond = lacp\n', r'urxe\.conf:1: bond lacp is not a mode'),
                          ('bond balance\nbond balance\n', r'urxe\.conf:2: .* already set on line 1'),
                          ('pkey=1\n', r'urxe\.conf:1: pkey 1 is not'),
                          ('run-dir a\nrun-dir b\n', r'urxe\.conf:2: .* already set on line 1'),
                          ('config other\n', r'urxe\.conf:1: unknown option config'),
                          ('#' * 70000, r'urxe\.conf is longer'),
                          ('uplink af_packet:no-such-if # gone\n', 'interface no-such-if$')):
        with open(path, 'w') as config:
            config.write(text)
        refuse(host, argv, 1 if 'no-such-if' in text else 2, pattern)
        if os.path.exists(elsewhere):
            raise Failure(f'urxed left {elsewhere} behind for {text[:60]!r}')


def check_missing(host, part):
    """The error names the missing part of the installation."""
    path = os.path.join(host.top, part)
    os.rename(path, path + '.gone')
    refuse(host, [host.urxe, 'run', '--run-dir', os.path.join(host.top, 'run2'), '--', 'true'], 2,
           os.path.basename(part))
    os.rename(path + '.gone', path)


def check_slow_start(host):
    """`urxe run` uses the daemon that it has started, also if the start took longer than 10 s."""
    urxed = os.path.join(host.top, 'tools/urxed')
    os.rename(urxed, urxed + '.real')
    with open(urxed, 'w', encoding='ascii') as script:
        script.write(f'#!/bin/sh\nsleep 11\nexec {urxed}.real "$@"\n')
    os.chmod(urxed, 0o755)
    accept(host, [host.urxe, 'run', '--run-dir', os.path.join(host.top, 'slow'), '--', 'echo', 'runs'], '^runs$')
    os.rename(urxed + '.real', urxed)


def check_other_roots(host):
    """Root that may not write to /run has a run directory elsewhere: of a user namespace, of a container with read-only files."""
    read_only = ['unshare', '--mount', '--net', 'sh', '-c', 'mount -t tmpfs -o ro none /run && exec "$@"', 'sh']
    user_namespace = ['unshare', '--user', '--map-root-user', '--net']
    if not os.getuid():
        user_namespace = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', *user_namespace]
    for prefix in (user_namespace, read_only):
        if call([*prefix, 'true'], host.environment).returncode:
            continue
        own = os.path.join(host.top, f'own{len(prefix)}')
        environment = {**host.environment, 'XDG_RUNTIME_DIR': own}
        os.mkdir(own)
        if not os.getuid() and prefix is user_namespace:
            os.chown(own, 65534, 65534)
        result = call([*prefix, host.urxe, 'run', '--', 'sh', '-c', 'echo $URXE_DIR; ibv_devices'], environment)
        if result.returncode or not result.stdout.startswith(f'{own}/urxe/') or 'urxe0' not in result.stdout:
            raise Failure(f'{prefix}: status {result.returncode}, {result.stdout}{result.stderr}')


# A server that keeps its real user. Its exit status tells a program that finds no device.
GIVE_UP_ROOT = 'import os; os.setegid(65534); os.seteuid(65534); os.listdir("/sys/class/infiniband_verbs"); exit(1)'


def check_reasons(host):
    """The library tells in one line why a program cannot open the device."""
    reasons = [(['prlimit', f'--nofile={number}'], ['ibv_devinfo'], 'Too many open files') for number in (10, 12, 14)]
    if not os.getuid():
        os.chmod(host.run_dir, 0o711)  # as urxed makes it
        reasons += [([], inner, f'{host.run_dir}, named by URXE_DIR, does not admit .*--group')
                    for inner in (['setpriv', '--reuid=65534', '--clear-groups', 'ibv_devinfo'],
                                  [sys.executable, '-c', GIVE_UP_ROOT])]
    for prefix, inner, pattern in reasons:
        result = call([*prefix, *host.command(inner)], host.environment)
        lines = [line for line in result.stderr.splitlines() if line.startswith('urxe')]
        if not result.returncode or len(lines) != 1 or not re.search(pattern, lines[0]):
            raise Failure(f'{prefix}, {inner}: status {result.returncode}, not one line like {pattern}: {result.stderr}')


def check_other_version(host):
    """`urxe run` and the library report a daemon of another build."""
    open_device = 'said=$(ibv_devinfo 2>&1) || { echo "$said" | grep "^urxe" >&2; exit 3; }'
    for number, (statuses, status, pattern) in enumerate((
            ([errno.EPROTO], 2, 'the urxed in .* is of another version than this urxe'),
            # The second daemon answers when the program opens the device.
            ([errno.EPERM, errno.EPROTO], 3,
             'cannot attach to urxed in .*: it is of another version than this liburxe'))):
        run_dir = os.path.join(host.top, f'version{number}')
        os.mkdir(run_dir, 0o700)
        for tree in ('sys', 'dev'):
            os.symlink(os.path.join(host.run_dir, tree), os.path.join(run_dir, tree))
        with refusing_daemon(run_dir, statuses):
            refuse(host, [host.urxe, 'run', '--run-dir', run_dir, '--', 'sh', '-c', open_device],
                   status, pattern)


def check_passes_through(host):
    """`urxe run` passes status, arguments, standard input and output of the command through."""
    accept(host, [host.urxe], 'run', status=call([host.urxe], host.environment).returncode)
    accept(host, host.command(['sh', '-c', 'exit 7']), '^$', status=7)
    accept(host, host.command(['sh', '-c', 'kill -9 $$']), '^$', status=-9)
    accept(host, host.command(['cat']), '^heard$', input='heard')
    accept(host, host.command(['printf', '%s|', '--', 'a b', '']), r'^--\|a b\|\|$')
    accept(host, host.command(['env', '--version']), 'coreutils')


def check_lost_output(host):
    """A command whose output does not fit the disk fails."""
    sim = [host.urxe, 'sim', '--messages', '2', '--size', '8']
    path = os.path.join(host.top, 'frames.pcap')
    accept(host, [*sim, '--pcap', path], '')
    for argv in (sim, [*sim, '--json'], [*sim, '--seeds', '2'], [host.urxe, 'replay', path],
                 [host.urxe, 'replay', path, '--json'], [host.urxe, 'show', '--run-dir', host.run_dir, 'host'],
                 [host.urxe, '--version'], [host.urxe, 'run', '--help'],
                 [os.path.join(host.top, 'tools/urxed'), '--help']):
        with open('/dev/full', 'w', encoding='ascii') as full:
            result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
                                    timeout=20 * BUSY, env=host.environment, check=False)
        if result.returncode != 1 or not re.fullmatch('urxed?: cannot write to standard output\n', result.stderr):
            raise Failure(f'{argv}: status {result.returncode}, {result.stderr}')


def check_ignored_children(host):
    """Exit statuses are right under a parent that ignores SIGCHLD, and CMD inherits what `urxe run` has inherited."""
    ignoring = [sys.executable, '-c', 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])']
    refuse(host, [*ignoring, os.path.join(host.top, 'tools/urxed'), '--run-dir', '/proc/nowhere'], 1, '/proc/nowhere')
    refuse(host, [*ignoring, host.urxe, 'run', '--run-dir', '/proc/nowhere', '--', 'true'], 2, '/proc/nowhere')
    accept(host, [*ignoring, host.urxe, 'doctor', '--run-dir', host.run_dir], 'programs have the device urxe0')
    accept(host, [*ignoring, *host.command(['grep', 'SigIgn', '/proc/self/status'])], r'^SigIgn:\s+[0-9a-f]*1[0-9a-f]{4}$')


def check_closed(host):
    """`urxe run` works without standard input, output and error, and starts a daemon."""
    for number, closed in enumerate(('<&-', '>&-', '<&- >&-', '<&- >&- 2>&-')):
        run_dir = os.path.join(host.top, f'closed{number}')
        accept(host, ['sh', '-c', f'exec "$@" {closed}', 'sh', host.urxe, 'run', '--run-dir', run_dir,
                      '--', 'sh', '-c', 'exit 7'], '^$', status=7)


def run():
    with Host(sys.argv[1]) as host:
        check_mistakes(host)
        check_daemon_mistakes(host)
        check_configuration(host)
        check_missing(host, 'verbs/liburxe.so')
        check_missing(host, 'tools/urxed')
        check_slow_start(host)
        check_other_roots(host)
        check_reasons(host)
        check_other_version(host)
        check_passes_through(host)
        check_lost_output(host)
        check_ignored_children(host)
        check_closed(host)


main(run)
