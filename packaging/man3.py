#!/usr/bin/env python3
"""man3.py - manual pages, section 3, of the public headers.

    man3.py --out FOLDER --version V --date YYYY-MM-DD HEADER...
    man3.py --self-test

Writes a page for each header (pccl.3 of pccl.h) and one for each of its
functions, named after it. Functions that share a comment share a page; the
other names are links. The first HEADER is the one whose types the others use.
FOLDER is emptied of *.3 first. Python's own library only.
"""
import argparse
import os
import re
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'docs'))
sys.dont_write_bytecode = True
import header_text  # noqa: E402 (its folder is known only now)

WIDTH = 78
# Of a header: what links it, and the name of its page's subject.
LINK = {'pccl.h': '-lpccl', 'pccl_loop.h': '-lpccl',
        'pccl_train.h': '-lpccl_train',
        'mpi_pccl.h': '-lmpi_pccl'}
CALL = re.compile(r'\b(?:pccl[A-Z]|PCCL_[A-Z]|MPIX_[A-Z])\w*')


# ------------------------------------------------------------------- troff
def escape(text):
    """Text for troff. A hyphen stays one inside of a word only."""
    text = text.replace('\\', '\\e')
    for char, name in (('~', 'ti'), ('^', 'ha'), ('`', 'ga'), ("'", 'aq')):
        text = text.replace(char, f'\\({name}')
    text = re.sub(r'(?<![A-Za-z])-|-(?![A-Za-z])|(?<=\bpccl)-', r'\\-', text)
    return re.sub(r'^\.', r'\\&.', text, flags=re.M)


def verbatim(text):
    """Lines as they are: commands, declarations."""
    text = escape(text).replace('\\-', '-').replace('-', '\\-')
    return ['.nf'] + text.split('\n') + ['.fi']


class Renderer:
    """Comments as troff; `pages` has the names that have one."""

    def __init__(self, pages):
        self.pages = pages

    def words(self, text, own=()):
        """Escaped text, filled; names of functions refer to their pages."""
        lines = textwrap.wrap(' '.join(text.split()), WIDTH,
                              break_long_words=False, break_on_hyphens=False)

        def refer(match):
            name = match.group(0)
            if name in own or name not in self.pages:
                return name
            return f'\\fB{name}\\fR(3)'
        # An escaped text holds no names that the text does not.
        return [re.sub(r'\*(\w+)\*', r'\\fI\1\\fR',
                       re.sub(CALL, refer, escape(line))) for line in lines]

    def items(self, items, own):
        out = []
        for term, text in items:
            out += ['.TP', f'\\fB{escape(term)}\\fR'] + self.words(text, own)
        return out

    def blocks(self, blocks, own):
        out = []
        for kind, what in blocks:
            if kind == 'paragraph':
                out += ['.PP'] + self.words(what, own)
            elif kind == 'code':
                out += ['.PP'] + verbatim(what)
            else:
                out += self.items(what, own)
        return out


def sentence(text):
    """The first sentence of a comment, as the line of whatis(1)."""
    text = ' '.join(text.split()).rstrip('.')
    parts = re.split(r'(?<=[a-z)])\. |(?<=\w): |; ', text)
    # "The view: rank and size of ..." names the thing before it says what.
    text = parts[1] if ' ' not in parts[0][4:] and parts[1:] else parts[0]
    if len(text) > 75:
        text = text[:76].rsplit(',', 1)[0] if ',' in text[20:75] else \
            text[:76].rsplit(' ', 1)[0] + ' ...'
    first = text.split(' ')[0]
    if not re.search(r'[A-Z]', first[1:]):
        text = text[:1].lower() + text[1:]
    return text.replace('*', '')


def subject(item):
    for kind, what in header_text.blocks(item.text)[:1]:
        if kind == 'paragraph':
            return sentence(what)
    raise ValueError(f'{item.file}:{item.line}: the comment of '
                     f'{item.names[0]} has to begin with a sentence')


def prototypes(code):
    """Declarations, with names of functions bold and of parameters italic."""
    out = []
    for one in re.findall(r'[^;]+;', code):
        one = ' '.join(one.split()).replace('static inline ', '')
        head, rest = one.split('(', 1)
        head, name = re.fullmatch(r'(.*?)(\w+)', head).groups()
        parameters = [re.sub(r'(\w+)$', r'\\fI\1\\fR', word.strip())
                      if word.strip() != 'void' else 'void'
                      for word in rest.rstrip(';)').split(',')]
        lines = [f'{head}\\fB{name}\\fR(']
        for i, word in enumerate(parameters):
            word += ');' if i == len(parameters) - 1 else ','
            plain = re.sub(r'\\f.', '', lines[-1] + ' ' + word)
            if len(plain) <= 72:
                lines[-1] += word if lines[-1][-1] == '(' else ' ' + word
            else:
                lines.append('    ' + word)
        out += [line.replace('-', '\\-') for line in lines]
    return out


# ------------------------------------------------------------------- pages
class Header:
    """What the pages need to know of one header."""

    def __init__(self, path):
        items = header_text.parse(path)
        self.name = os.path.basename(path)
        self.page = self.name[:-2]
        self.top = items[0].text
        self.sections = []  # (title, text, [function item])
        self.types = []
        now = ['', '', []]
        for item in items[1:]:
            if item.kind == 'section':
                self.sections.append(now)
                now = [item.names[0], item.text, []]
            elif item.kind in ('function', 'inline'):
                names = [n for n in item.names if f'{n}(' in item.code]
                own = [n for n in item.names if n not in names]
                code = item.code
                if own:  # a type that shares the function's comment
                    at = re.search(r'^\}.*;$', code, flags=re.M).end()
                    self.types.append((own, item.text, code[:at]))
                    code = code[at:].strip('\n')
                now[2].append(item._replace(names=names, code=code))
            elif item.kind == 'type':
                self.types.append((item.names, item.text, item.code))
        self.sections.append(now)
        self.sections = [s for s in self.sections if s[2]]


class Manual:
    def __init__(self, headers, version, date):
        self.headers, self.version, self.date = headers, version, date
        self.types = [t for h in headers for t in h.types]
        results = next(t for t in self.types if 'pcclResult_t' in t[0])
        self.results = set(re.findall(r'(pccl\w+) =', results[2]))
        self.pages = {n for h in headers for s in h.sections
                      for item in s[2] for n in item.names}
        self.text = Renderer(self.pages)

    def head(self, name, names, what):
        return [f'.\\" Made by packaging/man3.py; not to be edited.',
                f'.TH {name.upper()} 3 {self.date} "PCCL/MPI {self.version}" '
                '"PCCL/MPI Manual"', '.nh', '.ad l',
                '.SH NAME', f'{", ".join(names)} \\- {escape(what)}']

    def include(self, header):
        return ['.SH SYNOPSIS', '.nf',
                f'\\fB#include <{header.name}>\\fR', '']

    def is_result(self, term):
        return all(word in self.results or
                   re.fullmatch(r'MPIX?_\w+|otherwise', word)
                   for word in re.split(r',? ', term))

    def apart(self, blocks):
        """The blocks without their results, and the results."""
        rest, results = [], []
        for kind, what in blocks:
            if kind == 'list':
                results += [i for i in what if self.is_result(i[0])]
                what = [i for i in what if not self.is_result(i[0])]
            if what:
                rest.append((kind, what))
        return rest, results

    def returns(self, header, item):
        if 'int ' not in item.code and 'pcclResult_t ' not in item.code:
            return []
        if header.name.startswith('mpi'):
            return ['.PP', 'An error is raised through the error handler of '
                    'the communicator, as in MPI, and',
                    'returned if that one returns. '
                    'The error classes are those of MPI.']
        return ['.PP', 'Success is \\fBpcclSuccess\\fR, which is 0. '
                '\\fBpccl\\fR(3) lists the codes and',
                'those that any call may return; '
                '\\fBpcclGetErrorString\\fR(3) gives the text of one.']

    def uses(self, item):
        """Definitions of the types that a prototype names."""
        return [(names, text, code) for names, text, code in self.types
                if any(re.search(rf'\b{n}\b', item.code) for n in names)
                and 'pcclResult_t' not in names
                and ('{' in code)]

    def function(self, header, section, item):
        names = item.names
        blocks = header_text.blocks(item.text)
        out = self.head(names[0], names, subject(item))
        out += self.include(header)
        out += prototypes(item.code) + ['.fi', '.PP',
                                        f'Link with \\fI\\{LINK[header.name]}'
                                        '\\fR.']
        if item.kind == 'inline':
            out[-1] = f'Inline. Link with \\fI\\{LINK[header.name]}\\fR.'
        out.append('.SH DESCRIPTION')
        rest, results = self.apart(blocks)
        out += self.text.blocks(rest, names)[1:]  # .SH begins a paragraph
        if section[1] and not section[0].startswith('beyond'):
            out += ['.SS ' + escape(section[0].capitalize())]
            out += self.text.blocks(header_text.blocks(section[1]), names)[1:]
        text = self.text.items(results, names) + self.returns(header, item)
        if text:
            out += ['.SH RETURN VALUE'] + text[text[0] == '.PP':]
        used = self.uses(item)
        if used:
            out.append('.SH TYPES')
            for at, (_, _, code) in enumerate(used):
                out += ['.PP'][:at] + verbatim(code)
        also = {n for n in re.findall(CALL, item.text)
                if n in self.pages and n not in names}
        also = ['\\fBpccl\\-master\\fR(1)',
                f'\\fB{header.page}\\fR(3)'] + [f'\\fB{n}\\fR(3)'
                                                for n in sorted(also)]
        return out + ['.SH SEE ALSO'] + ',\n'.join(also).split('\n')

    def overview(self, header):
        blocks = header_text.blocks(header.top)
        what = sentence(blocks[0][1])
        out = self.head(header.page, [header.page], what)
        out += self.include(header)[:-1]
        out += ['.fi', '.PP', f'Link with \\fI\\{LINK[header.name]}\\fR;',
                f'pkg\\-config knows it as \\fB'
                f'{LINK[header.name][2:]}\\fR.', '.SH DESCRIPTION']
        out += self.text.blocks(blocks[1:], ())[1:]  # the first is the name
        out.append('.SH FUNCTIONS')
        for title, _, items in header.sections:
            if title:
                out.append('.SS ' + escape(title[:1].upper() + title[1:]))
            for item in items:
                out += ['.TP', ', '.join(f'\\fB{n}\\fR(3)'
                                         for n in item.names)]
                out += self.text.words(subject(item), item.names)
        if header.types:
            out.append('.SH TYPES')
            lines = []
            for _, text, code in header.types:
                lines += self.text.blocks(header_text.blocks(text), ())
                lines += ['.PP'] + verbatim(code)
            out += lines[1:]
        others = [h.page for h in self.headers if h is not header]
        also = ['\\fBpccl\\-bench\\fR(1)', '\\fBpccl\\-master\\fR(1)'] + [
            f'\\fB{p}\\fR(3)' for p in sorted(others)]
        return out + ['.SH SEE ALSO'] + ',\n'.join(also).split('\n')

    def write(self, folder):
        """Writes all pages; returns their names."""
        written = []

        def put(name, lines):
            with open(os.path.join(folder, name), 'w', encoding='ascii') as f:
                f.write('\n'.join(lines) + '\n')
            written.append(name)
        for header in self.headers:
            put(header.page + '.3', self.overview(header))
            for section in header.sections:
                for item in section[2]:
                    first = item.names[0] + '.3'
                    put(first, self.function(header, section, item))
                    for name in item.names[1:]:
                        os.symlink(first, os.path.join(folder, name + '.3'))
                        written.append(name + '.3')
        return written


def generate(folder, headers, version, date):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith('.3'):
            os.remove(os.path.join(folder, name))
    manual = Manual([Header(path) for path in headers], version, date)
    return manual.write(folder)


# --------------------------------------------------------------- self-test
SAMPLE = '''/* pccl.h - a sample of
 * two lines.
 *
 * Words. More with pcclOne. */
#ifndef PCCL_H
#define PCCL_H

typedef enum pcclResult_t {
    pcclSuccess = 0,
    pcclBad = 1 /* it's bad */
} pcclResult_t;

/* -------------------------------------------- first part
 * Holds for all of them. */

/* Does one thing, and says so. Not like pcclTwo -1 \\\\ at 2^3.
 *
 * count  how many
 *        there are.
 *
 * pcclSuccess  done.
 * pcclBad      not. */
PCCL_EXPORT pcclResult_t pcclOne(const void *buf, int count);

/* .Both of them. */
PCCL_EXPORT void pcclTwo(void);
PCCL_EXPORT const char *pcclThree(void);

#endif
'''


def self_test():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'pccl.h')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(SAMPLE.replace('\\\\', '\\'))
        out = os.path.join(work, 'out')
        names = generate(out, [path], '1.2', '2026-01-02')
        assert names == ['pccl.3', 'pcclOne.3', 'pcclTwo.3', 'pcclThree.3'], \
            names
        assert os.readlink(os.path.join(out, 'pcclThree.3')) == 'pcclTwo.3'
        with open(os.path.join(out, 'pcclOne.3'), encoding='ascii') as file:
            one = file.read()
        for wanted in (
                '.TH PCCLONE 3 2026-01-02 "PCCL/MPI 1.2" "PCCL/MPI Manual"\n',
                '\npcclOne \\- does one thing, and says so\n',
                'pcclResult_t \\fBpcclOne\\fR(const void *\\fIbuf\\fR, '
                'int \\fIcount\\fR);\n',
                'like \\fBpcclTwo\\fR(3) \\-1 \\e at 2\\(ha3.\n',
                '.TP\n\\fBcount\\fR\nhow many there are.\n',
                '.SS First part\nHolds for all of them.\n',
                '.SH RETURN VALUE\n.TP\n\\fBpcclSuccess\\fR\ndone.\n'):
            assert wanted in one, wanted + '--- not in ---\n' + one
        with open(os.path.join(out, 'pcclTwo.3'), encoding='ascii') as file:
            two = file.read()
        assert '\n\\&.Both of them.\n' in two, two
        with open(os.path.join(out, 'pccl.3'), encoding='ascii') as file:
            top = file.read()
        assert 'pccl \\- a sample of two lines\n' in top, top
        assert 'pcclBad = 1 /* it\\(aqs bad */' in top, top
        assert '\\fBpcclTwo\\fR(3), \\fBpcclThree\\fR(3)\n' in top, top
    print('self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out')
    parser.add_argument('--version')
    parser.add_argument('--date')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('headers', nargs='*')
    given = parser.parse_args()
    if given.self_test:
        self_test()
        return
    if not (given.out and given.version and given.date and given.headers):
        parser.error('--out, --version, --date and headers are needed')
    try:
        generate(given.out, given.headers, given.version, given.date)
    except ValueError as error:
        sys.exit(f'man3.py: {error}')


if __name__ == '__main__':
    main()
