#!/usr/bin/env python3
"""captured.py MASTER RANK - records every byte of a whole run on the loopback of
a network namespace of its own, and of two questions for its status: with a key
nothing of vectors, messages, shared state, the status, the key and the host's name
is in it; without one each text is (rules K2, K8)."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

SECRETS = (b'a vector that nobody else may see',
           b'a message for one member alone',
           b'weights that were expensive to find',
           b'nobody waits for another one')  # of the status


def skip(why):
    print('skipped:', why)
    sys.exit(77)


def record(sock, packets):
    """Until the mark comes: its sender is the last one to send."""
    while True:
        packet = sock.recv(1 << 17)
        packets.append(packet)
        if b'end of the recording' in packet:
            return


def run(command, env):
    """Returns all that crossed the loopback meanwhile."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 27)
    sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)  # SO_RCVBUFFORCE
    sock.bind(('lo', 3))
    packets = []
    thread = threading.Thread(target=record, args=(sock, packets))
    thread.start()
    done = subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True)
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mark.sendto(b'end of the recording', ('127.0.0.1', 9))
    thread.join()
    if done.returncode != 0:
        sys.exit(f'{command}: status {done.returncode}: {done.stderr}')
    return b''.join(packets), done.stderr


def main(master, rank):
    if os.geteuid() != 0 or not shutil.which('unshare'):
        skip('needs root and unshare')
    if 'CAPTURED' not in os.environ:
        if subprocess.run(['unshare', '--net', 'true'],
                          stderr=subprocess.DEVNULL).returncode != 0:
            skip('no network namespaces')
        os.environ['CAPTURED'] = '1'
        os.execvp('unshare', ['unshare', '--net', sys.executable, '-B',
                              __file__, master, rank])
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    env = dict(os.environ, PCCL_TRANSPORT='tcp')
    env.pop('PCCL_TOKEN_FILE', None)
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / 'key')
        subprocess.run([master, '--make-token', file], check=True)
        text = pathlib.Path(file).read_bytes().split()[2]
        status = '"$0" --status "$PCCL_MASTER" >/dev/null; exec "$1"'
        clear, _ = run([master, '-n', '2', 'sh', '-c', status, master, rank],
                       env)
        for secret in SECRETS:
            if secret not in clear:
                sys.exit(f'the recording of a run in clear lacks {secret!r}')
        # An argument, the environment and the log are looked at, too.
        shell = 'tr "\\0" "\\n" </proc/$PPID/cmdline >&2; env >&2; ' + status
        hidden, log = run([master, '-v', '--token-file', file, '-n', '2',
                           'sh', '-c', shell, master, rank],
                          dict(env, PCCL_LOG_LEVEL='TRACE'))
    if len(hidden) < 600000:
        sys.exit(f'only {len(hidden)} bytes were recorded')
    name = socket.gethostname().encode()
    key = bytes.fromhex(text.decode())
    for what, where in (*((s, hidden) for s in SECRETS),
                        *((s[:16], hidden) for s in SECRETS),
                        (key, hidden), (text, hidden), (text, log.encode())):
        if what in where:
            sys.exit(f'{what!r} is in the recording, or in the log')
    if len(name) > 7 and name in hidden:
        sys.exit('the name of the host is in the recording')
    if 'PCCL_TOKEN_FILE=/proc/' not in log:
        sys.exit('the ranks had no key: ' + log)


main(*sys.argv[1:])
