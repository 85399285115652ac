# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compares the keys of a command's JSON document with urxe(1)."""
import os
import re

from host import Failure

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/man/urxe.1')
# Objects whose keys are names of counters, opcodes or options, which other lists document.
NAMED = ['counters', 'device', 'drops', 'errors', 'events', 'opcodes', 'scenario']


def keys_of(found):
    """All keys of a document, except those of NAMED."""
    if isinstance(found, list):
        return set().union(*map(keys_of, found))
    if not isinstance(found, dict):
        return set()
    parts = [keys_of(part) for key, part in found.items() if key not in NAMED or isinstance(part, list)]
    return set(found).union(*parts)


def check_keys(found):
    """urxe(1) has every key of the document."""
    with open(PAGE, encoding='utf-8') as page:
        missing = keys_of(found) - set(re.findall(r'\w+', page.read()))
    if missing:
        raise Failure(f'keys that urxe(1) does not have: {sorted(missing)}')
