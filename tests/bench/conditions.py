# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What figures are of: this machine, what is installed there, and the build that is measured."""
import glob
import hashlib
import json
import os
import platform
import re
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
MEASURED = 'verbs/liburxe.so', 'tools/urxe', 'tools/urxed'
# What figures hang on besides -> whose version says it.
PACKAGES = {'rdma-core': 'libibverbs1', 'perftest': 'perftest', 'UCX': 'ucx-utils', 'DPDK': 'libdpdk-dev',
            'iperf3': 'iperf3'}


def first_line(*argv):
    """Of what a program prints; None where there is no such program, or it fails."""
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return result.stdout.partition('\n')[0] if result.returncode == 0 else None


def processor(cpuinfo):
    """The model's name, and whether a hypervisor is there, where /proc/cpuinfo tells."""
    model = re.search(r'^model name\s*: (.*)', cpuinfo, re.MULTILINE)
    flags = re.search(r'^flags\s*: (.*)', cpuinfo, re.MULTILINE)
    return {'processor': model.group(1) if model else platform.machine(),
            'hypervisor': 'hypervisor' in flags.group(1).split() if flags else None}


def version(package):
    """As dpkg has it, of what is installed."""
    found = first_line('dpkg-query', '-W', '-f', '${db:Status-Status} ${Version}\n', package)
    status, _, number = (found or '').partition(' ')
    return number if status == 'installed' else None


def introspected(build, what):
    with open(os.path.join(build, f'meson-info/intro-{what}.json'), encoding='utf-8') as file:
        return json.load(file)


def compiler(build):
    """The first line of its own --version."""
    argv = next(source['compiler'] for target in introspected(build, 'targets')
                for source in target['target_sources'] if source.get('language') == 'c')
    return first_line(*argv, '--version')


def build_type(build):
    return next(option['value'] for option in introspected(build, 'buildoptions')
                if option['name'] == 'buildtype')


def commit():
    """Of the tree that this file is in, if that is git's; not of one around it."""
    if not os.path.exists(os.path.join(SOURCE, '.git')):
        return None
    return first_line('git', '-C', SOURCE, 'describe', '--always', '--dirty', '--exclude=*')


def machine(build):
    """For who reads the figures; None where something is not known."""
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        found = processor(file.read())
    versions = {name: version(package) for name, package in PACKAGES.items()}
    return {**found, 'processors': os.cpu_count(), 'kernel': f'{platform.system()} {platform.release()}',
            'packages': {name: number for name, number in versions.items() if number},
            'compiler': compiler(build), 'build_type': build_type(build), 'commit': commit()}


def guest(build):
    """What virtual machines run, of which rdma_rxe is a part, and what emulates them."""
    kernels = [os.path.basename(path).removeprefix('vmlinuz-')
               for path in sorted(glob.glob(f'{build}-guests/kernel/boot/vmlinuz-*'))]
    return ', '.join(f'{name} {found}' for name, found in [('Linux', kernels[-1] if kernels else None),
                                                           ('QEMU', version('qemu-system-x86'))] if found)


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def conditions(build, guests=False):
    """Figures of other files are not to be mixed with those of these; in virtual machines the same ones run."""
    return {'build': {name: digest(os.path.join(build, name)) for name in MEASURED},
            'machine': {**machine(build), **({'guests': guest(build)} if guests else {})}}


def described(found):
    """A machine in a sentence."""
    place = {True: ', in a virtual machine', False: ', no hypervisor', None: ''}[found['hypervisor']]
    packages = ', '.join(f'{name} {number}' for name, number in found['packages'].items())
    guests = f'in it virtual machines: {found["guests"]}' if found.get('guests') else None
    parts = [f'{found["processor"]}, {found["processors"]} processors{place}', found['kernel'], guests,
             packages, found['compiler'], f'build type {found["build_type"]}',
             found['commit'] and f'urxe {found["commit"]}']
    return '; '.join(filter(None, parts))


def differing(kept, now):
    """What of the conditions is another one; a commit may be, of the same build."""
    def told(conditions):
        return {**conditions['build'], **conditions['machine'], 'commit': None}
    kept, now = told(kept), told(now)
    return [name for name in {**kept, **now} if kept.get(name) != now.get(name)]
