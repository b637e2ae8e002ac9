#!/usr/bin/env python3
"""elected.py KIND MASTER MEMBER - coordinators that an election chooses (rule H15).

Against an etcd of this file's own (fake_etcd.py):
answers  what an etcd should not answer, before and while one coordinates: the line says
         what is wrong, the coordinator ends before its lease, and begins again after it
account  a user with a password, whose token ends; a fixed token; over TLS; bad files
alone    one candidate: SIGTERM, a coordinator that cannot begin, that crashes

Against etcd-server, where it is installed:
apart    two candidates, each with an address of its own, stopped and continued, killed:
         never does one answer after the other has begun
kills    kill -9 and SIGTERM of electors, kill -9 of coordinators, under a run whose means
         are checked
stopped  a pair of elector and coordinator sleeps longer than its lease, under a run
outage   etcd is killed under a run, and comes again
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'successor'))
from fake_etcd import Fake  # noqa: E402
from successor import PATIENCE, Failure, Process, Run  # noqa: E402

TTL = 2
SKIPPED = 77


def say(p, text, first=0):
    """Waits for a line with `text` behind the line `first`; returns the next place."""
    end = time.monotonic() + PATIENCE
    with p.told:
        while True:
            for at in range(first, len(p.lines)):
                if text in p.lines[at][1]:
                    return at + 1
            if p.over or time.monotonic() > end:
                raise Failure(f'no line with "{text}" of {p.process.args}:\n{p.text()}')
            first = len(p.lines)
            p.told.wait(1)


def ended(p, status):
    code = p.end()
    if code != status:
        raise Failure(f'{p.process.args} ended with {code}, not {status}:\n{p.text()}')


def coordinator_of(p):
    """The child of an elector."""
    text = pathlib.Path(f'/proc/{p.process.pid}/task/{p.process.pid}/children').read_text()
    return [int(word) for word in text.split()]


class World:
    """What a test has begun, and an address for coordinators."""

    def __init__(self, master, member, folder):
        self.master, self.member = master, member
        self.folder = pathlib.Path(folder)
        self.candidates, self.servers = [], []
        self.run = Run(master, member, folder, 60)
        self.port = int(self.run.addresses[0].rpartition(':')[2])

    def candidate(self, place, *more, port=None, journal='journal', env=None):
        command = [self.master, '--listen', f'{self.run.host}:{port or self.port}',
                   '--quorum', '3', '--journal', str(self.folder / journal),
                   '--master-grace', '60', '--elect', place, '--elect-ttl', str(TTL),
                   *more]
        env = dict(os.environ, PCCL_DEADLINE='3', **(env or {}))
        if 'SSL_CERT_FILE' in env:
            env.pop('CURL_CA_BUNDLE', None)
        self.candidates.append(Process(command, env=env))
        return self.candidates[-1]

    def clean(self):
        for p in self.candidates:
            if p.process.poll() is None:
                p.process.send_signal(signal.SIGCONT)
                p.kill()
        self.run.clean()
        for server in self.servers:
            server.kill()


# ------------------------------------------------------------------ a fake etcd

# What is answered, and what is said of it then. The last ones end the coordinator at
# once, the others when its right is over.
BAD = [
    ('garbage', 'the answer is not an object of JSON'),
    ('empty', 'the answer is not an object of JSON'),
    ('stranger', 'it has no header'),
    ('huge', 'the answer has more than 65536 bytes'),
    ('cut', 'transfer closed with'),
    ('hangup', 'lease/'),
    ('500', 'HTTP status 500: etcdserver: no leader'),
    ('404', 'HTTP status 404'),
    ('error', 'etcdserver: request timed out'),
    ('slow', 'timed out'),
    ('other', 'the lease is over; the coordinator is ended'),
    ('over', 'the lease is over; the coordinator is ended'),
    ('stolen', 'the key is not its own any more; the coordinator is ended'),
    ('removed', 'the key is not its own any more; the coordinator is ended'),
]


def wait_none(p):
    """Until it has no coordinator."""
    end = time.monotonic() + PATIENCE
    while coordinator_of(p):
        if time.monotonic() > end:
            raise Failure('the coordinator is still there:\n' + p.text())
        time.sleep(.01)  # for another process


def answers(world):
    fake = Fake()
    world.servers.append(fake)
    # Nobody listens at the first place.
    with socket.socket() as s:
        s.bind((world.run.host, 0))
        nobody = f'http://{world.run.host}:{s.getsockname()[1]}'
    fake.mode = 'garbage'
    p = world.candidate(f'{nobody},{fake.url}/run7')
    at = say(p, 'is not an object of JSON; it is tried again')
    fake.mode = 'good'
    at = say(p, 'it answers again', at)
    for mode, wanted in BAD:
        at = say(p, 'listening on', at)
        fake.mode = mode
        at = say(p, wanted, at)
        wait_none(p)
        fake.recover()
    at = say(p, 'listening on', at)
    if fake.value() != world.run.addresses[0]:
        raise Failure(f'the key has {fake.value()}')
    p.process.terminate()
    ended(p, 0)
    if fake.value() is not None:
        raise Failure('the lease was not revoked')


def account(world):
    fake = Fake(user=('me', 'pass "word"'))
    world.servers.append(fake)
    place = f'{fake.url}/run7'
    secret = world.folder / 'secret'
    p = world.candidate(place)
    say(p, 'user name is empty')
    p.process.terminate()
    ended(p, 0)
    secret.write_text('user me\npassword wrong\n')
    secret.chmod(0o644)
    p = world.candidate(place, '--elect-auth', str(secret))
    say(p, 'chmod 600')
    ended(p, 1)
    secret.chmod(0o600)
    p = world.candidate(place, '--elect-auth', str(secret))
    say(p, 'authentication failed')
    p.process.terminate()
    ended(p, 0)
    secret.write_text('user me\npassword pass "word"\n')
    p = world.candidate(place, '--elect-auth', str(secret))
    at = say(p, 'listening on')
    fake.forget_tokens()
    fake.wait_renewals(2)
    if any('tried again' in line for _, line in p.lines[at:]):
        raise Failure(p.text())
    p.process.terminate()
    ended(p, 0)
    fake.token = 'fixed'
    secret.write_text('token fixed\n')
    p = world.candidate(place, '--elect-auth', str(secret))
    say(p, 'listening on')
    p.process.terminate()
    ended(p, 0)
    over_tls(world)


def over_tls(world):
    if not shutil.which('openssl'):
        return
    cert, key = world.folder / 'cert.pem', world.folder / 'key.pem'
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
         'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=etcd',
         '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
        check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    fake = Fake(context=context)
    world.servers.append(fake)
    p = world.candidate(f'{fake.url}/run7')
    say(p, 'certificate')
    p.process.terminate()
    ended(p, 0)
    p = world.candidate(f'{fake.url}/run7', env={'SSL_CERT_FILE': str(cert)})
    say(p, 'listening on')
    p.process.terminate()
    ended(p, 0)
    secret = world.folder / 'files'
    secret.write_text(f'ca {cert}\ncertificate {cert}\nkey {key}\n')
    secret.chmod(0o600)
    p = world.candidate(f'{fake.url}/run7', '--elect-auth', str(secret))
    say(p, 'listening on')
    p.process.terminate()
    ended(p, 0)


def alone(world):
    fake = Fake()
    world.servers.append(fake)
    place = f'{fake.url}/run7'
    fake.take('somebody')
    p = world.candidate(place)
    at = say(p, 'somebody coordinates; this one waits')
    p.process.terminate()
    ended(p, 0)
    fake.recover()
    # A coordinator that is killed, and one that cannot begin.
    p = world.candidate(place)
    at = say(p, 'listening on')
    os.kill(coordinator_of(p)[0], signal.SIGKILL)
    at = say(p, 'the coordinator has died (status 137)', at)
    at = say(p, 'listening on', at)
    # The child of an elector that is killed dies too, so the next one can begin.
    child = coordinator_of(p)[0]
    p.kill()
    fake.recover()
    p = world.candidate(place)
    say(p, 'listening on')
    if pathlib.Path(f'/proc/{child}/exe').exists():
        raise Failure('a coordinator has survived its elector')
    q = world.candidate(f'{fake.url}/another')
    say(q, 'the coordinator could not begin (status 1)')
    p.process.terminate()
    ended(p, 0)
    say(q, 'listening on')
    q.process.send_signal(signal.SIGINT)
    ended(q, 0)
    # Nobody is elected by hand.
    p = world.candidate(place, '--elected', '0')
    say(p, '--elected is for --elect alone')
    ended(p, 2)


# -------------------------------------------------------------------- a real one


class Etcd:
    def __init__(self, folder):
        self.folder = folder
        # Ports that nobody else gets meanwhile.
        pid = os.getpid()
        self.host = f'127.78.{pid // 250 % 250 + 1}.{pid % 250 + 1}'
        with socket.socket() as a, socket.socket() as b:
            a.bind((self.host, 0))
            b.bind((self.host, 0))
            self.url = f'http://{self.host}:{a.getsockname()[1]}'
            self.peer = f'http://{self.host}:{b.getsockname()[1]}'
        self.process = None
        self.start()

    def start(self):
        log = open(self.folder / 'etcd.log', 'ab')
        self.process = subprocess.Popen(
            ['etcd', '--data-dir', str(self.folder / 'etcd'),
             '--listen-client-urls', self.url, '--advertise-client-urls', self.url,
             '--listen-peer-urls', self.peer,
             '--initial-advertise-peer-urls', self.peer,
             '--initial-cluster', f'default={self.peer}'],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        log.close()
        end = time.monotonic() + PATIENCE
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            try:
                if b'true' in opener.open(self.url + '/health', timeout=5).read():
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure((self.folder / 'etcd.log').read_text()[-2000:])
            time.sleep(.05)  # for the port of another process

    def kill(self):
        self.process.kill()
        self.process.wait()


def pair(p):
    return [p.process.pid, *coordinator_of(p)]


def stop(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def wake(pids):
    """The coordinator first: it is not to rely on its elector."""
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def status_of(world, port):
    """A question that waits until that coordinator answers, or is gone."""
    return subprocess.Popen(
        [world.master, '--status', f'{world.run.host}:{port}'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def state_of(p):
    """What was said last of who coordinates."""
    said = [line for _, line in p.lines if 'listening' in line or 'election' in line]
    return said[-1] if said else ''


def wait_state(candidates, text):
    """The place of one whose state has `text`."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for i, p in enumerate(candidates):
            if text in state_of(p):
                return i
        time.sleep(.01)  # for lines of other processes
    raise Failure(f'"{text}" does not come')


def apart(world):
    etcd = Etcd(world.folder)
    world.servers.append(etcd)
    place = f'{etcd.url}/run7'
    ports = [world.port]
    with socket.socket() as s:
        s.bind((world.run.host, 0))
        ports.append(s.getsockname()[1])
    both = [world.candidate(place, port=port, journal=f'j{port}') for port in ports]
    for how in ('stop', 'kill', 'stop', 'stop child', 'stop'):
        leader = wait_state(both, 'listening on')
        p, q = both[leader], both[1 - leader]
        pids = pair(p)
        if how == 'kill':
            p.kill()
        else:
            stop(pids[1:] if how == 'stop child' else pids)
        question = status_of(world, ports[leader]) if how == 'stop' else None
        wait_state([q], 'listening on')
        if how == 'stop':
            # It wakes up with a question before it, and does not answer.
            wake(pids)
            text = question.communicate(timeout=PATIENCE)[0]
            if question.returncode == 0:
                raise Failure(f'it answered with its right over: {text}')
        if how == 'kill':
            both[leader] = world.candidate(place, port=ports[leader],
                                           journal=f'j{ports[leader]}')
        wait_state([both[leader]], 'this one waits')
    for p in both:
        p.process.terminate()
        ended(p, 0)


def begin(world):
    etcd = Etcd(world.folder)
    world.servers.append(etcd)
    both = [world.candidate(f'{etcd.url}/run7') for _ in range(2)]
    wait_state(both, 'listening on')
    for _ in range(3):
        world.run.join()
    world.run.steps(5)
    return etcd, both


def all_stay(world):
    for m in world.run.members:
        if any(line.split()[2] != '3' for _, line in m.lines if line.startswith('step ')):
            raise Failure('a member was lost')
    world.run.finish()


def kills(world):
    etcd, both = begin(world)
    for i in range(6):
        leader = wait_state(both, 'listening on')
        if i % 3 == 0:
            both[leader].kill()
            both[leader] = world.candidate(f'{etcd.url}/run7')
        elif i % 3 == 1:
            both[leader].process.terminate()
            ended(both[leader], 0)
            both[leader] = world.candidate(f'{etcd.url}/run7')
        else:
            os.kill(coordinator_of(both[leader])[0], signal.SIGKILL)
        world.run.steps(10)
    all_stay(world)


def stopped(world):
    _, both = begin(world)
    for _ in range(2):
        leader = wait_state(both, 'listening on')
        p, q = both[leader], both[1 - leader]
        pids, at = pair(p), len(p.lines)
        other = len(q.lines)
        stop(pids)
        # The next one is elected, and cannot begin: the journal is locked, and the
        # port taken, as long as the one that sleeps is there.
        other = say(q, 'elected', other)
        say(q, 'the coordinator could not begin', other)
        wake(pids)
        world.run.steps(10)
        if not any('the right to coordinate is over' in line or
                   'the coordinator was killed' in line for _, line in p.lines[at:]):
            raise Failure('it went on: ' + p.text())
    all_stay(world)


def outage(world):
    etcd, both = begin(world)
    leader = wait_state(both, 'listening on')
    etcd.kill()
    wait_none(both[leader])  # by its elector, or by itself
    etcd.start()
    world.run.steps(10)
    all_stay(world)


def main():
    kind, master, member = sys.argv[1:4]
    tests = {'answers': answers, 'account': account, 'alone': alone, 'apart': apart,
             'kills': kills, 'stopped': stopped, 'outage': outage}
    real = kind not in ('answers', 'account', 'alone')
    if real and not shutil.which('etcd'):
        print('skipped: no etcd (Debian package etcd-server)')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        world = World(master, member, folder)
        try:
            tests[kind](world)
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
