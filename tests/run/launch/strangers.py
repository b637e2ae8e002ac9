#!/usr/bin/env python3
"""strangers.py MASTER RANK - processes of another host without the key of a run, with
another one, or with one where the run has none: the coordinator and a member refuse
each of them, both ends say why, and the run never notices (rules K2 to K5, K7). The
hosts are two network namespaces, joined by a virtual cable."""

import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

NEAR, FAR, PORT = '10.77.0.1', '10.77.0.2', 48148
PATIENCE = 60  # seconds; for bugs only
ANSWERS = {
    'wrong key': bytes((21, 3, 3, 0, 2, 2, 115)),  # RFC 8446, in clear
    'nothing': b'',
}
REMOTE = 'it is on another host, and this run has no key: give both ends'
CLEAR = 'it speaks in clear, and this run has a key: give it the token file'
NO_KEY = 'it has no key, and this process has one: give it the same token'
HAS_KEY = 'it has a key, and this run has none'
DIFFER = 'the keys differ: both ends need the same token file'
GIVE = 'this run has a key: give this process its token file'


def skip(why):
    print('skipped:', why)
    sys.exit(77)


def inside():
    """This program as the first process of namespaces of its own."""
    if os.geteuid() != 0:
        skip('needs root')
    for tool in ('unshare', 'nsenter', 'ip'):
        if not shutil.which(tool):
            skip('no ' + tool)
    if 'STRANGERS' in os.environ:
        return
    if subprocess.run(['unshare', '--net', 'true'],
                      stderr=subprocess.DEVNULL).returncode != 0:
        skip('no network namespaces')
    os.environ['STRANGERS'] = '1'
    os.execvp('unshare', ['unshare', '--net', '--pid', '--fork', '--kill-child',
                          '--mount-proc', sys.executable, '-B', *sys.argv])


def ip(*arguments):
    return subprocess.run(['ip', *arguments]).returncode == 0


class Far:
    """The other host: a namespace that a sleeping process holds."""

    def __init__(self):
        self.holder = subprocess.Popen(['unshare', '--net', 'sleep', 'infinity'])
        self.path = f'/proc/{self.holder.pid}/ns/net'
        while os.readlink(self.path) == os.readlink('/proc/self/ns/net'):
            time.sleep(.01)  # for a step of another process
        if not ip('link', 'add', 'near0', 'type', 'veth', 'peer', 'name', 'far0',
                  'netns', str(self.holder.pid)):
            skip('no veth')
        ip('link', 'set', 'lo', 'up')
        ip('addr', 'add', NEAR + '/24', 'dev', 'near0')
        ip('link', 'set', 'near0', 'up')
        for command in ('link set lo up', f'addr add {FAR}/24 dev far0',
                        'link set far0 up'):
            subprocess.run([*self.enter(), 'ip', *command.split()], check=True)

    def enter(self):
        return ['nsenter', '--net=' + self.path]

    def socket(self):
        """A socket of that host, in this process."""
        setns = ctypes.CDLL(None, use_errno=True).setns
        with open('/proc/self/ns/net') as here, open(self.path) as there:
            if setns(there.fileno(), 0) != 0:
                skip('no setns')
            try:
                return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            finally:
                setns(here.fileno(), 0)


class Run:
    """Two ranks, which compute until a file exists."""

    def __init__(self, master, rank, folder, options):
        self.over = folder / 'over'
        self.over.unlink(missing_ok=True)
        self.log = folder / 'run'
        with self.log.open('w') as out:
            self.job = subprocess.Popen(
                [master, '--listen', f'{NEAR}:{PORT}', '--peer-ports',
                 '49148-49149', *options, '-n', '2', rank, str(self.over)],
                env=dict(os.environ, PCCL_TRANSPORT='tcp',
                         PCCL_LOG_LEVEL='WARN'), stdout=out, stderr=out)
        while self.text().count(' is there') < 2:
            if self.job.poll() is not None:
                sys.exit('the run ended: ' + self.text())
            time.sleep(.02)  # for a step of another process

    def text(self):
        return self.log.read_text()

    def says(self, text):
        """Its processes write when they come to it."""
        end = time.monotonic() + PATIENCE
        while text not in self.text():
            if time.monotonic() > end or self.job.poll() is not None:
                sys.exit(f'the run has not said {text!r}: ' + self.text())
            time.sleep(.02)  # for a step of another process

    def end(self, epoch, status):
        """It is as it was, and ends well."""
        if f'2 members, 0 newcomers, epoch {epoch},' not in status:
            sys.exit(f'the run has noticed something: {status}{self.text()}')
        self.over.touch()
        if self.job.wait() != 0:
            sys.exit('the run failed: ' + self.text())


def greeting(master, token):
    """What a process with that key says first."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        to = '127.0.0.1:%d' % server.getsockname()[1]
        asker = subprocess.Popen([master, '--token-file', token, '--status', to],
                                 stderr=subprocess.DEVNULL)
        client, _ = server.accept()
        with client:
            bytes_ = client.recv(4096)
        asker.wait()
    return bytes_


def answer(far, port, what):
    """All that a listener of the run says to these bytes, until it closes."""
    with far.socket() as s:
        s.connect((NEAR, port))
        s.sendall(what)
        said = b''
        while True:
            try:
                more = s.recv(4096)
            except ConnectionResetError:
                return said
            if not more:
                return said
            said += more


def check_member(far, run, greetings, expected, log):
    """Whoever dials a member: bytes in clear, and the greeting of another key."""
    hello = b'PC\1\1' + bytes(60)
    for what, wanted in zip((hello, *greetings), expected):
        got = answer(far, 49148, what)
        if got != ANSWERS[wanted]:
            sys.exit(f'a member answered {got!r}, not {wanted}')
    run.says(log)


def ask(command, expected, run, log):
    """One stranger. Both ends say why it is refused."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT,
                          env=dict(os.environ, PCCL_LOG_LEVEL='ERR'))
    if done.returncode == 0 or expected not in done.stdout:
        sys.exit(f'{command}: no {expected!r}: {done.returncode}, {done.stdout}')
    if log:
        run.says(log)


def visit(master, rank, far, run, strangers):
    """The coordinator tells of the first, the second and the fourth."""
    at = f'{NEAR}:{PORT}'
    for what in (('--status', at), ('-n', '1', '--join', at, rank)):
        for options, expected, log in strangers:
            ask([*far.enter(), master, *options, *what], expected, run, log)


def status(master, options):
    return subprocess.run([master, *options, '--status', f'{NEAR}:{PORT}'],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def main(master, rank):
    inside()
    os.environ.pop('PCCL_TOKEN_FILE', None)
    os.environ.pop('PCCL_INSECURE', None)
    far = Far()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        own, other = str(folder / 'own'), str(folder / 'other')
        for file in (own, other):
            subprocess.run([master, '--make-token', file], check=True)
        keyed, another = ('--token-file', own), ('--token-file', other)
        greetings = [greeting(master, other)]
        for options, strangers, member, log in (
                (keyed,
                 (((), REMOTE, None), (('--insecure',), GIVE, CLEAR),
                  (another, DIFFER, DIFFER)), ('nothing', 'wrong key'),
                 'closed a connection: ' + DIFFER),
                (('--insecure',),
                 (((), REMOTE, None), (keyed, NO_KEY, HAS_KEY)),
                 ('nothing', 'nothing'), ''),
                ((),
                 (((), REMOTE, REMOTE), (('--insecure',), REMOTE, REMOTE),
                  (keyed, NO_KEY, REMOTE)), ('nothing', 'nothing'),
                 'refused a connection: ' + REMOTE)):
            run = Run(master, rank, folder, options)
            visit(master, rank, far, run, strangers)
            check_member(far, run, greetings, member, log)
            run.end(1, status(master, options))


main(*sys.argv[1:])
