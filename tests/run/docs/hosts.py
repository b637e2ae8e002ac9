"""hosts.py - hosts with addresses of their own, as network namespaces.

Inside of namespaces that unshare(1) made, so nothing is left behind: a router,
and node1, node2, ... at 10.0.0.1, 10.0.0.2, ... behind it. A host has a name and
a folder of its own, and ssh and scp reach it.
"""
import os
import pathlib
import subprocess
import sys

COUNT = 3
ROUTER = '10.0.0.254'
SSH = '''#!/bin/sh
# ssh [OPTIONS] HOST [COMMAND]
while [ $# != 0 ]; do
    case $1 in
    -[ofipl]) shift ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
host=${1#*@}
shift
pid=$(cat "$HOSTS/$host.pid") || { echo "ssh: no host $host" >&2; exit 255; }
cd "$HOSTS/$host" && export HOME="$PWD"
exec nsenter --net --uts --target "$pid" sh -c "$*"
'''
SCP = '''#!/bin/sh
# scp [-p] FILE HOST:[NAME]
set -e
[ "$1" != -p ] || shift
cp -p "$1" "$HOSTS/${2%%:*}/${2#*:}"
'''


def enter(arguments):
    """Starts this program again in namespaces of its own; returns a reason
    where they cannot be had."""
    if os.environ.get('DOCS_INSIDE'):
        return None
    own = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child',
           '--mount-proc']
    if os.geteuid() != 0:
        own[1:1] = ['--user', '--map-root-user']
    probe = own + ['sh', '-c', 'ip link set lo up && '
                   'echo 1 >/proc/sys/net/ipv4/ip_forward']
    if subprocess.run(probe, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return 'no network namespaces (they need root or user namespaces)'
    os.environ['DOCS_INSIDE'] = '1'
    # The shell is the first process there, and takes orphans.
    os.execvp('unshare', own + ['sh', '-c', '"$@"; exit $?', '-',
                                sys.executable, '-B'] + arguments)


def ip(*words):
    subprocess.run(('ip',) + words, check=True)


class Hosts:
    """All hosts, each kept alive by a process that sleeps in it."""

    def __init__(self, work):
        self.work, self.keepers = work, {}
        os.environ['HOSTS'] = str(work)
        ip('link', 'set', 'lo', 'up')
        pathlib.Path('/proc/sys/net/ipv4/ip_forward').write_text('1')
        names = ['127.0.0.1 localhost', '::1 ip6-localhost']
        for number in range(1, COUNT + 1):
            self.begin(number)
            names.append(f'10.0.0.{number} node{number}')
        (work / 'names').write_text('\n'.join(names) + '\n')
        subprocess.run(['mount', '--bind', work / 'names', '/etc/hosts'],
                       check=True)
        for name, text in (('ssh', SSH), ('scp', SCP)):
            (work / 'bin').mkdir(exist_ok=True)
            (work / 'bin' / name).write_text(text)
            (work / 'bin' / name).chmod(0o755)

    def begin(self, number):
        name, cable = f'node{number}', f'v{number}'
        keeper = subprocess.Popen(
            ['unshare', '--net', '--uts', 'sh', '-c',
             f'hostname {name}; ip link set lo up; '
             'echo ready; exec cat'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        keeper.stdout.readline()
        self.keepers[name] = keeper
        (self.work / name).mkdir()
        (self.work / f'{name}.pid').write_text(f'{keeper.pid}\n')
        ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0',
           'netns', str(keeper.pid))
        ip('addr', 'add', f'{ROUTER}/32', 'dev', cable)
        ip('link', 'set', cable, 'up')
        ip('route', 'add', f'10.0.0.{number}', 'dev', cable)
        for words in (f'addr add 10.0.0.{number}/32 dev eth0',
                      'link set eth0 up', f'route add {ROUTER} dev eth0',
                      f'route add default via {ROUTER}'):
            subprocess.run(self.on(name) + ['ip'] + words.split(), check=True)

    def on(self, name):
        """What runs a command on a host."""
        return ['nsenter', '--net', '--uts', '--target',
                str(self.keepers[name].pid), '--']

    def listens(self, name, port):
        """Whether a process of the host takes connections at this port."""
        for table in ('tcp', 'tcp6'):
            path = pathlib.Path(f'/proc/{self.keepers[name].pid}/net/{table}')
            if not path.exists():
                continue
            for line in path.read_text().split('\n')[1:]:
                words = line.split()
                if len(words) > 3 and words[3] == '0A' and \
                        int(words[1].rpartition(':')[2], 16) == port:
                    return True
        return False
