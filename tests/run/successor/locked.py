#!/usr/bin/env python3
"""locked.py MASTER MEMBER PAGE - coordinators of which `etcdctl lock` chooses.

The command is that of PAGE (docs/master.md), with addresses and files of this test. Two
candidates have one lock and one journal. The one that coordinates is killed alone,
with its etcdctl, as if its host was lost, and ended in order: the other one begins, and
the members go on. An etcdctl that is killed alone leaves its coordinator, and the
journal keeps the next one out.

Exits 77 where etcd is missing (Debian packages etcd-server, etcd-client)."""

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from successor import PATIENCE, Failure, Process, Run

SKIPPED = 77
TTL = 2  # seconds


class Etcd:
    def __init__(self, folder, host):
        self.folder = folder
        with socket.socket() as a, socket.socket() as b:
            a.bind((host, 0))
            b.bind((host, 0))
            self.address = f'{host}:{a.getsockname()[1]}'
            peer = f'http://{host}:{b.getsockname()[1]}'
        url = f'http://{self.address}'
        with open(folder / 'etcd.log', 'ab') as log:
            self.process = subprocess.Popen(
                ['etcd', '--data-dir', str(folder / 'etcd'),
                 '--listen-client-urls', url, '--advertise-client-urls', url,
                 '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                 '--initial-cluster', f'default={peer}'],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            self.await_health(url)
        except BaseException:
            self.kill()
            raise

    def await_health(self, url):
        end = time.monotonic() + PATIENCE
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            with contextlib.suppress(OSError):
                if b'true' in opener.open(url + '/health', timeout=5).read():
                    return
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure((self.folder / 'etcd.log').read_text()[-2000:])
            time.sleep(.05)  # for the port of another process

    def kill(self):
        self.process.kill()
        self.process.wait()


def command_of(page, replaced):
    """The command that the page shows, with words replaced."""
    text = pathlib.Path(page).read_text(encoding='utf-8').replace('\\\n', ' ')
    shown = [line for line in text.splitlines() if line.startswith('etcdctl ')]
    if len(shown) != 1:
        raise Failure(f'{page} shows {len(shown)} commands of etcdctl')
    words = shlex.split(shown[0])
    for word in replaced:
        if word not in words:
            raise Failure(f'{page} does not show {word}')
    words = [replaced.get(word, word) for word in words]
    at = words.index('lock') + 1
    return [*words[:at], '--ttl', str(TTL), *words[at:], '--quorum', '3']


class World:
    def __init__(self, master, member, page, folder):
        self.run = Run(master, member, folder, 60)
        self.etcd = Etcd(pathlib.Path(folder), self.run.host)
        self.master, self.page = master, page
        self.key = str(pathlib.Path(folder) / 'run.key')
        subprocess.run([master, '--make-token', self.key], check=True)
        os.environ['PCCL_TOKEN_FILE'] = self.key  # of the members
        self.candidates = [self.candidate() for _ in range(2)]

    def candidate(self, address=None):
        command = command_of(self.page, {
            'etcd1:2379,etcd2:2379': self.etcd.address, 'pccl-master': self.master,
            '0.0.0.0:48148': address or self.run.addresses[0],
            'run.key': self.key, '/shared/run7': str(self.run.journal)})
        return Process(command, start_new_session=True,
                       env=dict(os.environ, ETCDCTL_API='3', PCCL_DEADLINE='3'))

    def leader(self):
        """The place of the one that coordinates, and has not ended."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for i, p in enumerate(self.candidates):
                with p.told:
                    if not p.over and any('listening on' in line for _, line in p.lines):
                        return i
            time.sleep(.01)  # for lines of other processes
        raise Failure('nobody coordinates')

    def clean(self):
        self.run.clean()
        for p in self.candidates:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.process.pid, signal.SIGKILL)
            p.process.wait()
        self.etcd.kill()


def coordinator_of(p):
    """The one child of an etcdctl, by whichever of its threads."""
    tasks = pathlib.Path(f'/proc/{p.process.pid}/task')
    children = [word for task in tasks.iterdir()
                for word in (task / 'children').read_text().split()]
    if len(children) != 1:
        raise Failure(f'{p.process.args} has {len(children)} children: {p.text()}')
    return int(children[0])


def all_stay(world):
    for m in world.run.members:
        if any(line.split()[2] != '3' for _, line in m.lines if line.startswith('step ')):
            raise Failure('a member was lost')
    world.run.finish()


def locked(world):
    world.leader()
    for _ in range(3):
        world.run.join()
    world.run.steps(5)
    for how in ('killed', 'lost', 'ended', 'killed', 'lost'):
        at = world.leader()
        p, q = world.candidates[at], world.candidates[1 - at]
        if how == 'lost':
            os.killpg(p.process.pid, signal.SIGKILL)
        else:
            os.kill(coordinator_of(p),
                    signal.SIGKILL if how == 'killed' else signal.SIGTERM)
        p.end()
        q.wait('pccl-master: listening on')
        q.wait('', has='3 of 3 members are back')
        world.run.steps(10)
        world.candidates[at] = world.candidate()
    at = world.leader()
    world.candidates[1 - at].kill()
    q = world.candidates[1 - at] = world.candidate(world.run.free())
    world.candidates[at].kill()
    q.wait('pccl-master: ', has='journal')
    if q.end() == 0:
        raise Failure('a second one has the journal: ' + q.text())
    world.run.steps(10)
    all_stay(world)


def main():
    if not shutil.which('etcd') or not shutil.which('etcdctl'):
        print('skipped: no etcd (Debian packages etcd-server, etcd-client)')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        world = World(*sys.argv[1:4], folder)
        try:
            locked(world)
        except Failure as failure:
            print(failure)
            for p in [*world.candidates, *world.run.members]:
                print('---', p.process.args, p.process.poll())
                print(p.text())
            return 1
        finally:
            world.clean()
    return 0


if __name__ == '__main__':
    sys.exit(main())
