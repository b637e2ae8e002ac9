#!/usr/bin/env python3
"""lease.py SCRIPT - packaging/kubernetes/lease.sh, with a stand-in for kubectl and for
the API server: a file, whose version has to be the one that was read. Candidates are
killed and stopped, the server goes away: never do two commands run, and somebody's runs
again."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 300  # seconds; as in tests/patience.h
LENGTH = '12'


def kubectl(server, words):
    """What the stand-in does: `get`, `create` and `patch` of one Lease."""
    if (server / 'gone').exists():
        sys.exit(1)
    with open(server / 'lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = server / 'lease'
        now = json.loads(path.read_text()) if path.exists() else None
        if words[0] == 'create':
            asked = json.load(sys.stdin)
            if now or asked['kind'] != 'Lease':
                sys.exit(1)
            now = {'version': 1, 'spec': asked['spec']}
        elif not now or words[1:3] != ['lease', 'train']:
            sys.exit(1)
        elif words[0] == 'get':
            print(now['version'], now['spec']['holderIdentity'], end='')
            return
        else:
            asked = json.loads(words[words.index('-p') + 1])
            if asked['metadata']['resourceVersion'] != str(now['version']):
                sys.exit(1)
            if not re.fullmatch(r'[-\dT:]+\.\d{6}Z', asked['spec']['renewTime']):
                sys.exit(1)
            now = {'version': now['version'] + 1, 'spec': asked['spec']}
        (server / 'next').write_text(json.dumps(now))
        os.rename(server / 'next', path)


def holder(server):
    return json.loads((server / 'lease').read_text())['spec']['holderIdentity']


def running(server):
    """The processes of commands that live."""
    found = []
    for path in server.glob('run.*'):
        with contextlib.suppress(OSError, ValueError):
            text = pathlib.Path(f'/proc/{path.suffix[1:]}/stat').read_text()
            if text.rsplit(')', 1)[1].split()[0] != 'Z':
                found.append(int(path.suffix[1:]))
    return found


def wait(what, condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end:
            sys.exit(f'does not come: {what}')
        time.sleep(0.02)  # for other processes
    return found


def candidate(script, server, name):
    """Its command tells its number, and ends at SIGTERM with 7."""
    command = ('trap "exit 7" TERM; : >"$0/run.$$"; '
               'while :; do sleep 1 & wait $!; done')
    env = {**os.environ, 'POD': name, 'LEASE_SECONDS': LENGTH,
           'PATH': f'{server}:{os.environ["PATH"]}'}
    return subprocess.Popen(['sh', script, 'train', 'sh', '-c', command, str(server)],
                            env=env, start_new_session=True)


def other_than(server, pid):
    """Another one runs, alone."""
    def one():
        found = running(server)
        if len(found) > 1:
            sys.exit(f'two at once: {found}')
        return found and found[0] != pid and found[0]
    return wait('another one', one)


def main():
    script = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        server = pathlib.Path(folder)
        stub = server / 'kubectl'
        stub.write_text(f'#!/bin/sh\nexec {sys.executable} {pathlib.Path(__file__).resolve()}'
                        f' kubectl {server} "$@"\n')
        stub.chmod(0o755)
        both = {name: candidate(script, server, name) for name in ('a', 'b')}
        try:
            pid = other_than(server, 0)
            # Its node is lost: nobody gives the Lease back.
            leader = wait('a holder', lambda: holder(server))
            os.killpg(both[leader].pid, signal.SIGKILL)
            both[leader].wait()
            pid = other_than(server, pid)
            both[leader] = candidate(script, server, leader)
            # Nobody answers: it ends before the Lease can.
            (server / 'gone').touch()
            wait('the end of the command', lambda: not running(server))
            (server / 'gone').unlink()
            pid = other_than(server, pid)
            # It is asked to end: the other one begins, and its status is told.
            leader = wait('a holder', lambda: holder(server))
            both[leader].terminate()
            if both[leader].wait(PATIENCE) != 7:
                sys.exit(f'ended with {both[leader].returncode}')
            other_than(server, pid)
            leader = wait('a holder', lambda: holder(server))
            both[leader].terminate()
            both[leader].wait(PATIENCE)
        finally:
            for one in both.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
                one.wait()


if __name__ == '__main__':
    if sys.argv[1] == 'kubectl':
        kubectl(pathlib.Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
