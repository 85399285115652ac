#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`./dev package` makes Debian's packages without a complaint of lintian, and perftest runs over their contents."""
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


def run():
    call(['./dev', 'package'], cwd=TREE)
    packages = glob.glob(os.path.join(TREE, 'build-package/*.deb'))
    names = {os.path.basename(path).split('_')[0] for path in packages}
    if names != NAMES:
        raise Failure(f'other packages: {names}')
    with tempfile.TemporaryDirectory() as root:
        for path in packages:
            call(['dpkg', '-x', path, root])
        if not glob.glob(f'{root}/usr/lib/*/urxe/roce.bpf.o'):
            raise Failure('no package has the XDP program of af_xdp: uplinks')
        path = f'{root}/usr/bin:{root}/usr/sbin:{os.environ["PATH"]}'
        # What autopkgtest runs.
        call([os.path.join(TREE, 'tools/dist/debian/tests/perftest')], env={**os.environ, 'PATH': path})


main(run)
