#!/usr/bin/env python3
"""keeper.py KIND MASTER MEMBER [KILLS] - detached jobs whose launcher is killed by
kill -9, and the next one (pccl-master --detach --master-grace, --attach).

early    before all ranks are up: at once, and when the coordinator listens
loop     KILLS times (8) amid sums, votes and synchronizations, every other time the
         next launcher as well, before it has done anything; every line once
mpi      as that, an MPI program
key      as that, in a run with a key
again    a new job with the journal of one that was killed
together the keeper is slow, and learns of all that at once
unseen   a rank is killed while nobody is there: the others go on without it
respawn  a rank and the launcher at once: the rank is started again
spare    a rank while nobody is there, and there is a spare
fails    a rank of a job that is not elastic exits while nobody is there
restart  a launcher that is killed when it is about to start the job again
output   ranks that write a lot: each byte once, in files of the ranks, too
none     nobody attaches: the ranks end, and nothing is left
stopped  the keeper is told to end, and one that is killed
usage    what is refused
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 120  # seconds; for bugs only


class Failure(Exception):
    pass


def wait_for(what, condition):
    """For a change in another process, which nothing here is told of."""
    end = time.monotonic() + PATIENCE
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failure('waited in vain for ' + what)
        time.sleep(.005)


def is_gone(pid):
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(')', 1)[1].split()[0] in 'ZX'


class Job:
    def __init__(self, master, folder, grace=60):
        self.master, self.folder = master, pathlib.Path(folder)
        self.grace, self.number, self.follower = grace, 0, None
        self.stop = self.folder / 'stop'

    def path(self, suffix=''):
        return self.folder / f'state{self.number}{suffix}'

    def start(self, *command):
        self.number += 1
        self.stop.unlink(missing_ok=True)
        done = subprocess.run(
            [self.master, '--detach', '--state', self.path(), '--journal',
             self.path('.journal'), '--master-grace', str(self.grace), *command],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ, PCCL_DEADLINE='3'))
        if done.returncode != 0:
            raise Failure(f'--detach: {done}')
        told = int(re.search('as process ([0-9]+);', done.stdout)[1])
        if told != self.launcher():
            raise Failure(f'{done.stdout} {self.path().read_text()}')

    def processes(self, name):
        return [int(line.split()[1]) for line in self.path().read_text().splitlines()
                if line.startswith(name + ' ')]

    def launcher(self):
        return self.processes('process')[-1]

    def keeper(self):
        return self.processes('keeper')[-1]

    def ranks(self):
        """By rank: its process, of those that run."""
        found = {}
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                state, parent = (process / 'stat').read_text().rsplit(')', 1)[1].split()[:2]
                text = (process / 'environ').read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            rank = re.search(rb'(?:^|\0)LOCAL_RANK=([0-9]+)', text)
            if rank and state not in 'ZX' and int(parent) == self.keeper():
                found[int(rank[1])] = int(process.name)
        return found

    def kill(self):
        """The launcher. Returns when it is dead; it may have ended before."""
        pid = self.launcher()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return pid
        wait_for(f'the end of {pid}', lambda: is_gone(pid))
        return pid

    def attach(self):
        """Its output goes to files: one that nobody reads would stop it."""
        with (open(self.path('.seen'), 'w') as out,
              open(self.path('.said'), 'w') as err):
            self.follower = subprocess.Popen(
                [self.master, '--attach', '--state', self.path()], stdout=out,
                stderr=err)

    def next_one(self, after):
        wait_for('another launcher', lambda: self.launcher() != after)

    def out(self):
        return self.path('.out').read_text().splitlines()

    def err(self):
        return self.path('.err').read_text()

    def lines(self, count):
        """So many lines more."""
        many = len(self.out()) + count
        wait_for(f'line {many}', lambda: len(self.out()) >= many)

    def end(self, status):
        """Of the job: it is over, and nothing is left."""
        keeper = self.keeper()
        self.follower.wait(PATIENCE)
        out, err = (self.path(s).read_text() for s in ('.seen', '.said'))
        if self.follower.returncode != status:
            raise Failure(f'status {self.follower.returncode}, and not {status}')
        if out.splitlines() != self.out():
            raise Failure('it has not been shown as it was written')
        wait_for('the end of the keeper', lambda: is_gone(keeper))
        if 'Sanitizer' in self.err() or 'runtime error' in self.err():
            raise Failure('a fault')
        last = self.path().read_text().splitlines()[-1]
        if last != f'ended {status}':
            raise Failure(f'the state ends with "{last}"')
        return err

    def has(self, text, times=1):
        if self.err().count(text) != times:
            raise Failure(f'"{text}" is not there {times} times')

    def has_sums(self, members):
        """Each step of each of them once, and the same end."""
        out = self.out()
        ends = [line for line in out if line.startswith('end ')]
        if len(ends) != members or len(set(ends)) != 1:
            raise Failure(f'the ends: {ends}')
        steps = {}
        for line in out:
            if not line.startswith(('step ', 'end ')):
                raise Failure(f'a line "{line}"')
            if line.startswith('step '):
                number = int(line.split()[1])
                steps[number] = steps.get(number, 0) + 1
        count = int(ends[0].split()[1])
        if sorted(steps) != list(range(count)):
            raise Failure('a step is missing')
        return steps

    def clean(self):
        if self.follower and self.follower.poll() is None:
            self.follower.kill()
        for name in 'keeper', 'process':
            if not self.number or not self.path().exists():
                continue
            for pid in self.processes(name):
                try:
                    comm = pathlib.Path(f'/proc/{pid}/comm').read_text()
                    if comm.startswith('pccl-'):
                        os.kill(pid, signal.SIGKILL)
                except (FileNotFoundError, ProcessLookupError):
                    pass

    def tell(self):
        for suffix in '', '.out', '.err':
            if self.number and self.path(suffix).exists():
                text = self.path(suffix).read_text()
                print(f'--- {suffix or "state"}:\n{text[-2000:]}')


def early(job, member, _):
    for moment in ('', 'coordinator', 'first'):
        job.start('-n', '3', '--elastic', member, job.stop)
        if moment == 'coordinator':
            wait_for('a coordinator', lambda: 'coordinator' in job.path().read_text())
        if moment == 'first':
            wait_for('a rank', job.ranks)
        was = job.kill()
        job.attach()
        job.next_one(was)
        job.lines(20)
        job.stop.touch()
        job.end(0)
        if set(job.has_sums(3).values()) != {3}:
            raise Failure('a rank was not in each step')


def loop(job, member, kills):
    job.start('-n', '3', '--elastic', member, job.stop)
    job.lines(10)
    job.attach()
    for i in range(kills):
        was = job.kill()
        job.next_one(was)
        if i % 2:
            was = job.kill()
            job.next_one(was)
        job.lines(30 + i % 3)
    job.stop.touch()
    said = job.end(0)
    if set(job.has_sums(3).values()) != {3}:
        raise Failure('a rank was not in each step')
    if said.count('goes on with its ranks') < kills:
        raise Failure('who attaches is not told: ' + said)


def mpi(job, member, kills):
    """Elastic or not; MPI_Finalize waits for the next launcher as well."""
    for options in (), ('--elastic',):
        job.start('-n', '3', *options, member, job.stop)
        job.lines(2)
        job.attach()
        for _ in range(kills // 2):
            was = job.kill()
            job.next_one(was)
            job.lines(5)
        job.stop.touch()
        job.kill()
        job.end(0)
        out = job.out()
        count = len(out) - 3
        steps = [line for line in out if line.startswith('step ')]
        if steps != [f'step {10 * i}' for i in range(count)]:
            raise Failure(f'{count} steps: {steps}')
        ends = {line for line in out if line.startswith('end ')}
        if len(ends) != 1:
            raise Failure(f'{ends}')


def key(job, member, _):
    """Ranks of all launchers get it, also those that are started again."""
    token = job.folder / 'token'
    subprocess.run([job.master, '--make-token', token], check=True)
    job.start('-n', '3', '--elastic', '--respawn', '--token-file', token, member,
              job.stop)
    job.lines(10)
    job.attach()
    was = job.kill()
    job.next_one(was)
    wait_for('what it says', lambda: '3 of 3 members are back' in job.err())
    os.kill(job.ranks()[1], signal.SIGKILL)
    wait_for('a new rank', lambda: '1 rank joined' in job.err())
    was = job.kill()
    job.next_one(was)
    job.lines(30)
    job.stop.touch()
    job.end(0)
    job.has_sums(3)


def again(job, member, _):
    """A job with the journal of one that was killed as a whole waits for nobody."""
    job.start('-n', '2', '--elastic', member, job.stop)
    job.lines(4)
    keeper, launcher = job.keeper(), job.launcher()
    os.kill(keeper, signal.SIGKILL)
    os.kill(launcher, signal.SIGKILL)
    wait_for('their end', lambda: is_gone(keeper) and is_gone(launcher))
    journal = job.path('.journal')
    job.number += 1
    journal.rename(job.path('.journal'))
    job.number -= 1
    job.start('-n', '2', '--elastic', member, job.stop)
    wait_for('a step', lambda: len(job.out()) > 4)
    job.attach()
    job.stop.touch()
    job.end(0)
    if 'takes over' in job.err():
        raise Failure('it has waited')


def together(job, member, _):
    """The keeper learns at once of the launcher's death and of who attaches."""
    job.start('-n', '2', '--elastic', member, job.stop)
    for _ in range(3):
        job.lines(10)
        keeper = job.keeper()
        status = pathlib.Path(f'/proc/{keeper}/status')
        os.kill(keeper, signal.SIGSTOP)
        was = job.kill()
        if not job.follower:
            job.attach()
        bit = 1 << (signal.SIGUSR1 - 1)
        wait_for('a signal', lambda: bit & int(
            re.search('ShdPnd:\\s*([0-9a-f]+)', status.read_text())[1], 16))
        os.kill(keeper, signal.SIGCONT)
        job.next_one(was)
    job.stop.touch()
    job.end(0)
    job.has_sums(2)


def unseen(job, member, _):
    job.start('-n', '3', '--elastic', member, job.stop)
    job.lines(10)
    rank = job.ranks()[1]
    was = job.kill()
    os.kill(rank, signal.SIGKILL)
    wait_for('its end', lambda: is_gone(rank))
    job.attach()
    job.next_one(was)
    wait_for('a view of two', lambda: job.out()[-1].endswith(' 2'))
    job.stop.touch()
    job.end(0)
    job.has_sums(2)
    job.has('was killed by signal 9')
    job.has('2 left, going on')


def respawn(job, member, _):
    job.start('-n', '3', '--elastic', '--respawn', member, job.stop)
    job.lines(10)
    rank = job.ranks()[1]
    was = job.launcher()
    os.kill(rank, signal.SIGKILL)
    job.kill()
    job.attach()
    job.next_one(was)
    wait_for('a new rank', lambda: '1 rank joined' in job.err())
    was = job.kill()
    job.next_one(was)
    job.lines(30)
    job.stop.touch()
    job.end(0)
    job.has_sums(3)


def spare(job, member, _):
    job.start('-n', '2', '--elastic', '--spares', '1', member, job.stop)
    job.lines(10)
    rank = job.ranks()[1]
    was = job.kill()
    os.kill(rank, signal.SIGKILL)
    job.attach()
    job.next_one(was)
    wait_for('the spare', lambda: 'spare 2 takes part' in job.err())
    wait_for('its step', lambda: '1 rank joined' in job.err())
    job.stop.touch()
    job.end(0)
    job.has_sums(2)


WAITS = 'trap "exit 9" TERM; echo up $PCCL_RANK; while :; do sleep .02; done'


def fails(job, _, __):
    script = ('echo up $PCCL_RANK; [ $PCCL_RANK = 0 ] || exec sleep 1000; '
              f'until [ -e {job.stop} ]; do sleep .02; done; echo bye; exit 7')
    job.start('-n', '2', 'sh', '-c', script)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    rank = job.ranks()[0]
    was = job.kill()
    job.stop.touch()
    wait_for('its end', lambda: is_gone(rank))
    job.attach()
    job.next_one(was)
    job.end(7)
    job.has('exited with status 7; ending the job')
    if sorted(job.out()) != ['bye', 'up 0', 'up 1']:
        raise Failure(f'{job.out()}')


def restart(job, _, __):
    script = ('echo start $PCCL_RESTART; [ $PCCL_RESTART = 1 ] && exit 0; '
              f'until [ -e {job.stop} ]; do sleep .02; done; exit 5')
    job.start('-n', '2', '--restart', '1,5', 'sh', '-c', script)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    was = job.launcher()
    job.attach()
    job.stop.touch()
    wait_for('the end of the first start',
             lambda: 'starting the job again' in job.err())
    job.kill()
    job.next_one(was)
    job.end(0)
    if sorted(job.out()) != 2 * ['start 0'] + 2 * ['start 1']:
        raise Failure(f'{job.out()}')


def output(job, _, kills):
    many = 30000
    script = ('i=0; while [ $i -lt %d ]; do i=$((i+1)); '
              'echo "$PCCL_RANK $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; done' % many)
    for files in (), ('--output-filename', str(job.folder / 'of')):
        job.start('-n', '2', *files, 'sh', '-c', script)
        job.attach()
        for _ in range(kills):
            was = job.kill()
            wait_for('another launcher or the end',
                     lambda: job.launcher() != was or is_gone(job.keeper()))
        job.end(0)
        if files:
            names = sorted(job.folder.glob('of/**/stdout'))
            got = [line for name in names for line in name.read_text().splitlines()]
        else:
            got = job.out()
        for rank in '01':
            numbers = [int(line.split()[1]) for line in got if line[0] == rank]
            if numbers != list(range(1, many + 1)):
                raise Failure(f'rank {rank}: {len(numbers)} lines')


def none(job, member, _):
    before = set(os.listdir('/dev/shm'))
    job.start('-n', '3', '--elastic', member, job.stop)
    job.lines(10)
    ranks, keeper = job.ranks(), job.keeper()
    if len(ranks) != 3:
        raise Failure(f'{ranks}')
    job.kill()
    wait_for('the end of all',
             lambda: all(is_gone(pid) for pid in [*ranks.values(), keeper]))
    job.attach()
    job.end(3)
    if 'no coordinator has come in place' not in '\n'.join(job.out()):
        raise Failure(f'{job.out()[-3:]}')
    left = {name for name in set(os.listdir('/dev/shm')) - before if 'pccl' in name}
    if left:
        raise Failure(f'left: {left}')
    # Ranks that wait for nobody.
    job.start('-n', '2', 'sh', '-c', WAITS)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    ranks, keeper = job.ranks(), job.keeper()
    job.kill()
    wait_for('the end of all',
             lambda: all(is_gone(pid) for pid in [*ranks.values(), keeper]))
    job.attach()
    job.end(1)
    job.has('no launcher came for')


def stopped(job, _, __):
    job.start('-n', '2', 'sh', '-c', WAITS)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    ranks, keeper = job.ranks(), job.keeper()
    os.kill(keeper, signal.SIGTERM)  # it is for the launcher to decide
    job.kill()
    os.kill(keeper, signal.SIGTERM)
    wait_for('the end of all',
             lambda: all(is_gone(pid) for pid in [*ranks.values(), keeper]))
    job.attach()
    job.end(1)
    # A signal to the launcher is one to the job, as ever.
    job.start('-n', '2', 'sh', '-c', WAITS)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    was = job.kill()
    job.attach()
    job.next_one(was)
    wait_for('what it says', lambda: 'goes on with the job' in job.err())
    os.kill(job.launcher(), signal.SIGTERM)
    job.end(9)
    # Without its keeper.
    job.start('-n', '2', 'sh', '-c', WAITS)
    wait_for('two ranks', lambda: len(job.out()) == 2)
    ranks, keeper, launcher = job.ranks(), job.keeper(), job.launcher()
    os.kill(keeper, signal.SIGKILL)
    wait_for('the end of all',
             lambda: all(is_gone(pid) for pid in [*ranks.values(), launcher]))
    job.attach()
    job.end(1)
    job.has('the keeper of the ranks was killed')


def usage(job, _, __):
    journal = ('--journal', str(job.folder / 'journal'), '--master-grace', '5')
    state = ('--detach', '--state', str(job.folder / 'x'))
    for words, says in (
            ((*journal, '-n', '2', 'true'), 'only with --detach'),
            ((*state, *journal[2:], '-n', '2', 'true'), 'and --journal FILE'),
            ((*state, *journal, '-hosts', 'localhost,elsewhere', 'true'),
             'elsewhere is another one'),
            ((*state, *journal, '--join', '127.0.0.1:1', 'true'), 'no --join')):
        done = subprocess.run([job.master, *words], stderr=subprocess.PIPE, text=True)
        if done.returncode != 2 or says not in done.stderr:
            raise Failure(f'{words}: {done}')
    # What does not begin says so to those who attach.
    job.start('--token-file', '/nonexistent', '-n', '1', 'true')
    job.attach()
    job.follower.wait(PATIENCE)
    if '/nonexistent' not in job.path('.said').read_text():
        raise Failure('it does not say why')
    job.start('-n', '1', 'sh', '-c', WAITS)
    job.kill()
    done = subprocess.run(
        [job.master, '--detach', '--state', job.path(), '-n', '1', 'true'],
        stderr=subprocess.PIPE, text=True)
    if done.returncode != 1 or 'keeps the ranks of that job' not in done.stderr:
        raise Failure(f'{done}')


KINDS = {f.__name__: f for f in (early, loop, mpi, key, again, together, unseen, respawn, spare, fails,
                                 restart, output, none, stopped, usage)}


def main():
    kind, master, member = sys.argv[1:4]
    kills = int(sys.argv[4]) if len(sys.argv) > 4 else 8
    with tempfile.TemporaryDirectory() as folder:
        job = Job(master, folder, {'none': 2, 'unseen': 8, 'spare': 8,
                                   'respawn': 8}.get(kind, 60))
        try:
            KINDS[kind](job, member, kills)
        except (Failure, subprocess.TimeoutExpired) as failure:
            print(failure)
            job.tell()
            return 1
        finally:
            job.clean()
    return 0


if __name__ == '__main__':
    sys.exit(main())
