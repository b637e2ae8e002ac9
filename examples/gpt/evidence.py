#!/usr/bin/env python3
"""evidence.py - trains the transformer in every way from the same start, and
draws the loss of held-out text over time and over bytes sent.

    evidence.py [--bin BIN] [--text FILE] [--out FOLDER] [OPTIONS]

Each run is a file in FOLDER: RUN.csv with its seconds, step, members, bytes
sent by all members, held-out loss, and what happened. evidence.csv has all of
them; evidence.svg is the picture, if matplotlib is there. Runs whose file is
there are not repeated. Those with "wan" go over emulated links (wan-emulator:
root, /dev/net/tun), and are left out, with a word, where these cannot be had.

A text of the size of a book is best: for instance Debian's bible-kjv,
    bible -f gen1:1-rev22:21 >kjv.txt
"""
import argparse
import csv
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = 4
SILENCE = 600  # seconds without a line: it hangs
FIELDS = ('run', 'seconds', 'step', 'members', 'sent', 'held', 'event')
WORLD = '''title Four members with a home connection each
limit 3600s
congestion cubic
peer site {ranks}
master site
rtt site site {delay}
up * rate {rate} queue 100ms
down * rate {rate} queue 100ms
'''

DILOCO = ['diloco']
# Means that come one phase late swing with momentum.
ASYNC = ['async', '--outer-momentum', '0']
# Name -> title, the program's arguments, emulated links, kills and joins.
RUNS = {
    'alone': ('one process', ['alone'], False, False),
    'ddp': ('DDP', ['ddp'], False, False),
    'churn': ('DDP, kills and joins', ['ddp'], False, True),
    'diloco': ('DiLoCo', DILOCO, False, False),
    'diloco-churn': ('DiLoCo, kills and joins', DILOCO, False, True),
    'codes': ('DiLoCo, 8-bit codes', DILOCO + ['--codes'], False, False),
    'async': ('async DiLoCo', ASYNC, False, False),
    'stack': ('PowerSGD and SPARTA', ['stack'], False, False),
    'wan-ddp': ('DDP', ['ddp'], True, False),
    'wan-diloco': ('DiLoCo', DILOCO, True, False),
    'wan-codes': ('DiLoCo, 8-bit codes', DILOCO + ['--codes'], True, False),
    'wan-async': ('async DiLoCo', ASYNC, True, False),
    'wan-stack': ('PowerSGD and SPARTA', ['stack'], True, False),
}
SMALL = ['--inner', '4', '--layers', '1', '--heads', '2', '--width', '16', '--context', '16',
         '--batch', '8', '--held', '4']


class Watch:
    """The lines of a run's processes, with the time at which they came."""

    def __init__(self):
        self.lines, self.jobs, self.open = queue.Queue(), [], 0

    def start(self, command, environment):
        job = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            env=environment)
        self.jobs.append(job)
        self.open += 1
        threading.Thread(target=self.read, args=(job,), daemon=True).start()

    def read(self, job):
        for line in job.stdout:
            self.lines.put((time.monotonic(), line.rstrip('\n')))
        self.lines.put((time.monotonic(), None))

    def __iter__(self):
        """Also an empty line in every second without one."""
        while self.open:
            try:
                at, line = self.lines.get(timeout=1)
            except queue.Empty:
                at, line = time.monotonic(), ''
            if line is None:
                self.open -= 1
            else:
                yield at, line

    def end(self):
        for job in self.jobs:
            if job.poll() is None:
                job.terminate()
        return [job.wait() for job in self.jobs]


class Churn:
    """A kill at a third of the steps, a newcomer at a half, a kill at two
    thirds, two newcomers soon after."""

    def __init__(self, watch, join, steps):
        self.watch, self.join, self.alive = watch, join, {}
        self.plan = [(steps // 3, self.kill, 1), (steps // 2, self.more, 1),
                     (2 * steps // 3, self.kill, 1),
                     (3 * steps // 4, self.more, 2)]

    def see(self, line):
        found = re.match(r'rank (\d+)/\d+: pid (\d+),', line)
        if found:
            self.alive[int(found[2])] = int(found[1])
        step = re.match(r'step (\d+) ', line)
        while step and self.plan and int(step[1]) >= self.plan[0][0]:
            _, what, count = self.plan.pop(0)
            what(count)

    def kill(self, count):
        """Those that came last among the processes that this run started."""
        for pid in list(self.alive)[-count:]:
            os.kill(pid, signal.SIGKILL)
            del self.alive[pid]

    def more(self, count):
        self.join(count)


def command(args, name, folder):
    """The command of a run, and its environment."""
    _, way, wan, _ = RUNS[name]
    rank = [args.bin / 'gpt'] + way + args.options + [args.text]
    if RUNS[name][3]:  # whoever is quick waits for a newcomer
        rank[2:2] = ['--min', f'{RANKS}:{3 * args.steps // 4 + 1}']
    if wan:
        rank[2:2] = ['--patience', 60]
    environment = dict(os.environ, OMP_NUM_THREADS='1', PCCL_LOG_LEVEL='WARN')
    if 'PCCL_TOKEN_FILE' not in environment:  # emulated hosts are hosts
        environment['PCCL_INSECURE'] = '1'
    if way[0] == 'alone':
        environment['OMP_NUM_THREADS'] = str(args.threads)
        environment['OMP_WAIT_POLICY'] = 'passive'
        return rank, environment
    if not wan:
        return [args.bin / 'pccl-master', '-n', RANKS, '--elastic'] + rank, \
            environment
    world = folder / f'{name}.wan'
    world.write_text(WORLD.format(ranks=RANKS, rate=args.rate,
                                  delay=args.delay))
    words = ' '.join(f"'{word}'" for word in rank)
    return [args.bin / 'wan-emulator', '--log', folder / f'{name}.log',
            '--peer', 'PCCL_MASTER=$WAN_MASTER:48148 '
            f'PCCL_RANK=$((WAN_PEER - 1)) exec {words}',
            '--master', f"exec '{args.bin / 'pccl-master'}' --listen "
            f'$WAN_MASTER:48148 --quorum {RANKS} >/dev/null 2>&1',
            world], environment


def event_of(line):
    lost = re.search(r'\((?:launched .*|\S+, )?pid \d+\) lost', line)
    joined = re.search(r'ranks? .*joined', line)
    return 'lost' if lost else 'joined' if joined else ''


def measure(args, name, folder):
    """Runs one way; its rows, or None where it cannot be had."""
    watch, rows, said = Watch(), [], []
    line_of, environment = command(args, name, folder)
    begin, address, step, members, sent = None, None, 0, RANKS, 0.0
    heard = time.monotonic()

    def join(count):
        watch.start([args.bin / 'pccl-master', '--join', address, '-n', count] +
                    line_of[line_of.index('--elastic') + 1:], environment)

    churn = Churn(watch, join, args.steps) if RUNS[name][3] else None
    watch.start(line_of, environment)
    for at, line in watch:
        if line:
            said.append(line)
            heard = at
        elif at - heard > SILENCE:
            watch.end()
            sys.exit('\n'.join([f'{name} says nothing:'] + said[-20:]))
        if begin is None and line.startswith('rank '):
            begin = at
        since = round(at - (begin or at), 3)
        if since > args.seconds:
            break
        found = re.match(r'pccl-master: listening on (\S+)', line)
        if found and not address:
            address = found[1]
        if churn:
            churn.see(line)
        found = re.match(r'step (\d+) members (\d+) loss \S+ sent (\d+)', line)
        if found:
            step, members, sent = (int(text) for text in found.groups())
        found = re.match(r'held (\d+) loss (\S+)', line)
        event = event_of(line)
        if found or event:
            held = float(found[2]) if found else ''
            rows.append(dict(run=name, seconds=since, step=step,
                             members=members, sent=sent, held=held,
                             event=event))
    ended = watch.end()
    if ended[0] == 77:
        print(f'{name}: left out: {" ".join(said)}')
        return None
    if not any(row['held'] for row in rows):
        sys.exit('\n'.join([f'{name} failed:'] + said[-20:]))
    return rows


def write(path, rows):
    with open(path, 'w', newline='', encoding='utf-8') as file:
        out = csv.DictWriter(file, FIELDS, lineterminator='\n')
        out.writeheader()
        out.writerows(rows)


def read(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def table(rows, steps):
    print('| run | steps | held-out loss | seconds | sent by all, MB |')
    print('|---|---|---|---|---|')
    for name, (title, _, wan, _) in RUNS.items():
        mine = [row for row in rows if row['run'] == name and row['held']]
        if mine:
            last = mine[-1]
            print(f'| {title}{", emulated links" if wan else ""} '
                  f'| {last["step"]} of {steps} | {float(last["held"]):.4f} '
                  f'| {float(last["seconds"]):.1f} '
                  f'| {float(last["sent"]) / 1e6:.1f} |')


def panel(plot, rows, wan, axis, words):
    """One picture: the loss of the runs of a network over seconds or bytes."""
    for index, (name, (title, _, far, _)) in enumerate(RUNS.items()):
        mine = [row for row in rows if row['run'] == name]
        if far != wan or not mine or (axis == 'sent' and name == 'alone'):
            continue
        factor = 1e-6 if axis == 'sent' else 1
        held = [(float(row[axis]) * factor, float(row['held']))
                for row in mine if row['held']]
        color = f'C{list(RUNS).index(name.replace("wan-", "")) % 10}'
        plot.plot(*zip(*held), color=color, label=title, linewidth=1.4,
                  marker='.', markersize=4)
        for row in mine:
            if row['event']:
                before = [y for x, y in held if x <= float(row[axis]) * factor]
                plot.plot(float(row[axis]) * factor,
                          (before or [held[0][1]])[-1],
                          'x' if row['event'] == 'lost' else '+',
                          color='#c0392b' if row['event'] == 'lost'
                          else '#1e8449', markersize=9, markeredgewidth=2,
                          zorder=5)
    if axis == 'sent':
        plot.set_xscale('log')
    plot.set_xlabel(words)
    plot.grid(color='#e5e5e5')
    plot.legend(fontsize=8)


def draw(path, rows, rate, delay):
    try:
        import matplotlib
    except ImportError:
        print('no picture: matplotlib is missing')
        return
    matplotlib.use('svg')
    matplotlib.rcParams.update({'svg.fonttype': 'none', 'font.size': 9,
                                'svg.hashsalt': 'evidence'})
    from matplotlib import pyplot
    far = any(row['run'].startswith('wan') for row in rows)
    figure, plots = pyplot.subplots(1 + far, 2, squeeze=False, sharey='row',
                                    figsize=(10, 4.2 * (1 + far)))
    for wan in range(1 + far):
        panel(plots[wan][0], rows, bool(wan), 'seconds', 'seconds')
        panel(plots[wan][1], rows, bool(wan), 'sent', 'MB sent by all members')
        plots[wan][0].set_ylabel('held-out loss, nats per byte')
        plots[wan][0].set_title(f'{rate}, {delay} between members' if wan
                                else 'loopback (x: lost, +: joined)',
                                loc='left')
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})
    print(path)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n\n')[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', type=pathlib.Path,
                        default=ROOT / 'build' / 'bin')
    parser.add_argument('--text', type=pathlib.Path,
                        default=ROOT / 'include' / 'pccl.h')
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--only', help='names of runs, with commas')
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--inner', type=int, default=20,
                        help='steps of DiLoCo between two outer ones')
    parser.add_argument('--every', type=int, default=10)
    parser.add_argument('--seconds', type=float, default=1e9,
                        help='no run goes on for longer')
    parser.add_argument('--rate', default='20mbit', help='of emulated links')
    parser.add_argument('--delay', default='50ms', help='a round trip there')
    parser.add_argument('--threads', type=int, default=os.cpu_count(),
                        help='of one process')
    parser.add_argument('--model', default='', metavar='OPTIONS',
                        help='of the program: "--layers 4 --width 64"')
    parser.add_argument('--small', action='store_true',
                        help='a tiny model, for a test')
    args = parser.parse_args()
    args.options = ['--steps', args.steps, '--batch', args.batch,
                    '--inner', args.inner, '--every', args.every]
    args.options += args.model.split()
    if args.small:
        args.options += SMALL
    names = args.only.split(',') if args.only else list(RUNS)
    for name in names:
        if name not in RUNS:
            parser.error(f'{name} is none of {", ".join(RUNS)}')
    return args, names


def main():
    args, names = arguments()
    with tempfile.TemporaryDirectory() as spare:
        folder = args.out or pathlib.Path(spare)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            path = folder / f'{name}.csv'
            if not path.exists():
                rows = measure(args, name, pathlib.Path(spare))
                if rows is None:
                    continue
                write(path, rows)
            print(f'{name}: {read(path)[-1]["seconds"]} s', file=sys.stderr)
        rows = []
        for name in RUNS:
            path = folder / f'{name}.csv'
            rows += read(path) if path.exists() else []
        write(folder / 'evidence.csv', rows)
        table(rows, args.steps)
        draw(folder / 'evidence.svg', rows, args.rate, args.delay)
    return 0


if __name__ == '__main__':
    sys.exit(main())
