#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`./dev package` makes Debian's packages without a complaint of lintian, perftest runs over their contents, and they leave it to the
administrator to start the daemon."""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, main  # noqa: E402

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
NAMES = {'urxe', 'liburxe', 'urxe-doc', 'urxe-dbgsym', 'liburxe-dbgsym'}


def call(argv, **options):
    result = subprocess.run(argv, capture_output=True, text=True, timeout=1800 * BUSY, check=False, **options)
    if result.returncode:
        raise Failure(f'{" ".join(argv)}: status {result.returncode}\n{result.stdout}{result.stderr}')


# Stand in for the programs that maintainer scripts call: a first installation, so no unit is known to deb-systemd-helper.
STUBS = {
    'deb-systemd-helper': 'echo "$0 $*"; [[ $* != *debian-installed* ]]',
    'deb-systemd-invoke': 'echo "$0 $*"',
    'systemctl': ':',
    'systemd-tmpfiles': ':',
}


def commands_of(package, script, *arguments):
    """The commands for systemd that a maintainer script of a package runs on a machine with systemd."""
    with tempfile.TemporaryDirectory() as root:
        call(['dpkg-deb', '-e', package, root])
        with open(f'{root}/{script}', encoding='utf-8') as file:
            text = file.read().replace('/run/systemd/system', root).replace('>/dev/null', '>&2')
        for name, body in STUBS.items():
            with open(f'{root}/{name}', 'w', encoding='utf-8') as file:
                file.write(f'#!/bin/bash\n{body}\n')
            os.chmod(f'{root}/{name}', 0o755)
        result = subprocess.run(['sh', '-e', '-c', text, script, *arguments], env={'PATH': f'{root}:/usr/bin:/bin'},
                                stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, check=True)
        return result.stderr.replace(f'{root}/', '')


def check_units(package):
    """No unit is enabled by the installation; an upgrade restarts the machine's daemon, and the removal stops it."""
    commands = commands_of(package, 'postinst', 'configure', '')
    if ' enable ' in commands:
        raise Failure(f'the installation enables a unit:\n{commands}')
    for script, arguments, wanted in [('postinst', ['configure', '0.0.1-1'], 'deb-systemd-invoke restart urxed.service'),
                                      ('prerm', ['remove'], 'deb-systemd-invoke stop urxed.service'),
                                      ('postrm', ['purge'], 'deb-systemd-helper purge urxed.service'),
                                      ('postrm', ['purge'], 'deb-systemd-helper --user purge urxed.service')]:
        commands = commands_of(package, script, *arguments)
        if wanted not in commands.splitlines():
            raise Failure(f'{script} {arguments}: no {wanted}:\n{commands}')


def run():
    call(['./dev', 'package'], cwd=TREE)
    packages = glob.glob(os.path.join(TREE, 'build-package/*.deb'))
    names = {os.path.basename(path).split('_')[0] for path in packages}
    if names != NAMES:
        raise Failure(f'other packages: {names}')
    check_units(glob.glob(os.path.join(TREE, 'build-package/urxe_*.deb'))[0])
    with tempfile.TemporaryDirectory() as root:
        for path in packages:
            call(['dpkg', '-x', path, root])
        if not glob.glob(f'{root}/usr/lib/*/urxe/roce.bpf.o'):
            raise Failure('no package has the XDP program of af_xdp: uplinks')
        path = f'{root}/usr/bin:{root}/usr/sbin:{os.environ["PATH"]}'
        # What autopkgtest runs.
        call([os.path.join(TREE, 'tools/dist/debian/tests/perftest')], env={**os.environ, 'PATH': path})


main(run)
