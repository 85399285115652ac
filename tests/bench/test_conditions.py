#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests conditions.py: descriptions of machine and build, and conditions that forbid to mix samples."""
import json
import os
import tempfile
import unittest

import conditions

CPUINFO = '''processor\t: 0
model name\t: AMD EPYC
flags\t\t: fpu sse4_2 {}

processor\t: 1
model name\t: AMD EPYC
flags\t\t: fpu sse4_2 {}
'''
MACHINE = {'processor': 'AMD EPYC', 'hypervisor': True, 'processors': 2, 'kernel': 'Linux 6.1',
           'packages': {'perftest': '4.5', 'UCX': '1.13.1'}, 'compiler': 'gcc 12.2.0',
           'build_type': 'debugoptimized', 'commit': 'abc1234'}


class Machine(unittest.TestCase):
    """Sources and text of the machine's description."""

    def test_processor_and_hypervisor_are_read(self):
        for flag, hypervisor in ('hypervisor', True), ('lahf_lm', False):
            self.assertEqual(conditions.processor(CPUINFO.format(flag, flag)),
                             {'processor': 'AMD EPYC', 'hypervisor': hypervisor})

    def test_other_architectures_have_no_model_and_no_hypervisor(self):
        found = conditions.processor('processor\t: 0\nBogoMIPS\t: 50.0\nFeatures\t: fp asimd\n')
        self.assertTrue(found['processor'])
        self.assertIsNone(found['hypervisor'])

    def test_missing_package_has_no_version(self):
        self.assertIsNone(conditions.version('there-is-no-such-package'))
        self.assertIsNone(conditions.first_line('there-is-no-such-program'))
        self.assertIsNone(conditions.first_line('false'))

    def test_description_of_a_machine(self):
        self.assertEqual(conditions.described(MACHINE), (
            'AMD EPYC, 2 processors, in a virtual machine; Linux 6.1; perftest 4.5, UCX 1.13.1; gcc 12.2.0; '
            'build type debugoptimized; urxe abc1234'))

    def test_description_of_virtual_machines(self):
        self.assertTrue(conditions.described(MACHINE | {'guests': 'Linux 6.1, QEMU 7.2'}).startswith(
            'AMD EPYC, 2 processors, in a virtual machine; Linux 6.1; in it virtual machines: Linux 6.1, '
            'QEMU 7.2; perftest'))

    def test_description_omits_unknown_parts(self):
        unknown = MACHINE | {'hypervisor': None, 'packages': {}, 'compiler': None, 'commit': None}
        self.assertEqual(conditions.described(unknown),
                         'AMD EPYC, 2 processors; Linux 6.1; build type debugoptimized')


class Build(unittest.TestCase):
    """A build directory like meson's."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = os.path.join(folder.name, 'build')
        for name in conditions.MEASURED:
            self.write(name, 'one')
        self.write('meson-info/intro-buildoptions.json', json.dumps(
            [{'name': 'optimization', 'value': '2'}, {'name': 'buildtype', 'value': 'release'}]))
        self.write('meson-info/intro-targets.json', json.dumps(
            [{'target_sources': []}, {'target_sources': [{'language': 'c', 'compiler': ['echo', 'cc 1']}]}]))

    def write(self, name, text):
        path = os.path.join(self.build, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def test_build_is_described(self):
        found = conditions.machine(self.build)
        self.assertEqual((found['compiler'], found['build_type']), ('cc 1 --version', 'release'))
        self.assertNotIn(os.uname().nodename, conditions.described(found))

    def test_guest_kernel_is_described(self):
        self.assertNotIn('Linux', conditions.guest(self.build, None))
        self.write('../build-guests/kernel/boot/vmlinuz-6.1.0-1-amd64', '')
        self.assertIn('Linux 6.1.0-1-amd64', conditions.guest(self.build, None))

    def test_virtual_machines_differ_from_the_host(self):
        self.write('../build-guests/kernel/boot/vmlinuz-6.1.0-1-amd64', '')
        found, guests = [conditions.conditions(self.build, there) for there in (False, True)]
        self.assertEqual(conditions.differing(found, guests), ['guests'])
        self.assertEqual(conditions.differing(guests, found), ['guests'])

    def test_same_build_may_be_mixed(self):
        found = conditions.conditions(self.build)
        later = {**found, 'machine': found['machine'] | {'commit': 'a later one'}}
        self.assertEqual(conditions.differing(found, later), [])

    def test_other_builds_and_machines_may_not_be_mixed(self):
        found = conditions.conditions(self.build)
        self.write('tools/urxed', 'another')
        other = conditions.conditions(self.build)
        other['machine']['kernel'] = 'another'
        self.assertEqual(conditions.differing(found, other), ['tools/urxed', 'kernel'])


unittest.main()
