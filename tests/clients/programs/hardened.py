#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
hardened.py [--also CALL]... [--errno] COMMAND: runs the command as systemd runs a service with NoNewPrivileges=yes,
MemoryDenyWriteExecute=yes and SystemCallFilter=@system-service CALL... A call outside of the filter kills the process
(systemd's default), or fails with EPERM (--errno: SystemCallErrorNumber=EPERM).
"""
import argparse
import ctypes
import errno
import mmap
import os
import subprocess

# Of <seccomp.h> and <linux/prctl.h>.
ALLOW = 0x7fff0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
MASKED_EQ = 7
UNKNOWN = -1  # the number of a call that this architecture lacks
PR_SET_NO_NEW_PRIVS = 38


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp"""
    _fields_ = [('arg', ctypes.c_uint), ('op', ctypes.c_int), ('mask', ctypes.c_uint64), ('value', ctypes.c_uint64)]


seccomp = ctypes.CDLL('libseccomp.so.2')
seccomp.seccomp_init.restype = ctypes.c_void_p


def calls_of(group):
    """The names of the system calls in a group of systemd, such as @system-service."""
    text = subprocess.run(['systemd-analyze', 'syscall-filter', group], capture_output=True, text=True,
                          check=True).stdout
    for word in text.split('\n')[1:]:
        word = word.strip()
        if word.startswith('@'):
            yield from calls_of(word)
        elif word and not word.startswith('#'):
            yield word


def add(rules, action, name, *compares):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number <= UNKNOWN:
        return
    array = (Compare * len(compares))(*compares)
    if seccomp.seccomp_rule_add_array(ctypes.c_void_p(rules), ctypes.c_uint32(action), number, len(compares), array):
        raise SystemExit(f'cannot add a rule for {name}')


def load(default, names, deny=()):
    """Filters add up: the strictest action of all counts."""
    rules = seccomp.seccomp_init(ctypes.c_uint32(default))
    for name in names:
        add(rules, ALLOW, name)
    for name, compare in deny:
        add(rules, ERRNO | errno.EPERM, name, compare)
    if seccomp.seccomp_load(ctypes.c_void_p(rules)):
        raise SystemExit('cannot load the filter')


def both(arg, bits):
    return Compare(arg, MASKED_EQ, bits, bits)


parser = argparse.ArgumentParser()
parser.add_argument('--also', action='append', default=[])
parser.add_argument('--errno', action='store_true')
parser.add_argument('command', nargs=argparse.REMAINDER)
options = parser.parse_args()
allowed = {*calls_of('@system-service'), *options.also}
if ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
    raise SystemExit('cannot set no_new_privs')
# MemoryDenyWriteExecute.
load(ALLOW, (), [('mmap', both(2, mmap.PROT_WRITE | mmap.PROT_EXEC)), ('mprotect', both(2, mmap.PROT_EXEC)),
                 ('pkey_mprotect', both(2, mmap.PROT_EXEC))])
load(ERRNO | errno.EPERM if options.errno else KILL_PROCESS, sorted(allowed))
os.execvp(options.command[0], options.command)
