#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Checks manual pages and bash completion against --help.

    manual.py URXE URXED COMPLETION PAGE...

Every command, topic, option and listed value of --help must be in its pages and in the completion, and every key of the
JSON schemas in urxe(1). man must print no warning about the pages.
"""
import glob
import json
import os
import re
import subprocess
import sys

urxe, urxed, completion, *paths = sys.argv[1:]
pages = {}
for path in paths:
    with open(path, encoding='utf-8') as file:
        pages[os.path.basename(path)] = file.read()
complaints = []


def help_of(*argv):
    return subprocess.run([*argv, '--help'], capture_output=True, text=True, check=True).stdout


def options(text):
    return sorted(set(re.findall(r'--([a-z][a-z-]*)', text)))


def want(page, what, pattern):
    if not re.search(pattern, pages[page], re.MULTILINE):
        complaints.append(f'{page} does not have {what}')


def complete(*words):
    """Bash's completions of the last word, if ':' ends a word."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_"${1##*/}"; printf "%s\\n" "${COMPREPLY[@]}"')
    path = f'{os.path.dirname(os.path.abspath(urxe))}:{os.environ["PATH"]}'
    result = subprocess.run(['bash', '--norc', '-c', script, 'bash', completion, *words],
                            capture_output=True, text=True, check=False, env={**os.environ, 'PATH': path})
    if result.stderr:
        complaints.append(f'completion of {words}: {result.stderr}')
    return result.stdout.split()


def check_typed_words():
    """No word that the user has typed is executed, or ends up in another program's script."""
    want_completed(('urxe', 'capture', '-w/tmp/f', '--'), complete('urxe', 'capture', '--'))
    complete('urxe', 'capture', r'-w.*/echo executed>\&2/e;#', '')
    complete('urxe', 'run', '-x/f', '')
    want_completed(('~/no-such-folder/urxe', 'show', ''), complete('urxe', 'show', ''))


def want_completed(words, wanted):
    found = complete(*words)
    for word in wanted:
        if word not in found:
            complaints.append(f'{" ".join(words)}... is not completed to {word}')
    for word in found:
        if word not in wanted:
            complaints.append(f'{" ".join(words)}... is completed to {word}, which is not there')


def check_urxe():
    commands = re.findall(r'^  (\w+) ', help_of(urxe), re.MULTILINE)
    want_completed(('urxe', ''), [*commands, 'help', '--help', '--version'])
    for command in commands:
        want('urxe.1', f'the command {command}', rf'^\.Ss urxe {command}$')
        if command == 'sim':  # the page refers to its --help
            continue
        for option in options(help_of(urxe, command)):
            want('urxe.1', f'--{option} of {command}', rf'Fl Fl {option}\b')
        for option, values in set(re.findall(r'--([a-z-]+) ([a-z0-9]+(?:\|[a-z0-9]+)+)(?=[]\s])', help_of(urxe, command))):
            want_completed(('urxe', command, f'--{option}', ''), values.split('|'))
        if command != 'show':
            want_completed(('urxe', command, '--'),
                           [f'--{option}' for option in options(help_of(urxe, command))]
                           + (['--'] if command == 'run' else [])
                           + (['--help'] if command != 'show' else []))
    text = help_of(urxe, 'show')
    topics = re.findall(r'^  ([a-z]+) ', text, re.MULTILINE)
    for topic in topics:
        want('urxe.1', f'the topic {topic}', rf'^\.It Cm {topic}$')
    want_completed(('urxe', 'show', ''),
                   topics + [f'--{option}' for option in options(text)] + ['--help'])


def check_urxed():
    # Options at the beginning of a line of --help.
    names = re.findall(r'^  --([a-z-]+)', help_of(urxed), re.MULTILINE) + ['version']
    want_completed(('urxed', '--'), [f'--{name}' for name in names])
    for name in names:
        want('urxed.8', f'--{name}', rf'^\.It Fl Fl (help , Fl Fl )?{name}\b')
        if name not in ('config', 'help', 'version'):
            want('urxe.conf.5', name, rf'^\.It Cm {name}\b')
    want_completed(('urxed', '--uplink', 'af_packet', ':', 'l'), ['lo'])
    kinds = sorted(set(re.findall(r'\b([a-z_]+):[A-Z]', help_of(urxed))))
    for kind in kinds:
        want('urxed.8', f'the uplink {kind}:', rf'^\.It Li {kind}:')
    want_completed(('urxed', '--uplink', ''), [f'{kind}:' for kind in kinds])


def keys(schema):
    """The names of all members of a schema's objects."""
    if isinstance(schema, list):
        return {key for part in schema for key in keys(part)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get('properties', {})) | {key for part in schema.values() for key in keys(part)}


def want_keys(what, begin, end, schema):
    part = re.search(rf'^{begin}$(.*?)^\.(?:{end})\b', pages['urxe.1'], re.MULTILINE | re.DOTALL).group(1)
    for key in sorted(keys(schema) - set(re.findall(r'\w+', part))):
        complaints.append(f'urxe.1 does not have the key {key} of {what}')


def check_keys():
    for path in glob.glob(os.path.join(os.path.dirname(paths[0]), '../json/*.json')):
        with open(path, encoding='utf-8') as file:
            schema = json.load(file)
        command = os.path.basename(path).split('.')[0]
        want_keys(command, rf'\.Ss urxe {command.split("-")[0]}', 'Ss|Sh', schema)
        if command == 'show':
            for topic, rows in schema['properties'].items():
                want_keys(f'show, {topic}', rf'\.It Li {topic}', 'It|El', rows)


def check_lint():
    for path in paths:
        result = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', path],
                                capture_output=True, text=True, check=False)
        if result.returncode:
            complaints.append(result.stdout + result.stderr)


def check_form():
    for path in paths:
        result = subprocess.run(['man', '--warnings', '-l', '-Tutf8', path], capture_output=True,
                                text=True, check=False,
                                env={**os.environ, 'MANPAGER': 'cat', 'MANWIDTH': '80'})
        if result.returncode or result.stderr or not result.stdout:
            complaints.append(f'{path}: {result.stderr}')


check_urxe()
check_urxed()
check_typed_words()
check_keys()
check_form()
check_lint()
for complaint in complaints:
    print(complaint)
sys.exit(bool(complaints))
