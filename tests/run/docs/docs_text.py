#!/usr/bin/env python3
"""docs_text.py ROOT - what the guides say is what the sources have.

The variables of tuning.md are those that the library knows, all of them; what
is read from the environment is known. Each text that troubleshooting.md quotes
occurs in the sources. Options of pccl-master in a guide exist. --self-test
breaks each of these once.
"""
import pathlib
import re
import sys

import literals

SOURCES = ('src/**/*.c', 'src/**/*.h', 'cmake/*.sh', 'cmake/*.cmake')
READERS = ('src/**/*.c', 'python/src/**/*.c', 'python/src/**/*.py')
# Of CMake, of headers, and of programs of the tests: not of the environment.
BUILD = re.compile(r'PCCL_(MPI|CUDA|HWLOC|CORES_ONLY|WERROR|SANITIZE|'
                   r'PYTHON_PACKAGE|VERSION\w*)$')


def known(root):
    text = (root / 'src/base/env.h').read_text()
    return set(re.findall(r'X\((PCCL_\w+)', text))


def variables(root, page):
    """Every variable is in the first column, and nothing else is."""
    rows = [line.split('|')[1] for line in page.split('\n')
            if line.startswith('| `PCCL_')]
    told = {name for row in rows for name in re.findall(r'`(PCCL_\w+)`', row)}
    faults = [f'tuning.md lacks {name}' for name in sorted(known(root) - told)]
    return faults + [f'tuning.md has {name}, which nothing knows'
                     for name in sorted(told - known(root))]


def readers(root, names):
    """What is read by getenv is in the list of src/base/env.h."""
    faults, count = [], 0
    for pattern in READERS:
        for path in root.glob(pattern):
            for name in re.findall(r'getenv\(\s*["\'](PCCL_\w+)',
                                   path.read_text()):
                count += 1
                if name not in names:
                    faults.append(f'{path.relative_to(root)} reads {name}, '
                                  'which env.h lacks')
    return faults if count else ['no source reads the environment']


def all_texts(root):
    texts = []
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            source = path.read_text()
            if path.suffix == '.cmake':
                source = source.replace('\\\n', '')
            texts += literals.of_c(source)
    return texts


def quotes(page, texts):
    """The parts between dots occur in one text, in their order."""
    rows = re.findall(r'^\| `([^`]+)` \|', page, re.M)
    faults = []
    for row in rows:
        parts = [part.strip() for part in row.split('...') if part.strip()]
        pattern = '.*'.join(re.escape(part) for part in parts)
        found = any(re.search(pattern, text, re.S) for text in texts)
        if not parts or not found:
            faults.append(f'troubleshooting.md: nothing says: {row}')
    return faults if rows else ['troubleshooting.md quotes nothing']


def options(root, name, page):
    table = ''.join((root / 'src/launch' / file).read_text()
                    for file in ('option_table.c', 'options.c',
                                 'option_places.c', 'pccl-master.1')
                    if (root / 'src/launch' / file).exists())
    table = table.replace('\\-', '-')
    faults = []
    for block in re.findall(r'```sh\n(.*?)```', page, re.S):
        for line in block.split('\n'):
            _, found, rest = line.partition('pccl-master ')
            for word in rest.split() if found else []:
                if word[0] in './#&' or word in ('pccl-bench', 'gdb'):
                    break  # the program, and what is its own
                option = word.lstrip('-').partition('=')[0]
                if word.startswith('-') and option not in table:
                    faults.append(f'{name}: {word} is no option')
    return faults


def check(root, pages, texts):
    faults = variables(root, pages['tuning.md'])
    faults += readers(root, known(root))
    faults += quotes(pages['troubleshooting.md'], texts)
    for name, page in pages.items():
        faults += options(root, name, page)
        for variable in set(re.findall(r'\bPCCL_[A-Z][A-Z_0-9]+\b', page)):
            if variable not in known(root) and not BUILD.match(variable) and \
                    not variable.startswith('PCCL_SYNC_'):
                faults.append(f'{name}: {variable} is no variable')
    return faults


def self_test(root, pages, texts):
    def spoiled(name, old, new):
        assert old in pages[name], (name, old)
        return dict(pages, **{name: pages[name].replace(old, new)})

    for name, old, new in (
            ('tuning.md', '| `PCCL_DEADLINE` |', '| deadline |'),
            ('tuning.md', '| `PCCL_DEADLINE` |', '| `PCCL_DEADLIN` |'),
            ('troubleshooting.md', 'is in flight already', 'flies already'),
            ('preemptible.md', '--restart 5', '--restarted 5'),
            ('preemptible.md', 'PCCL_DRAIN_SIGNAL=USR2', 'PCCL_DRAIN=USR2')):
        if not check(root, spoiled(name, old, new), texts):
            return [f'{name}: {new} is not noticed']
    return []


def main():
    root = pathlib.Path(sys.argv[1])
    pages = {path.name: path.read_text()
             for path in sorted((root / 'docs').glob('*.md'))}
    what = self_test if '--self-test' in sys.argv else check
    faults = what(root, pages, all_texts(root))
    for fault in faults:
        print(fault)
    print(f'{len(pages)} pages, {len(faults)} faults')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
