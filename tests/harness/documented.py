# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compares a command's JSON document with urxe(1), which names the keys, and with docs/json/, which has the types."""
import json
import os
import re

from host import Failure

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs')
PAGE = os.path.join(DOCS, 'man/urxe.1')
# Objects whose keys are names of counters, opcodes or options, which other lists document.
NAMED = ['counters', 'device', 'drops', 'errors', 'events', 'opcodes', 'scenario']
TYPES = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool,
         'null': type(None)}
WITHOUT_EFFECT = {'$schema', '$defs', 'title', 'description'}


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


def has_type(found, name):
    """bool is a subclass of int."""
    return name == 'boolean' if isinstance(found, bool) else isinstance(found, TYPES[name])


class Schema:
    """
    The keywords of JSON Schema that docs/json/ uses. A Python of its own, such as that of a developer, lacks Debian's
    package with all of them.
    """

    def __init__(self, name):
        with open(os.path.join(DOCS, 'json', f'{name}.json'), encoding='utf-8') as file:
            self.root = json.load(file)

    def check(self, found, schema=None, path='$'):
        schema = self.root if schema is None else schema
        for keyword, wanted in schema.items():
            if keyword in WITHOUT_EFFECT:
                continue
            getattr(self, f'check_{keyword.strip("$")}')(found, wanted, schema, path)

    def check_ref(self, found, wanted, _schema, path):
        self.check(found, self.root['$defs'][wanted.rpartition('/')[2]], path)

    def check_type(self, found, wanted, _schema, path):
        names = [wanted] if isinstance(wanted, str) else wanted
        if not any(has_type(found, name) for name in names):
            raise Failure(f'{path} is {found!r}, not {wanted}')

    def check_enum(self, found, wanted, _schema, path):
        if found not in wanted:
            raise Failure(f'{path} is {found!r}, not one of {wanted}')

    def check_anyOf(self, found, wanted, _schema, path):
        failures = []
        for schema in wanted:
            try:
                self.check(found, schema, path)
                return
            except Failure as failure:
                failures.append(str(failure))
        raise Failure('; '.join(failures))

    def check_properties(self, found, wanted, _schema, path):
        for key, schema in wanted.items():
            if isinstance(found, dict) and key in found:
                self.check(found[key], schema, f'{path}.{key}')

    def check_required(self, found, wanted, _schema, path):
        missing = [key for key in wanted if isinstance(found, dict) and key not in found]
        if missing:
            raise Failure(f'{path} has no {missing}')

    def check_additionalProperties(self, found, wanted, schema, path):
        for key in (found if isinstance(found, dict) else ()):
            if key in schema.get('properties', ()):
                continue
            if wanted is False:
                raise Failure(f'{path} has the key {key}')
            self.check(found[key], wanted, f'{path}.{key}')

    def check_items(self, found, wanted, _schema, path):
        for number, item in enumerate(found if isinstance(found, list) else ()):
            self.check(item, wanted, f'{path}[{number}]')


def check_document(name, found):
    """The document has the types of docs/json/NAME.json, and urxe(1) has its keys."""
    Schema(name).check(found)
    check_keys(found)
