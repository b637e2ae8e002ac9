#!/usr/bin/env python3
"""c_blocks.py SOURCE CC WORK - the C of the pages compiles.

Each block between ```c and ``` is the body of a function, unless it has a main
of its own. `...` stands for what a page leaves out, and c_blocks.h declares what
the text around the blocks has: a wrong name, a wrong order of arguments or a
member that is not there does not compile.
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


def main():
    source, compiler, work = sys.argv[1:4]
    source, work = pathlib.Path(source), pathlib.Path(work)
    here = pathlib.Path(__file__).parent
    work.mkdir(exist_ok=True)
    count, faults = 0, 0
    for page in sorted(source.glob('docs/*.md')):
        text = page.read_text()
        blocks = [(text.count('\n', 0, m.start(1)) + 1, m.group(1))
                  for m in re.finditer(r'^```c\n(.*?)^```$', text,
                                       re.M | re.S)]
        if not blocks:
            continue
        count += len(blocks)
        path = work / f'{page.name}.c'
        path.write_text(program(blocks))
        done = subprocess.run(
            [compiler, '-std=gnu11', '-Wall', '-Werror', '-Wno-unused',
             '-fsyntax-only', f'-I{source}/include',
             f'-I{source}/include/mpich', f'-I{here}', path],
            stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print(f'{page.name}:\n{done.stderr}')
            faults += 1
    print(f'{count} blocks, {faults} pages with faults')
    return 1 if faults or not count else 0


if __name__ == '__main__':
    sys.exit(main())
