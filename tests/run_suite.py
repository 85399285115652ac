#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs tests of a meson build directory for ./dev, shows progress, and writes the counts.

The last line of output to --result is "PASSED FAILED SKIPPED", then the names of the failed tests that may run
again. A test of which a sanitizer reports something may not: the report stays valid even if a second run passes.

With --targets it runs nothing, and prints the files that the tests need.
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
import time

KINDS = {'OK': 'passed', 'EXPECTEDFAIL': 'passed', 'SKIP': 'skipped'}
FINISHED = re.compile(r'^\s*\d+/\d+ (?:\S+ / )?(?P<name>.+?)\s+(?P<result>OK|FAIL|SKIP|TIMEOUT|ERROR|EXPECTEDFAIL|'
                      r'UNEXPECTEDPASS|INTERRUPT)\s+(?P<seconds>[\d.]+)s')
CMOCKA_SKIP = re.compile(r'^\[  SKIPPED \] (\w+)$', re.MULTILINE)
# meson's own counts; ours follow.
UNINTERESTING = re.compile(r'(ninja:|Full log|Ok:|Expected Fail:|Fail:|Unexpected Pass:|Skipped:|Timeout:)')
SECONDS_BETWEEN_LINES = 10
# Tests of these suites wait most of the time: one test more than CPUs at once.
WAITING_SUITES = ('smoke', 'hosts')


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build', help='the build directory')
    parser.add_argument('name', help='the name of the logs')
    parser.add_argument('suites', nargs='+')
    part = parser.add_mutually_exclusive_group()
    part.add_argument('--core', action='store_true', help='only the tests that core_tests.txt names')
    part.add_argument('--rest', action='store_true', help='only the tests that --core leaves out')
    parser.add_argument('--only', action='append', help='only this test, with --core and --rest too')
    parser.add_argument('--result', help='the file for the counts')
    parser.add_argument('--targets', action='store_true', help='only print what has to be built for the tests')
    parser.add_argument('--patience', default='1', help='how many times longer than usual a test may take')
    parser.add_argument('--label', help='text before the count of tests')
    parser.add_argument('--usual', type=float, default=0, help='seconds that these tests usually take')
    parser.add_argument('--later', type=float, default=0, help='seconds that the suites after these usually take')
    return parser.parse_args()


def read_core_patterns(name):
    """Patterns of the core tests that core_tests.txt lists under a name; none: every test is one."""
    patterns = []
    with open(os.path.join(os.path.dirname(__file__), 'core_tests.txt'), encoding='utf-8') as lines:
        for line in lines:
            suite, colon, rest = line.partition(':')
            if colon and suite == name:
                patterns += rest.split()
    return patterns


def choose_core_tests(names, patterns):
    """Names that fit a pattern, and none with a '!' before it. Each pattern must fit a name."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern.lstrip('!')):
            sys.exit(f'core_tests.txt: no test fits {pattern}')
    wanted = [pattern for pattern in patterns if pattern[0] != '!']
    unwanted = [pattern[1:] for pattern in patterns if pattern[0] == '!']
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)
            and not any(fnmatch.fnmatchcase(name, pattern) for pattern in unwanted)]


def introspect(build, what):
    """What meson knows of a build directory."""
    return json.loads(subprocess.run(['meson', 'introspect', '--' + what, build], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout)


def choose_tests(options):
    """The tests to run, as meson describes them."""
    tests = [test for test in introspect(options.build, 'tests')
             if not set(options.suites).isdisjoint(suite.split(':')[-1] for suite in test['suite'])]
    names = [test['name'] for test in tests]
    if options.only:
        names = options.only
    elif options.core or options.rest:
        patterns = read_core_patterns(options.name)
        core = choose_core_tests(names, patterns) if patterns else names
        names = core if options.core else [name for name in names if name not in core]
    return [test for test in tests if test['name'] in names]


def print_targets(options):
    """Prints the files that the tests need, relative to the build directory."""
    needed = {target for test in choose_tests(options) for target in test['depends']}
    build = os.path.abspath(options.build)
    for target in introspect(options.build, 'targets'):
        if target['id'] in needed:
            print(*[os.path.relpath(path, build) for path in target['filename']])


def read_log(path):
    """The tests of a log that meson wrote, each a dictionary."""
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            return [json.loads(line) for line in log]
    except (OSError, ValueError):
        return []


class Progress:
    """One line of progress, which a terminal overwrites; elsewhere at most one line each 10 s."""

    def __init__(self, options, names, earlier):
        self.options = options
        seconds = {test['name'].split(' / ')[-1]: test['duration'] for test in earlier}
        mean = sum(seconds.values()) / len(seconds) if seconds else 1
        self.weights = {name: seconds.get(name, mean) + 0.01 for name in names}
        self.total = sum(self.weights.values())
        self.count = len(names)
        self.done = 0
        self.done_weight = 0
        self.shown = 0
        self.terminal = sys.stdout.isatty()

    def finish_test(self, name):
        self.done += 1
        self.done_weight += self.weights.pop(name, 0)
        if self.terminal or time.monotonic() - self.shown >= SECONDS_BETWEEN_LINES or self.done == self.count:
            self.show(name)

    def show(self, name):
        self.shown = time.monotonic()
        left = self.options.later + self.options.usual * max(0, 1 - self.done_weight / self.total)
        left = f'about {round(left)} s left' if left < 100 else f'about {round(left / 60)} min left'
        text = f'{self.options.label or self.options.name}: {self.done} of {self.count} tests, {left} ({name})'
        if self.terminal:
            print(f'\r\033[K{text}', end='', flush=True)
        else:
            print(text, flush=True)

    def clear(self):
        if self.terminal:
            print('\r\033[K', end='', flush=True)


def run_meson(options, names, progress):
    """Runs the tests; prints what meson says of failures. True: meson reports success."""
    command = ['meson', 'test', '-C', options.build, '--no-rebuild', '--print-errorlogs', '--logbase', options.name,
               '--timeout-multiplier', options.patience]
    if options.suites[0] in WAITING_SUITES:
        command += ['--num-processes', str(len(os.sched_getaffinity(0)) + 1)]
    for suite in options.suites:
        command += ['--suite', suite]
    if options.core or options.rest or options.only:
        command += names  # meson runs a test only if its suite and its name fit
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors='replace')
    summary = False
    for line in process.stdout:
        finished = FINISHED.match(line)
        summary = summary or line.startswith(('Summary of Failures', 'Ok: '))
        if finished and not summary:
            if finished['result'] not in KINDS:
                progress.clear()
                print(line, end='', flush=True)
            progress.finish_test(finished['name'])
        elif line.strip() and not UNINTERESTING.match(line.strip()):
            progress.clear()
            print(line, end='', flush=True)
    progress.clear()
    return process.wait() == 0


def main():
    options = parse_arguments()
    if options.targets:
        print_targets(options)
        return
    label = options.label or options.name
    log = os.path.join(options.build, 'meson-logs', options.name + '.json')
    earlier = read_log(log)
    if os.path.exists(log):
        os.unlink(log)
    names = [test['name'] for test in choose_tests(options)]
    succeeded = bool(names) and run_meson(options, names, Progress(options, names, earlier))
    counts, failures = collections.Counter(), []
    for test in read_log(log):
        kind = KINDS.get(test['result'], 'failed')
        counts[kind] += 1
        output = str(test.get('stdout')) + str(test.get('stderr'))
        skipped = [test['name']] if kind == 'skipped' else list(dict.fromkeys(CMOCKA_SKIP.findall(output)))
        if skipped:
            print(f"{label}: skipped {', '.join(skipped)}{'' if kind == 'skipped' else ' of ' + test['name']}")
        if kind == 'failed' and 'Sanitizer: ' not in output and 'runtime error: ' not in output:
            failures.append(test['name'].split(' / ')[-1])
    # A suite without a test is no success, nor is a run that meson gave up, nor a test without a result.
    if (not succeeded or counts.total() != len(names)) and not counts['failed']:
        counts['failed'] = 1
    print(f"{label}: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['skipped']} skipped", flush=True)
    with open(options.result, 'w', encoding='utf-8') as result:
        print(counts['passed'], counts['failed'], counts['skipped'], file=result)
        for failure in failures:
            print(failure, file=result)


if __name__ == '__main__':
    main()
