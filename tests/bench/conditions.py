# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The conditions of figures: machine, installed packages, and build."""
import glob
import hashlib
import json
import os
import platform
import re
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
MEASURED = 'verbs/liburxe.so', 'tools/urxe', 'tools/urxed'
# Software that figures depend on -> the package with its version.
PACKAGES = {'rdma-core': 'libibverbs1', 'perftest': 'perftest', 'UCX': 'ucx-utils', 'DPDK': 'libdpdk-dev',
            'iperf3': 'iperf3'}


def first_line(*argv):
    """The first line of a program's output; None if the program is missing or fails."""
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return result.stdout.partition('\n')[0] if result.returncode == 0 else None


def processor(cpuinfo):
    """The CPU model and whether a hypervisor runs, according to /proc/cpuinfo."""
    model = re.search(r'^model name\s*: (.*)', cpuinfo, re.MULTILINE)
    flags = re.search(r'^flags\s*: (.*)', cpuinfo, re.MULTILINE)
    return {'processor': model.group(1) if model else platform.machine(),
            'hypervisor': 'hypervisor' in flags.group(1).split() if flags else None}


def version(package):
    """The version of an installed package, according to dpkg."""
    found = first_line('dpkg-query', '-W', '-f', '${db:Status-Status} ${Version}\n', package)
    status, _, number = (found or '').partition(' ')
    return number if status == 'installed' else None


def introspected(build, what):
    with open(os.path.join(build, f'meson-info/intro-{what}.json'), encoding='utf-8') as file:
        return json.load(file)


def compiler(build):
    """The first line of the compiler's --version."""
    argv = next(source['compiler'] for target in introspected(build, 'targets')
                for source in target['target_sources'] if source.get('language') == 'c')
    return first_line(*argv, '--version')


def build_type(build):
    return next(option['value'] for option in introspected(build, 'buildoptions')
                if option['name'] == 'buildtype')


def commit():
    """The git commit of this source tree, not of a repository around it."""
    if not os.path.exists(os.path.join(SOURCE, '.git')):
        return None
    return first_line('git', '-C', SOURCE, 'describe', '--always', '--dirty', '--exclude=*')


def machine(build):
    """The machine's description for readers; None for unknown parts."""
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        found = processor(file.read())
    versions = {name: version(package) for name, package in PACKAGES.items()}
    return {**found, 'processors': os.cpu_count(), 'kernel': f'{platform.system()} {platform.release()}',
            'packages': {name: number for name, number in versions.items() if number},
            'compiler': compiler(build), 'build_type': build_type(build), 'commit': commit()}


def newer_qemu(build):
    """The version of the QEMU that ./dev unpacks for the devices of `urxe vm`."""
    line = first_line(f'{build}-guests/qemu/qemu-system-x86_64', '--version')
    return line and line.removeprefix('QEMU emulator version ')


def guest(build, qemu, folder='kernel'):
    """The kernel of the virtual machines, which contains rdma_rxe, and QEMU's version."""
    kernels = [os.path.basename(path).removeprefix('vmlinuz-')
               for path in sorted(glob.glob(f'{build}-guests/{folder}/boot/vmlinuz-*'))]
    return ', '.join(f'{name} {found}' for name, found in [('Linux', kernels[-1] if kernels else None),
                                                           ('QEMU', qemu)] if found)


def machines(build, devices):
    """The kernels and QEMUs of all virtual machines."""
    if devices:
        return guest(build, newer_qemu(build))
    return (f'{guest(build, version("qemu-system-x86"))}, or with UDP GSO '
            f'{guest(build, newer_qemu(build), "kernel-trixie")}')


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def conditions(build, guests=False, devices=False):
    """
    The conditions that samples of one file must share: digests of the build's files, and the machine. guests: urxe is
    measured inside of virtual machines; devices: their devices are measured.
    """
    return {'build': {name: digest(os.path.join(build, name)) for name in MEASURED},
            'machine': {**machine(build), **({'guests': machines(build, devices)} if guests or devices else {})}}


def described(found):
    """A machine's description as a sentence."""
    place = {True: ', in a virtual machine', False: ', no hypervisor', None: ''}[found['hypervisor']]
    packages = ', '.join(f'{name} {number}' for name, number in found['packages'].items())
    guests = f'in it virtual machines: {found["guests"]}' if found.get('guests') else None
    parts = [f'{found["processor"]}, {found["processors"]} processors{place}', found['kernel'], guests,
             packages, found['compiler'], f'build type {found["build_type"]}',
             found['commit'] and f'urxe {found["commit"]}']
    return '; '.join(filter(None, parts))


def differing(kept, now):
    """The conditions that differ. The commit may differ if the build is the same."""
    def told(conditions):
        return {**conditions['build'], **conditions['machine'], 'commit': None}
    kept, now = told(kept), told(now)
    return [name for name in {**kept, **now} if kept.get(name) != now.get(name)]
