#!/usr/bin/env python3
"""c_blocks.py SOURCE CC WORK - the C of the pages compiles, and the calls in the
comments of the public headers.

Each block between ```c and ``` is the body of a function, unless it has a main
of its own. `...` stands for what a page leaves out, and c_blocks.h declares what
the text around the blocks has: a wrong name, a wrong order of arguments or a
member that is not there does not compile. In a comment each call with arguments is
an expression of its own, and `...` in it stands for those that are missing.
"""
import pathlib
import re
import subprocess
import sys

HEAD = '''#include "c_blocks.h"
'''
LEFT_OUT = ((r'\{\.\.\.\}', '{0}'),                      # an initializer
            (r'(?m)^( *)\.\.\.(.*\.\.\.)?\s*$', r'\1;'))  # statements


def program(blocks):
    text = HEAD
    for number, (line, block) in enumerate(blocks):
        for pattern, place in LEFT_OUT:
            block = re.sub(pattern, place, block)
        if re.search(r'^int main', block, re.M):
            continue  # page_readme compiles and runs it
        kind = 'PCCL_Shared_state *' if 'PCCL_' in block else \
            'pcclSharedState_t '
        text += (f'static pcclResult_t block_{number}({kind}state)\n{{\n'
                 'for (int once = 0; once < 1; once++) {\n'
                 f'#line {line}\n{block}}}\nreturn pcclSuccess;\n}}\n')
    uses = ''.join(f'(void)block_{n};' for n in range(len(blocks))
                   if f'block_{n}(' in text)
    return f'{text}int main(void)\n{{\n{uses}\nreturn 0;\n}}\n'


# Of a call in a comment: what the text around it has.
AROUND = {'pccl': 'pcclSharedState_t state, const char *directory, pcclProgress_t p',
          'PCCL': 'PCCL_Shared_state *state, const char *directory, '
                  'PCCL_Progress progress, int found'}
CALL = r'\b((?:pccl[A-Z]|PCCL_|MPIX_)\w*)\(([^()]*(?:\([^()]*\)[^()]*)*)\)'


def calls(text):
    """(line, name, arguments) of the calls in the comments of a header."""
    for comment in re.finditer(r'/\*.*?\*/', text, re.S):
        for call in re.finditer(CALL, comment.group()):
            arguments = re.sub(r'\s*\n \*\s*', ' ', call.group(2)).strip()
            if arguments:
                at = comment.start() + call.start()
                yield text.count('\n', 0, at) + 1, call.group(1), arguments


def parameters(text):
    """The number of parameters of each function that a header declares."""
    code = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    return {m.group(1): m.group(2).count(',') + 1 for m in re.finditer(
        r'\b((?:pccl[A-Z]|PCCL_|MPIX_)\w*)\(([^()]*)\);', code)}


def header_program(text):
    counts, functions, number = parameters(text), '', -1
    for number, (line, name, arguments) in enumerate(calls(text)):
        given = [a.strip() for a in re.split(r',(?![^(]*\))', arguments)]
        if '...' in given:
            at = given.index('...')
            missing = counts.get(name, len(given)) - len(given) + 1
            given[at:at + 1] = ['0'] * missing
        functions += (f'void call_{number}({AROUND[name[:4]]});\n'
                      f'void call_{number}({AROUND[name[:4]]})\n{{\n'
                      f'#line {line}\n(void){name}({", ".join(given)});\n}}\n')
    return number + 1, HEAD + functions


def compiles(compiler, source, path, name):
    here = pathlib.Path(__file__).parent
    done = subprocess.run(
        [compiler, '-std=gnu11', '-Wall', '-Werror', '-Wno-unused',
         '-fsyntax-only', f'-I{source}/include', f'-I{source}/include/mpich',
         f'-I{here}', path], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f'{name}:\n{done.stderr}')
    return done.returncode == 0


def main():
    source, compiler, work = sys.argv[1:4]
    source, work = pathlib.Path(source), pathlib.Path(work)
    work.mkdir(exist_ok=True)
    count, faults = 0, 0
    for page in sorted({*source.glob('docs/*.md'), *source.glob('*.md'),
                        *source.glob('*/README.md')}):
        text = page.read_text()
        blocks = [(text.count('\n', 0, m.start(1)) + 1, m.group(1))
                  for m in re.finditer(r'^```c\n(.*?)^```$', text,
                                       re.M | re.S)]
        if not blocks:
            continue
        count += len(blocks)
        path = work / f'{page.parent.name}.{page.name}.c'
        path.write_text(program(blocks))
        faults += not compiles(compiler, source, path, page.name)
    for header in ('pccl.h', 'mpi_pccl.h', 'pccl_loop.h', 'pccl_train.h'):
        found, text = header_program((source / 'include' / header).read_text())
        count += found
        path = work / f'{header}.c'
        path.write_text(text)
        faults += not compiles(compiler, source, path, header)
    print(f'{count} blocks and calls, {faults} pages with faults')
    return 1 if faults or not count else 0


if __name__ == '__main__':
    sys.exit(main())
