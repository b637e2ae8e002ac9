"""fake_etcd.py - the part of etcd's JSON gateway that an election needs, which can
answer in ways that etcd does not.

mode: 'good', or what is wrong with each answer (`answer`), or with some (`keys`,
`renew`): those come only once somebody leads.
"""

import base64
import http.server
import json
import threading
import time


def code(text):
    return base64.b64encode(text.encode()).decode()


class Fake:
    def __init__(self, user=None, context=None):
        self.mode, self.user = 'good', user
        self.changed = threading.Condition()
        self.token, self.tokens = None, 0  # the only one that counts
        self.keys, self.leases, self.number = {}, {}, 7000
        self.renewals = 0
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):  # noqa: N802 - the name of the library
                fake.post(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        if context:
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = 'https' if context else 'http'
        self.url = f'{scheme}://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    # ---------------------------------------------------------- of the tests

    def recover(self):
        """All is well, and nobody leads."""
        with self.changed:
            self.mode = 'good'
            self.keys.clear()
            self.leases.clear()
            self.changed.notify_all()

    def take(self, value):
        self.keys['run7'] = (value, 1)

    def value(self):
        with self.changed:
            self.expire()
            return self.keys.get('run7', (None, 0))[0]

    def forget_tokens(self):
        self.token = None

    def wait_renewals(self, count):
        with self.changed:
            wanted = self.renewals + count
            if not self.changed.wait_for(lambda: self.renewals >= wanted, 120):
                raise TimeoutError('nobody renews')

    def kill(self):
        self.recover()
        self.server.shutdown()
        self.server.server_close()

    # ------------------------------------------------------------- answering

    def expire(self):
        now = time.monotonic()
        self.leases = {n: x for n, x in self.leases.items() if x[1] > now}
        self.keys = {k: x for k, x in self.keys.items()
                     if x[1] in self.leases or x[1] == 1}

    def post(self, handler):
        size = int(handler.headers.get('Content-Length', 0))
        asked = json.loads(handler.rfile.read(size))
        path = handler.path.removeprefix('/v3/')
        with self.changed:
            mode = self.mode
            if mode == 'slow':
                self.changed.wait_for(lambda: self.mode != 'slow', 120)
            self.expire()
            status, answer = self.answer(path, asked, handler.headers, mode)
        text = json.dumps(answer).encode()
        if mode == 'garbage':
            text = b'\x00\xff{{{"ID":'
        elif mode == 'empty':
            text = b''
        elif mode == 'huge':
            text = b' ' * 100000 + text
        elif mode == 'hangup':
            handler.close_connection = True
            return
        handler.send_response(status)
        handler.send_header('Content-Type', 'application/json')
        handler.send_header('Content-Length', str(len(text) + (mode == 'cut')))
        handler.end_headers()
        handler.wfile.write(text)
        if mode == 'cut':
            handler.close_connection = True

    def answer(self, path, asked, headers, mode):
        if mode == 'stranger':
            return 200, {'result': {}}
        if mode == '500':
            return 500, {'error': 'etcdserver: no leader', 'code': 14}
        if mode == '404':
            return 404, 'Not Found'
        if mode == 'error':
            return 200, {'error': {'grpc_code': 14,
                                   'message': 'etcdserver: request timed out'}}
        if path == 'auth/authenticate':
            return self.log_in(asked)
        if self.user and not headers.get('Authorization'):
            return 400, {'error': 'etcdserver: user name is empty', 'code': 3}
        if self.user and headers.get('Authorization') != self.token:
            return 401, {'error': 'etcdserver: invalid auth token', 'code': 16}
        kind = {'lease/grant': self.grant, 'lease/keepalive': self.renew,
                'lease/revoke': self.revoke, 'kv/range': self.range,
                'kv/txn': self.txn}[path]
        return 200, kind(asked, mode)

    HEADER = {'header': {'cluster_id': '1', 'revision': '3'}}

    def log_in(self, asked):
        if (asked['name'], asked['password']) != self.user:
            return 400, {'error': 'etcdserver: authentication failed, invalid user ID '
                                  'or password', 'code': 3}
        self.tokens += 1
        self.token = f'token.{self.tokens}'
        return 200, {**self.HEADER, 'token': self.token}

    def grant(self, asked, _):
        self.number += 1
        ttl = int(asked['TTL'])
        self.leases[self.number] = (ttl, time.monotonic() + ttl)
        return {**self.HEADER, 'ID': str(self.number), 'TTL': str(ttl)}

    def renew(self, asked, mode):
        number = int(asked['ID'])
        self.renewals += 1
        self.changed.notify_all()
        if mode == 'over' or number not in self.leases:
            return {'result': {**self.HEADER, 'ID': str(number)}}
        ttl = self.leases[number][0]
        self.leases[number] = (ttl, time.monotonic() + ttl)
        return {'result': {**self.HEADER, 'ID': str(number + (mode == 'other')),
                           'TTL': str(ttl)}}

    def revoke(self, asked, _):
        self.leases.pop(int(asked['ID']), None)
        self.expire()
        return self.HEADER

    def range(self, asked, mode='good'):
        name = base64.b64decode(asked['key']).decode()
        if name not in self.keys:
            return self.HEADER
        value, lease = self.keys[name]
        if mode == 'removed':
            del self.keys[name]
            return self.HEADER
        return {**self.HEADER, 'kvs': [{
            'key': asked['key'], 'create_revision': '2', 'value': code(value),
            'lease': str(lease + (mode == 'stolen'))}], 'count': '1'}

    def txn(self, asked, _):
        put = asked['success'][0]['request_put']
        name = base64.b64decode(put['key']).decode()
        if name in self.keys:
            found = self.range({'key': put['key']})
            return {**self.HEADER, 'responses': [{'response_range': found}]}
        self.keys[name] = (base64.b64decode(put['value']).decode(), int(put['lease']))
        return {**self.HEADER, 'succeeded': True, 'responses': [{'response_put': {}}]}
