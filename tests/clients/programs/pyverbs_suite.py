# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
pyverbs_suite.py [DEVICE]: runs rdma-core's tests of pyverbs, from Debian's package, on urxe0 or another device, except
for tests that need huge pages.
"""
import glob
import gzip
import os
import shutil
import sys
import tempfile
import unittest

TESTS = '/usr/share/doc/rdma-core/tests'


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
                               if 'huge' not in case.id())
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    print(f'{result.testsRun - len(result.skipped)} tests ran, {len(result.skipped)} were skipped')
    sys.exit(not result.wasSuccessful())
