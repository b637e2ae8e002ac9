#!/usr/bin/env python3
"""successor.py KIND MASTER MEMBER [KILLS] - coordinators that are killed while a run
goes on, and the next one on the same address with the same journal (rules H).

With a KIND "kept-..." there is no journal: the members keep the record (H10).

kills  kill -9 amid updates, votes, synchronizations and sums, KILLS times (8): every
       member stays, every mean is right, the state is equal in the end. Prints how long
       the run took to its next step.
churn  a member dies with the coordinator, and a newcomer comes after it
key    as kills, in a run with a key
found  coordinators that are killed before there is a run, and a newcomer while there
       is none: all wait for the next one (PCCL_MASTER_GRACE)
none   no coordinator comes: members say so when the grace is over
old    one with an old copy of the journal is not listened to; the right one then is
standby  of three coordinators the one that leads is killed, again and again, and
       started again, and stands by
asleep  ... is stopped, and wakes up when another one leads: it is not listened to
most   most members die with the coordinator, and the rest is told so
mpi    ranks of an MPI program that pccl-master --join has started; they end while
       there is no coordinator
"""

import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 120  # seconds; for bugs only
DEADLINE = '3'


class Failure(Exception):
    pass


class Process:
    """A program whose lines are read as they come."""

    def __init__(self, command, **more):
        self.lines, self.told = [], threading.Condition()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            **more)
        self.over = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.told:
                self.lines.append((time.monotonic(), line.rstrip()))
                self.told.notify_all()
        with self.told:
            self.over = True
            self.told.notify_all()

    def wait(self, begins, first=0, ended=False, has=''):
        """The place, behind `first`, of a line that begins and has so. With `ended`
        the process may have ended without: then its last line's."""
        end = time.monotonic() + PATIENCE
        with self.told:
            at = first
            while True:
                while at < len(self.lines):
                    line = self.lines[at][1]
                    if line.startswith(begins) and has in line:
                        return at
                    at += 1
                if self.over and ended:
                    return len(self.lines)
                if self.over or time.monotonic() > end:
                    raise Failure(f'no line "{begins}{has}" of {self.process.args}:\n'
                                  + self.text())
                self.told.wait(1)

    def text(self):
        return '\n'.join(line for _, line in self.lines[-15:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        code = self.process.wait(PATIENCE)
        self.reader.join()
        return code


class Run:
    def __init__(self, master, member, folder, grace, quorum=3, key=False,
                 journal=True, coordinators=1):
        self.master_program, self.member_program = master, member
        self.folder = pathlib.Path(folder)
        self.grace, self.quorum, self.key = grace, quorum, key
        self.stop = self.folder / 'stop'
        self.journal = self.folder / 'journal' if journal else None
        self.members, self.coordinator = [], None
        self.launcher = []
        # An address that no process gets by itself: the port stays free while
        # the coordinator is dead.
        pid = os.getpid()
        self.host = f'127.77.{pid // 250 % 250 + 1}.{pid % 250 + 1}'
        self.addresses = [self.free() for _ in range(coordinators)]
        self.others = []
        if key:
            token = self.folder / 'token'
            subprocess.run([master, '--make-token', token], check=True)

    def free(self):
        with socket.socket() as s:
            s.bind((self.host, 0))
            return f'{self.host}:{s.getsockname()[1]}'

    def start(self, journal=None, at=0):
        command = [self.master_program, '--listen', self.addresses[at],
                   '--quorum', str(self.quorum), '--master-grace', str(self.grace)]
        if journal or self.journal:
            command += ['--journal', str(journal or self.journal)]
        if self.key:
            command += ['--token-file', str(self.folder / 'token')]
        if len(self.addresses) > 1:
            command += ['--masters', ','.join(self.addresses)]
        env = dict(os.environ, PCCL_DEADLINE=DEADLINE)
        self.coordinator = Process(command, env=env)
        return self.coordinator

    def join(self, **more):
        env = dict(os.environ, PCCL_DEADLINE=DEADLINE,
                   PCCL_MASTER=','.join(self.addresses),
                   PCCL_MASTER_PATIENCE=DEADLINE, **more)
        if self.key:
            env['PCCL_TOKEN_FILE'] = str(self.folder / 'token')
        self.members.append(Process(
            [*self.launcher, self.member_program, str(self.stop)], env=env))
        return self.members[-1]

    def await_registered(self, member):
        command = [self.master_program, '--status', self.addresses[0]]
        end = time.monotonic() + PATIENCE
        while True:
            said = subprocess.run(command, capture_output=True, text=True)
            if f'{member.process.pid}' in said.stdout:
                return
            if time.monotonic() > end:
                raise Failure(f'{member.process.pid} is not in {said}')
            time.sleep(.01)  # for another process

    def steps(self, count):
        """All members make so many steps more."""
        seen = [len(m.lines) for m in self.members]
        for m, first in zip(self.members, seen):
            for _ in range(count):
                first = m.wait('step ', first) + 1

    def finish(self):
        self.stop.touch()
        ends = set()
        for m in self.members:
            at = m.wait('end ')
            ends.add(m.lines[at][1])
            if m.end() != 0:
                raise Failure(m.text())
        if len(ends) != 1:
            raise Failure(f'the ends differ: {ends}')

    def clean(self):
        for p in [*self.members, self.coordinator, *self.others]:
            if p and p.process.poll() is None:
                p.kill()


def begin(run, members=3):
    run.start()
    run.coordinator.wait('')
    for _ in range(members):
        run.join()
    run.steps(5)


def kills(run, count):
    begin(run)
    took = []
    for i in range(count):
        # Not at the same place of a pass: the coordinator is asked in each.
        run.members[0].wait('step ', len(run.members[0].lines) + i % 3)
        before = [len(m.lines) for m in run.members]
        run.coordinator.kill()
        began = time.monotonic()
        run.start()
        # The step under way may end without a coordinator; the next one not.
        for m, first in zip(run.members, before):
            for _ in range(3):
                first = m.wait('step ', first) + 1
        took.append(max(m.lines[m.wait('step ', first)][0]
                        for m, first in zip(run.members, before)) - began)
        run.steps(10)
    for m in run.members:
        if any(line.split()[2] != '3' for _, line in m.lines
               if line.startswith('step ')):
            raise Failure('a member was lost')
    run.finish()
    took.sort()
    print(f'{count} coordinators killed; to the first step of all: '
          f'median {statistics.median(took):.3f} s, most {took[-1]:.3f} s')


def churn(run):
    begin(run)
    run.members[2].kill()
    run.coordinator.kill()
    del run.members[2]
    run.start()
    run.steps(10)
    newcomer = run.join()
    newcomer.wait('step ')
    run.coordinator.kill()
    run.start()
    run.steps(10)
    if newcomer.lines[-1][1].split()[-1] != '3':
        raise Failure('it has not joined: ' + newcomer.text())
    run.finish()


def found(run):
    grace = {'PCCL_MASTER_GRACE': '60'}
    run.join(**grace)
    for _ in range(2):
        run.start()
        run.coordinator.wait('pccl-master: listening')
        run.await_registered(run.members[0])
        run.coordinator.kill()
        run.join(**grace)
    run.start()
    run.steps(10)
    run.coordinator.kill()
    run.join(**grace)
    run.start()
    run.members[3].wait('step ')
    run.steps(10)
    if run.members[3].lines[-1][1].split()[-1] != '4':
        raise Failure('it has not joined: ' + run.members[3].text())
    run.finish()


def none(run):
    begin(run)
    run.coordinator.kill()
    for m in run.members:
        if m.end() != 3:
            raise Failure(m.text())
        if 'no coordinator has come in place of the one that was lost' not in m.text():
            raise Failure(m.text())


def old(run):
    begin(run)
    copy = run.folder / 'copy'
    shutil.copy(run.journal, copy)
    run.coordinator.kill()
    run.start()
    run.steps(10)
    run.coordinator.kill()
    run.start(copy)
    run.coordinator.wait('', has='this one has an old copy of the journal')
    run.coordinator.kill()
    run.start()
    run.steps(10)
    run.finish()


def most(run):
    begin(run)
    # It first: else it may install the view without them before it dies.
    run.coordinator.kill()
    for m in run.members[1:]:
        m.kill()
    run.start()
    rest = run.members[0]
    if rest.end() != 3 or 'no more than half of the members' not in rest.text():
        raise Failure(rest.text())


def standby(run, count):
    all_of_them = [run.start(at=at) for at in range(3)]
    run.others = all_of_them
    for p in all_of_them:
        p.wait('pccl-master: listening')
    for _ in range(3):
        run.join()
    run.steps(5)
    took = []
    for i in range(count):
        before = [len(m.lines) for m in run.members]
        all_of_them[i % 3].kill()
        began = time.monotonic()
        for m, first in zip(run.members, before):
            for _ in range(3):
                first = m.wait('step ', first) + 1
        took.append(time.monotonic() - began)
        all_of_them[(i + 1) % 3].wait('', has='of 3 members are back')
        all_of_them[i % 3] = run.start(at=i % 3)
        all_of_them[i % 3].wait('pccl-master: listening')
        run.steps(5)
    newcomer = run.join()
    newcomer.wait('step ')
    run.steps(5)
    run.finish()
    print(f'{count} leading coordinators killed; to the third step of all: '
          f'median {statistics.median(took):.3f} s, most {max(took):.3f} s')


def asleep(run):
    first, second = run.start(at=0), run.start(at=1)
    run.others = [first, second]
    for p in run.others:
        p.wait('pccl-master: listening')
    for _ in range(3):
        run.join()
    run.steps(5)
    first.process.send_signal(signal.SIGSTOP)
    second.wait('', has='3 of 3 members are back')
    run.steps(10)
    first.process.send_signal(signal.SIGCONT)
    first.wait('', has='no member any more')
    run.steps(30)
    run.finish()


def mpi(run, count):
    """Ranks of an MPI program whose launchers join; the last coordinator dies when
    they end."""
    run.launcher = [run.master_program, '--join', run.addresses[0]]
    run.start().wait('pccl-master: listening')
    for _ in range(3):
        run.join()
    first = None
    while not first:
        first = next((m for m in run.members if 'step ' in m.text()), None)
        time.sleep(.01)  # for another process
    for i in range(count + 1):
        seen = len(first.lines)
        run.coordinator.kill()
        if i == count:
            run.stop.touch()
        run.start().wait('', has='3 of 3 members are back')
        for _ in range(3 if i < count else 0):
            seen = first.wait('step ', seen) + 1
    run.finish()


def main():
    kind, master, member = sys.argv[1:4]
    kept = kind.startswith('kept-')
    kind = kind.removeprefix('kept-')
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 8
    with tempfile.TemporaryDirectory() as folder:
        grace = {'churn': 4, 'none': 2, 'most': 4}.get(kind, 60)
        run = Run(master, member, folder, grace, key=kind == 'key',
                  journal=not kept and kind not in ('standby', 'asleep'),
                  coordinators={'standby': 3, 'asleep': 2}.get(kind, 1))
        try:
            if kind in ('kills', 'key'):
                kills(run, count)
            elif kind == 'mpi':
                mpi(run, count // 2)
            elif kind == 'standby':
                standby(run, count)
            else:
                {'churn': churn, 'found': found, 'none': none, 'old': old,
                 'most': most, 'asleep': asleep}[kind](run)
        except Failure as failure:
            print(failure)
            for p in [run.coordinator, *run.others, *run.members]:
                print('---', p.process.args, p.process.poll())
                print(p.text())
            return 1
        finally:
            run.clean()
    return 0


if __name__ == '__main__':
    sys.exit(main())
