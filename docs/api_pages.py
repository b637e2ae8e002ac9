"""api_pages.py - a page of the API reference from a public header."""
import re

import header_text

HEADERS = ('pccl.h', 'mpi_pccl.h', 'pccl_loop.h', 'pccl_train.h',
           'ccoip_inet.h', 'mpi-ext.h')
DECLARED = ('function', 'inline', 'type', 'macro')


def slug(title):
    return re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')


def page_of(header):
    return 'api_' + re.sub(r'\W', '_', header.removesuffix('.h')) + '.md'


def _title(item):
    return ', '.join(item.names[:5]) + (', ...' if item.names[5:] else '')


def _code(item):
    """The header aligns arguments behind PCCL_EXPORT, which is not shown."""
    if item.kind != 'function':
        return item.code
    return re.sub(r'^ {12}(?= {4})', '', item.code, flags=re.M)


class Reference:
    """The pages of all headers, which name each other's functions."""

    def __init__(self, folder):
        self.items = {h: header_text.parse(f'{folder}/{h}') for h in HEADERS}
        self.places = {}
        for header, items in self.items.items():
            for item in items:
                if item.kind not in DECLARED:
                    continue
                place = f'{page_of(header)}#{slug(_title(item))}'
                for name in item.names + item.values:
                    self.places.setdefault(name, place)

    def _words(self, text, own):
        """Text as Markdown: names that are declared here lead there."""
        def word(match):
            name = match.group(0)
            place = self.places.get(name)
            if place is None or name in own:
                return f'`{name}`' if '_' in name else name
            return f'[`{name}`]({place})'

        parts = re.split(r'(`[^`]*`)', text)
        for i in range(0, len(parts), 2):
            part = re.sub(r'([\\*<>\[\]|])', r'\\\1', parts[i])
            parts[i] = re.sub(r'\b(pccl|PCCL_|MPI|MPIX_|ccoip_)\w*', word,
                              part)
        return ''.join(parts)

    def _text(self, text, own):
        out = []
        for kind, block in header_text.blocks(text):
            if kind == 'code':
                out += ['```text', block, '```', '']
            elif kind == 'paragraph':
                out += [self._words(block, own), '']
            else:
                out += ['| | |', '|---|---|']
                out += [f'| {self._words(a, own)} | {self._words(b, own)} |'
                        for a, b in block]
                out += ['']
        return out

    def page(self, header):
        out = []
        for item in self.items[header]:
            own = set(item.names)
            if item.kind == 'file':
                out += [f'# {header}', '']
                out += self._text(item.text[0].upper() + item.text[1:], own)
            elif item.kind == 'section':
                title = item.names[0]
                out += [f'## {title[0].upper()}{title[1:]}', '']
                out += self._text(item.text, own)
            else:
                if not any(line.startswith('## ') for line in out):
                    out += ['## Declarations', '']
                out += [f'### {_title(item)}', '', '```c', _code(item), '```',
                        '']
                out += self._text(item.text, own)
        return '\n'.join(out)
