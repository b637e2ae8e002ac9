#!/usr/bin/env python3
"""manifests.py FOLDER PLAYED MASTER PROGRAM FILE - the manifests in FOLDER.

Every document fits the schema of its kind, of the oldest and of the newest
Kubernetes that is asked for; names, ports and numbers fit each other. Then the
manifest PLAYED is played without Kubernetes: its commands run as processes of
this host, with its variables, PROGRAM FILE in the place of /app/train. A rank
is asked to leave, as a pod that is preempted; the others go on, and one that
comes back joins them.

Exits 77 where kubernetes_validate is missing (pip install
kubernetes-validate)."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

try:
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f'skipped: {missing} (pip install kubernetes-validate)')
    sys.exit(77)

VERSIONS = ('1.31', '1.35')
PATIENCE = 300  # seconds; as in tests/patience.h


def check(condition, what):
    if not condition:
        sys.exit(f'wrong: {what}')


def container(document, kind='containers'):
    return document['spec']['template']['spec'][kind][0]


def variables(document):
    return {v['name']: v['value'] for v in container(document).get('env', [])}


def pods_of(documents, role):
    """The document whose pods have that role, or None."""
    found = [d for d in documents if 'template' in d.get('spec', {}) and
             d['metadata'].get('labels', {}).get('role') == role]
    return found[0] if found else None


def fits_service(path, document, services):
    """Its service is there, is headless and selects its pods."""
    spec = document['spec']
    name = spec.get('serviceName') or spec['template']['spec'].get('subdomain')
    check(name in services, f'{path}: pods are of another service')
    service = services[name]
    check(service['spec'].get('clusterIP') == 'None', f'{path}: not headless')
    check(service['spec']['selector'].items() <=
          spec['template']['metadata']['labels'].items(),
          f'{path}: the service selects other pods')
    return f"{document['metadata']['name']}-0.{name}"


def leads_to(path, host, document, services):
    """A name of the pod itself, or of a service that selects it; its port."""
    own = fits_service(path, document, services)
    service = services.get(host)
    if host == own:
        return services[own.split('.')[1]]['spec']['ports'][0]['port']
    check(service and service['spec']['selector'].items() <=
          document['spec']['template']['metadata']['labels'].items() and
          'clusterIP' not in service['spec'],
          f'{path}: {host} does not lead to {document["metadata"]["name"]}')
    return service['spec']['ports'][0]['port']


def volumes_fit(path, document):
    """What is mounted is there."""
    spec = document['spec']['template']['spec']
    there = {v['name'] for v in spec.get('volumes', [])} | {
        c['metadata']['name']
        for c in document['spec'].get('volumeClaimTemplates', [])}
    for one in spec.get('initContainers', []) + spec['containers']:
        for mount in one.get('volumeMounts', []):
            check(mount['name'] in there,
                  f'{path}: {one["name"]} mounts {mount["name"]}')


def coordinator_fits(path, coordinator, port):
    args = container(coordinator)['args']
    check(args[args.index('--listen') + 1] == f'0.0.0.0:{port}',
          f'{path}: the coordinator listens elsewhere')
    if '--journal' in args:
        folder = os.path.dirname(args[args.index('--journal') + 1])
        check(folder in [m['mountPath'] for m in
                         container(coordinator)['volumeMounts']],
              f'{path}: the journal is on no volume')
    return int(args[args.index('--quorum') + 1])


def fits(path):
    """Checks the documents of a manifest; gives those of the two roles."""
    documents = list(yaml.safe_load_all(path.read_text(encoding='utf-8')))
    for version in VERSIONS:
        for document in documents:
            kubernetes_validate.validate(document, version, strict=True)
    services = {d['metadata']['name']: d for d in documents
                if d['kind'] == 'Service'}
    for document in documents:
        if 'template' in document['spec']:
            fits_service(path, document, services)
            volumes_fit(path, document)
    coordinator = pods_of(documents, 'coordinator')
    ranks = pods_of(documents, 'rank')
    host, port = variables(ranks)['PCCL_MASTER'].split(':')
    check(leads_to(path, host, coordinator, services) == int(port),
          f'{path}: PCCL_MASTER has another port')
    check(f'/{host}/{port}' in container(ranks, 'initContainers')['args'][0],
          f'{path}: the ranks wait for another host')
    quorum = coordinator_fits(path, coordinator, int(port))
    check(quorum == ranks['spec'].get('replicas',
                                      ranks['spec'].get('parallelism')),
          f'{path}: the quorum is not the number of ranks')
    return coordinator, ranks, quorum


class Pod:
    """A container as a process; its output is in a file."""

    def __init__(self, document, work, name, replaced, env):
        words = container(document)['command'] + container(document)['args']
        command = []
        for word in words:
            command += replaced.get(word, [word])
        self.name, self.path = name, work / name
        with open(self.path, 'w', encoding='utf-8') as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **variables(document), **env})

    def said(self):
        return self.path.read_text(encoding='utf-8', errors='replace')

    def wait_for(self, pattern):
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.said())):
            check(self.process.poll() is None,
                  f'{self.name} has ended: {self.said()}')
            check(time.monotonic() < end,
                  f'{self.name} does not say {pattern}: {self.said()}')
            time.sleep(0.02)  # for a step of another process
        return found

    def end(self):
        return self.process.wait(timeout=PATIENCE)


def play(path, work, master, program):
    coordinator, ranks, count = fits(path)
    pods = []
    token = work / 'token'
    subprocess.run([master, '--make-token', token], check=True)

    def pod(document, name, replaced, env):
        pods.append(Pod(document, work, name, replaced, env))
        return pods[-1]
    try:
        first = pod(coordinator, 'coordinator',
                    {'pccl-master': [master],
                     '0.0.0.0:48148': ['127.0.0.1:0']},
                    {'PCCL_TOKEN_FILE': str(token)})
        address = first.wait_for(r'listening on (127\.0\.0\.1:\d+)').group(1)
        env = {'PCCL_MASTER': address, 'PCCL_DEADLINE': '20',
               'PCCL_TOKEN_FILE': str(token),
               'LD_LIBRARY_PATH': os.environ.get('LD_LIBRARY_PATH', '')}
        replaced = {'/app/train': program[:1], '/app/text': program[1:]}
        all_ranks = [pod(ranks, f'rank{i}', replaced, env)
                     for i in range(count)]
        for one in all_ranks:
            one.wait_for('at the start')
        print(f'{count} ranks have founded a run at {address}')
        leaver = all_ranks[1]
        leaver.process.send_signal(signal.SIGTERM)  # as the kubelet does
        check(leaver.end() == 143, f'a pod that left ended otherwise: '
              f'{leaver.process.returncode}, {leaver.said()}')
        print('one was asked to leave, and its pod is to come back')
        again = pod(ranks, 'again', replaced, env)
        received = again.wait_for(r'received (\d+) bytes at the start')
        check(int(received.group(1)) > 0, 'a newcomer without the state')
        print('it came back, and has the state of the others')
        for one in all_ranks[:1] + all_ranks[2:]:
            check(one.process.poll() is None, f'{one.name} has ended, too: '
                  f'{one.said()}')
    finally:
        for one in pods:
            if one.process.poll() is None:
                os.killpg(one.process.pid, signal.SIGKILL)
                one.process.wait()


def main():
    folder, played, master, program, file = sys.argv[1:]
    paths = sorted(pathlib.Path(folder).glob('*.yaml'))
    check(len(paths) >= 3, f'no manifests in {folder}')
    for path in paths:
        fits(path)
        print(f'{path.name} fits Kubernetes {", ".join(VERSIONS)}')
    with tempfile.TemporaryDirectory() as work:
        play(pathlib.Path(folder) / played, pathlib.Path(work), master,
             [program, '--steps', '1000000', '--hidden', '4', file])


if __name__ == '__main__':
    main()
