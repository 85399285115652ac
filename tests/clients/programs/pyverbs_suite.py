# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
pyverbs_suite.py [DEVICE]: runs rdma-core's tests of pyverbs, from Debian's package, on urxe0 or another device, except
for tests that need huge pages. Where an HCA executes all queue pairs, it leaves out ATOMIC WRITE, which an HCA need not have:
the test does not ask for the capability.
"""
import glob
import gzip
import os
import shutil
import sys
import tempfile
import unittest

TESTS = '/usr/share/doc/rdma-core/tests'
BY_HCA = os.environ.get('URXE_WAY') == 'hca'
LEFT_OUT = ['huge'] + ['rc_atomic_write'] * BY_HCA


def unpack(top):
    for path in glob.glob(f'{TESTS}/*.py*'):
        name = os.path.basename(path).removesuffix('.gz')
        opened = gzip.open(path) if path.endswith('.gz') else open(path, 'rb')
        with opened as packed, open(os.path.join(top, 'tests', name), 'wb') as plain:
            shutil.copyfileobj(packed, plain)


def cases(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from cases(part)
        else:
            yield part


with tempfile.TemporaryDirectory() as top:
    os.mkdir(os.path.join(top, 'tests'))
    unpack(top)
    sys.path[:0] = [top, os.path.join(top, 'tests')]
    from args_parser import parser
    sys.argv = [sys.argv[0], '--dev', *(sys.argv[1:] or ['urxe0'])]
    parser.parse_args()
    import tests
    suite = unittest.TestSuite(case for case in cases(unittest.defaultTestLoader.loadTestsFromModule(tests))
                               if not any(word in case.id() for word in LEFT_OUT))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    if BY_HCA:
        print('by an HCA')
    print(f'{result.testsRun - len(result.skipped)} tests ran, {len(result.skipped)} were skipped')
    sys.exit(not result.wasSuccessful())
