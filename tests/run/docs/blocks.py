#!/usr/bin/env python3
"""blocks.py SOURCE BIN PAGE - the commands of a page run as they stand.

In a folder of its own, beside hosts of its own (hosts.py), with the programs of
BIN in PATH. Each block has to end with status 0. page_blocks.py has the marks
of blocks that run otherwise, or not at all.

    blocks.py --list SOURCE BUILD PAGES...  each block, how it runs or why not
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import hosts
import page_blocks

PATIENCE = int(os.environ.get('PATIENCE') or 600)
STEP = 0.02  # for a step of another process
SMALL = '--batch 32 --hidden 16'


class Fault(Exception):
    pass


def listed(source, build, names):
    known = subprocess.run(['ctest', '-N', '--test-dir', build], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    tests = set(re.findall(r'Test +#\d+: (\S+)', known))
    faults, run, files, reasons = [], 0, 0, 0
    for name in names:
        for block in page_blocks.of(name, (source / name).read_text()):
            fault = page_blocks.faults(block, tests)
            if not fault and block.language == 'sh' and subprocess.run(
                    ['sh', '-n'], input=block.text.encode(),
                    check=False).returncode != 0:
                fault = f'{block}: the shell does not understand it'
            faults += [fault] if fault else []
            run += block.runs()
            files += block.kind == 'file'
            reasons += block.kind == 'not run'
            print(f'{block}: {block.kind or "run"} {block.rest}')
    for fault in faults:
        print(f'fault: {fault}')
    print(f'{run} blocks run, {files} are files, {reasons} do not run')
    return 1 if faults or not run else 0


class Page:
    """The blocks of a page, in their order."""

    def __init__(self, source, bin_, work):
        self.source, self.bin, self.work = source, bin_, work
        self.hosts = hosts.Hosts(work)
        self.lasting = []   # (command, process, its log) under way
        self.masters = {}   # (host, port) -> the same, of a coordinator
        self.count = 0
        for name in self.hosts.keepers:
            self.furnish(work / name)
        for name in [n for n in os.environ if n.startswith(('PCCL_', 'PMI'))]:
            del os.environ[name]
        (work / 'tmp').mkdir()
        os.environ.update(
            PATH=f'{work}/bin:{bin_}:{os.environ["PATH"]}',
            PKG_CONFIG_PATH=str(bin_.parent), OMP_NUM_THREADS='1',
            HOME=str(work / 'node1'), TMPDIR=str(work / 'tmp'), XDG_RUNTIME_DIR=str(work / 'tmp'))

    def furnish(self, home):
        """What the pages call program, train and FILE. `program` makes a
        thousand sums; `train` admits newcomers."""
        (home / 'FILE').write_text(
            (self.source / 'CONTRIBUTING.md').read_text())
        for name in ('all_reduce', 'elastic_train', 'hello_loop',
                     'partial_rounds', 'unequal'):
            (home / name).symlink_to(self.bin / name)
        (home / 'train.c').write_text(
            '#include <pccl_train.h>\n'
            'int main(void) { return !pcclDilocoStep; }\n')
        train = home / 'train'
        train.write_text('#!/bin/sh\n'
                         f'exec elastic_train --steps 40 {SMALL} FILE\n')
        train.chmod(0o755)

    def program(self):
        """The program of the README, compiled for the pages that run it."""
        readme = page_blocks.of('', (self.source / 'README.md').read_text())
        text, = (b.text for b in readme if b.rest == 'program.c')
        for home in (self.work / name for name in self.hosts.keepers):
            (home / 'program.c').write_text(text)
            subprocess.run(['mpicc', '-o', home / 'program',
                            home / 'program.c'], check=True)

    def write(self, blocks):
        """What has to be there before the first block runs."""
        if any('program' in block.text for block in blocks):
            self.program()
        for block in blocks:
            if block.kind == 'file':
                path = self.work / 'node1' / block.rest
                path.write_text(block.text)
                path.chmod(0o755)

    def start(self, host, words, **more):
        return subprocess.Popen(self.hosts.on(host) + words, **more,
                                stdin=subprocess.DEVNULL,
                                start_new_session=True)

    def run(self, block):
        if block.rest == 'beside':
            self.run_beside(block)
            return
        home = self.work / 'node1'
        if block.rest == 'in the tree':
            home = self.tree()
        state = self.work / 'state'
        script = f'{block.text}\nexport -p >"{state}"\n'
        if state.exists():
            script = f'. "{state}"\n{script}'
        log = self.log()
        process = self.start('node1', ['sh', '-ec', script], cwd=home,
                             stdout=log, stderr=log)
        self.ended(block, process)

    def tree(self):
        tree = self.work / 'tree'
        if not tree.exists():
            tree.mkdir()
            for path in (self.source / 'README.md', self.source / 'examples',
                         self.bin.parent, self.work / 'node1/program.c'):
                (tree / path.name).symlink_to(path)
        return tree

    def log(self):
        self.count += 1
        return open(self.work / f'{self.count:03}.log', 'wb')

    def ended(self, what, process):
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired as late:
            raise Fault(f'{what}: not over after {PATIENCE} s') from late
        if status != 0:
            raise Fault(f'{what}: status {status}')

    def run_beside(self, block):
        """Each command on its hosts. What joins or listens runs beside the
        next ones; a coordinator stays until another one takes its place."""
        for command, names in page_blocks.commands(block.text):
            for name in names:
                self.begin(f'{block}: {command} (on {name})', name, command)
        for what, process in self.lasting:
            self.ended(what, process)
        self.lasting = []

    def begin(self, what, name, command):
        lasting = '--detach' not in command and \
            re.search(r'--listen|--join|PCCL_MASTER=|&$', command)
        command = command.rstrip('&').strip()
        listen = re.search(r'--listen[ =](\S*)', command)
        port = listen and int(listen.group(1).rpartition(':')[2] or 48148)
        if listen:
            self.end((name, port))
        env = dict(os.environ, HOME=str(self.work / name))
        if self.masters:
            env['COORDINATOR'] = str(list(self.masters.values())[-1][1].pid)
        if command.startswith('pccl-master'):
            command = f'exec {command}'
        log = self.log()
        process = self.start(name, ['sh', '-ec', command], stdout=log,
                             stderr=log, env=env, cwd=self.work / name)
        if not lasting:
            self.ended(what, process)
            return
        if not listen:
            self.lasting.append((what, process))
            return
        began = time.monotonic()
        while not self.hosts.listens(name, port):
            if process.poll() is not None:
                raise Fault(f'{what}: ended with {process.returncode}')
            if time.monotonic() - began > PATIENCE:
                raise Fault(f'{what}: does not listen')
            time.sleep(STEP)
        if re.search(r' -(n|f|hosts) | --until-done', command):
            self.lasting.append((what, process))
        else:
            self.masters[name, port] = (what, process)

    def end(self, place):
        """Ends the coordinator there, as an operator does."""
        if place in self.masters:
            what, process = self.masters.pop(place)
            process.terminate()
            self.ended(what, process)

    def finish(self):
        for place in list(self.masters):
            self.end(place)

    def show(self):
        for path in sorted(self.work.glob('*.log')):
            print(f'== {path.name}')
            print(path.read_text(errors='replace')[-4000:])


def main():
    if sys.argv[1:2] == ['--list']:
        return listed(pathlib.Path(sys.argv[2]), *sys.argv[3:4], sys.argv[4:])
    source, bin_ = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    blocks = page_blocks.of(sys.argv[3], (source / sys.argv[3]).read_text())
    if not any(block.runs() for block in blocks):
        print('no block of this page runs')
        return 0
    why = hosts.enter(sys.argv)
    if why:
        print(f'skipped: {why}')
    return 77 if why else run_page(source, bin_, blocks)


def run_page(source, bin_, blocks):
    work = pathlib.Path(tempfile.mkdtemp())
    try:
        page = Page(source, bin_, work)
        try:
            page.write(blocks)
            for block in blocks:
                if not block.runs():
                    continue
                if block.tool():
                    print(f'{block}: no {block.tool()}')
                    continue
                began = time.monotonic()
                page.run(block)
                print(f'{block}: {time.monotonic() - began:.1f} s', flush=True)
            page.finish()
        except Fault as fault:
            page.show()
            print(f'FAILED: {fault}')
            return 1
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == '__main__':
    sys.exit(main())
