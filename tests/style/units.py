#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks that the systemd units confine the daemon, and still allow what the daemon allows itself.

    units.py SOURCE_ROOT

Only systemd-analyze can tell which system calls a group such as @system-service has. Without systemd-analyze the
calls of groups are not checked.
"""
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
SKIPPED = 77

SECCOMP = ['NoNewPrivileges', 'MemoryDenyWriteExecute', 'RestrictAddressFamilies', 'SystemCallArchitectures',
           'SystemCallFilter', 'RestrictNamespaces']
# Each unit: its directives, and what the daemon may use but the unit need not allow.
UNITS = {
    'urxed.service.in': (SECCOMP + ['PrivateTmp', 'ProtectSystem', 'CapabilityBoundingSet'], set()),
    # An ordinary user has no right to these.
    'urxed-user.service.in': (SECCOMP, {'bpf', 'AF_PACKET', 'AF_XDP'}),
}
# Calls of the process of a vhost: port before its filter (tools/urxed/vhost/vhost_sandbox.c). None of these may depend
# on a group, because the port works without them, but unconfined.
SANDBOX_CALLS = {'chroot'}
# In @system-service; root's unit has RestrictNamespaces=yes beside it, and root's process needs no user namespace.
NAMESPACE_CALLS = {'unshare'}


def read(path):
    return (root / path).read_text(encoding='utf-8')


def directives(unit):
    """The values of each directive, in order."""
    found = {}
    for line in read(f'tools/dist/{unit}').splitlines():
        name, equals, value = line.partition('=')
        if equals and not line.startswith('#'):
            found.setdefault(name, []).append(value)
    return found


def daemon_calls():
    """The system calls that the filters of the daemon and of the process of a vhost: port name."""
    text = read('tools/urxed/privilege/syscall_filter.c')
    names = re.search(r'\ballowed\[\] = \{(.*?)\n\};', text, re.DOTALL).group(1)
    names = re.sub(r'/\*.*?\*/', '', names, flags=re.DOTALL)
    calls = set(re.findall(r'"(\w+)"', names)) | set(re.findall(r'SCMP_SYS\((\w+)\)', text))
    text = re.sub(r'#define (?:.*\\\n)*.*', '', read('tools/urxed/vhost/vhost_syscalls.c'))
    vhost_calls = set(re.findall(r'(?:CALL\(|CHECKED\(|__NR_)(\w+)', text))
    if not calls or not vhost_calls:
        sys.exit('the lists of system calls look different from what this test reads')
    return calls | vhost_calls


def daemon_families():
    text = read('tools/urxed/privilege/syscall_filter.c')
    return set(re.findall(r'AF_\w+', re.search(r'\bfamilies\[\] = \{(.*?)\}', text, re.DOTALL).group(1)))


def group_calls(group):
    """The system calls of a group of systemd, and of the groups in that group."""
    lines = subprocess.run(['systemd-analyze', 'syscall-filter', group], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    names = [line.strip() for line in lines if line.startswith(' ') and not line.strip().startswith('#')]
    return set().union(*(expand(name) for name in names))


def expand(name):
    if not name.startswith('@'):
        return {name}
    return group_calls(name) if shutil.which('systemd-analyze') else set()


def allowed_calls(lines):
    """What SystemCallFilter= allows; a line that begins with ~ takes away. systemd always allows @default."""
    allowed = expand('@default')
    for line in lines:
        calls = set().union(*(expand(name) for name in line.lstrip('~').split()))
        allowed = allowed - calls if line.startswith('~') else allowed | calls
    return allowed


def complaints(unit):
    wanted, unneeded = UNITS[unit]
    found = directives(unit)
    for name in wanted:
        if found.get(name, ['no'])[-1] in ('', 'no', 'false'):
            yield f'{name}= is missing'
    lines = found.get('SystemCallFilter', [])
    for call in sorted(SANDBOX_CALLS - set(' '.join(lines).split())):
        yield f'SystemCallFilter= does not name {call}'
    families = set(' '.join(found.get('RestrictAddressFamilies', [])).split())
    for family in sorted(daemon_families() - families - unneeded):
        yield f'RestrictAddressFamilies= refuses {family}'
    if shutil.which('systemd-analyze'):
        for call in sorted((daemon_calls() | SANDBOX_CALLS | NAMESPACE_CALLS) - allowed_calls(lines) - unneeded):
            yield f'SystemCallFilter= refuses {call}'


failed = False
for name in UNITS:
    for complaint in complaints(name):
        print(f'tools/dist/{name}: {complaint}')
        failed = True
if failed:
    sys.exit(1)
if not shutil.which('systemd-analyze'):
    print('the groups of system calls are not checked: systemd-analyze is not installed')
    sys.exit(SKIPPED)
