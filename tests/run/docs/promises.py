#!/usr/bin/env python3
"""promises.py ROOT BUILD - each promise of tests/README.md names tests that
exist, and each sentence of the public headers and of the Python package that
says always, never, every or at most is in its table of words.

A row of that table names places (as header_text.py names items; functions,
classes and modules), words of a sentence there, and what would fail if it were
untrue. --self-test breaks each rule once.
"""
import ast
import fnmatch
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / 'docs'))
import header_text  # noqa: E402

WORDS = re.compile(r'\b(always|never|every|at most)\b', re.I)
# Names of options, and arguments of calls, that are called so.
CODE = re.compile(r'`[^`]*`|\bevery=|^ *every  ', re.M)


def sentences(text):
    """Those that promise; code is no sentence."""
    flat = ' '.join(CODE.sub('`', text).split())
    return [s for s in re.split(r'(?<=[.:;])\s', flat) if WORDS.search(s)]


def of_header(path):
    """(place, sentence): items with their comments, and those inside them."""
    for item in header_text.parse(path):
        inside = re.findall(r'/\*(.*?)\*/', item.code, re.S)
        for text in [item.text] + inside:
            for sentence in sentences(re.sub(r'\n\s*\*', '\n', text)):
                yield item.names[0], sentence


def of_package(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            name = getattr(node, 'name', path.name)
            if name.startswith('_') and name != '__init__.py':
                continue
            for sentence in sentences(ast.get_docstring(node) or ''):
                yield name, sentence


def promised(root):
    found = []
    for path in sorted((root / 'include').glob('*.h')):
        found += of_header(path)
    for path in sorted((root / 'python/src/pccl').rglob('*.py')):
        found += of_package(path)
    return found


def rows(page, title):
    """The rows of the table below a heading: lists of cells."""
    section = page.split(f'\n## {title}\n')[1].split('\n## ')[0]
    return [[cell.strip() for cell in line.strip('|').split(' | ')]
            for line in section.split('\n') if line.startswith('| ')][1:]


def words(table, found):
    """Sentences without a row, and rows without a sentence."""
    faults, used = [], set()
    for place, sentence in found:
        fits = [n for n, (places, said, _) in enumerate(table)
                if f'`{place}`' in places and said in sentence]
        used.update((n, place) for n in fits)
        if not fits:
            faults.append(f'{place}: no test for: {sentence}')
    for number, (places, said, _) in enumerate(table):
        for place in re.findall(r'`(.*?)`', places):
            if (number, place) not in used:
                faults.append(f'{place} does not say: {said}')
    return faults


def finder(root, known):
    """Whether there is a test of ctest, a file or folder below tests/, or a
    function of one."""
    files = [*(root / 'tests').rglob('*'), *(root / 'python/tests').rglob('*')]

    @functools.cache
    def there(file, function):
        sources = [path for path in files
                   if fnmatch.fnmatch(str(path), f'*/{file}*')]
        if not function:
            return ('/' in file and sources) or fnmatch.filter(known, file)
        word = re.compile(rf'\b{function}\b'.replace('*', r'\w*'))
        return any(word.search(path.read_text()) for path in sources
                   if path.suffix in ('.c', '.py', '.sh'))
    return there


def tests(there, cell):
    """What a cell names and is none; `:g` is of the file named before it."""
    faults, last, names = [], '', re.findall(r'`(.+?)`', cell)
    for name in names:
        file, _, function = name.partition(':')
        last = file = file or last
        if not there(file, function):
            faults.append(f'there is no test {name}')
    return faults if names else [f'no test is named: {cell}']


def check(there, page, found):
    table = rows(page, 'Words of the headers, and the tests that show them')
    faults = words(table, found)
    promises = rows(page, 'Promises, and the tests that show them') + rows(
        page, 'Faults of PCCL 1.0, and the tests that show their absence here')
    for row in table + promises:
        faults += tests(there, row[-1])
    return faults


def self_test(there, page, found):
    """What is not noticed."""
    for old, new in (('| `pcclMember_t` |', '| `pcclView_t` |'),
                     ('At most 4 newcomers', 'At most 5 newcomers'),
                     ('`test_bounds:texts`', '`test_bounds:no_texts`'),
                     ('`test_hash_quality`', '`test_hash_qualities`'),
                     ('`test_bounds:connections`', 'a test')):
        assert old in page, old
        if not check(there, page.replace(old, new), found):
            return [f'{new} is not noticed']
    more = found + [('pcclInit', 'Never fails.')]
    return [] if check(there, page, more) else ['a sentence without row']


def main():
    root, build = pathlib.Path(sys.argv[1]), sys.argv[2]
    listed = subprocess.run(['ctest', '-N', '--test-dir', build], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    known = re.findall(r'#\d+: (\S+)', listed)
    page = (root / 'tests/README.md').read_text()
    found = promised(root)
    work = self_test if '--self-test' in sys.argv else check
    faults = work(finder(root, known), page, found)
    for fault in faults:
        print(fault)
    print(f'{len(found)} sentences, {len(faults)} faults')
    return 1 if faults or not found else 0


if __name__ == '__main__':
    sys.exit(main())
