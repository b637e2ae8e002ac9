"""header_text.py - reads a public header: its declarations and their comments.

    for item in header_text.parse('include/pccl.h'):
        print(item.kind, item.names, item.text)
    for block in header_text.blocks(item.text):
        ...

Knows the form that the headers of this project have, and no other C. What it
does not understand is a ValueError with file and line, so that no declaration
is left out in silence. Python's own library only.
"""
import re
from collections import namedtuple

# kind   'file' (the comment at the top), 'section' (a comment with a rule of
#        dashes), 'function', 'inline', 'type' or 'macro'.
# names  of a file: its name; of a section: its title; otherwise what is
#        declared. Declarations that follow each other without a blank line or
#        a comment are one item: one comment is theirs.
# code   the declarations as they stand, without PCCL_EXPORT; of an inline
#        function only its prototype.
# text   the comment, without its stars.
# values of a type that is an enum: its names.
Item = namedtuple('Item', 'kind names code text values file line')

RULE = re.compile(r'^/\* [-=]{5,} ?')
SKIPPED = re.compile(r'#(include|ifdef|ifndef|if|else|endif)\b|extern "C"|}$')
FUNCTION = re.compile(r'(\w+)\(')
# Headers guard themselves, and define this where nobody did.
UNTOLD = re.compile(r'#define (\w+_H|PCCL_EXPORT|PCCL_NULLABLE)\b')


def _comment(lines, at):
    """The text of the comment that begins at line `at`, and the next line."""
    end = at
    while '*/' not in lines[end]:
        end += 1
    raw = '\n'.join(lines[at:end + 1])
    raw = raw.strip()[2:raw.strip().rindex('*/')]
    text = [re.sub(r'^ \* ?', '', line).rstrip() for line in raw.split('\n')]
    text[0] = text[0][1:] if text[0].startswith(' ') else text[0]
    return '\n'.join(text).strip('\n').rstrip(), end + 1


def _declaration(lines, at, where):
    """One declaration from line `at`: its lines, and the next line."""
    if lines[at].startswith('#define'):
        end = at
        while lines[end].endswith('\\'):
            end += 1
        return lines[at:end + 1], end + 1
    depth, end, inside = 0, at, False
    while end < len(lines):
        # Comments of members may hold anything.
        bare, inside = _uncomment(lines[end], inside)
        depth += bare.count('{') - bare.count('}')
        if depth == 0 and (bare.endswith(';') or
                           (bare == '}' and lines[at].startswith('static'))):
            return lines[at:end + 1], end + 1
        end += 1
    raise ValueError(f'{where}: a declaration without end')


def _uncomment(line, inside):
    bare = ''
    while line:
        mark = '*/' if inside else '/*'
        head, found, line = line.partition(mark)
        if not inside:
            bare += head
        if not found:
            break
        inside = not inside
    return bare.rstrip(), inside


def _describe(code, where):
    """Kind, names and values of a declaration."""
    text, inside = [], False
    for line in code:
        bare, inside = _uncomment(line, inside)
        text.append(bare)
    text = ' '.join(' '.join(text).split())
    if code[0].startswith('#define'):
        return 'macro', [re.match(r'#define (\w+)', code[0]).group(1)], []
    if text.startswith(('typedef', 'enum')):
        values = []
        if re.match(r'(typedef )?enum\b', text):
            inner = text[text.index('{') + 1:text.rindex('}')]
            values = re.findall(r'(\w+)\s*=', inner)
        name = re.search(r'(\w+);$', text)
        return 'type', [name.group(1)] if name else values, values
    found = FUNCTION.search(text.replace('PCCL_EXPORT ', ''))
    if not found:
        raise ValueError(f'{where}: not a declaration: {text[:60]}')
    kind = 'inline' if text.startswith('static') else 'function'
    return kind, [found.group(1)], []


def _shown(code, kind):
    if kind == 'inline':
        code = code[:next(i for i, line in enumerate(code) if line == '{')]
        code = code[:-1] + [code[-1] + ';']
    text = '\n'.join(code)
    # The words after the mark move to the left with it.
    return re.sub(r'^PCCL_EXPORT[ \n]', '', text)


def parse(path):
    """The items of a header, in its order."""
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    items, at, text = [], 0, None
    joins = False  # the next declaration belongs to the last item
    while at < len(lines):
        line, where = lines[at], f'{path}:{at + 1}'
        if not line:
            at, text, joins = at + 1, None, False
        elif not items:
            text, at = _comment(lines, at)
            name, _, text = text.partition(' - ')
            items.append(Item('file', [name], '', text, [], path, 1))
            text = None
        elif RULE.match(line):
            text, after = _comment(lines, at)
            title, _, text = re.sub(r'^[-=]{5,} ?', '', text).partition('\n')
            items.append(Item('section', [title.strip()], '', text.strip('\n'),
                              [], path, at + 1))
            at, text, joins = after, None, False
        elif line.startswith('/*'):
            text, at = _comment(lines, at)
            joins = False
        elif UNTOLD.match(line) or SKIPPED.match(line):
            at += 1
        else:
            start = at
            code, at = _declaration(lines, at, where)
            kind, names, values = _describe(code, where)
            shown = _shown(code, kind)
            if joins and items[-1].kind in (kind, 'type'):
                last = items.pop()
                items.append(last._replace(kind=kind, names=last.names + names,
                                           code=last.code + '\n' + shown))
            else:
                items.append(Item(kind, names, shown, text or '', values, path,
                                  start + 1))
            joins = True
    return items


TERM = re.compile(r'^(\S+(?:,? \S+)*?)(  +)(\S.*)$')


def blocks(text):
    """A comment as blocks: ('paragraph', TEXT), ('code', TEXT) for lines that
    are indented, ('list', [(TERM, TEXT), ...]) for results and arguments."""
    out = []
    for part in re.split(r'\n\s*\n', text) if text else []:
        lines = part.split('\n')
        if lines[0].startswith('  '):
            margin = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
            out.append(('code', '\n'.join(x[margin:] for x in lines)))
            continue
        for line in lines:
            term = TERM.match(line)
            if term:
                if not out or out[-1][0] != 'list':
                    out.append(('list', []))
                out[-1][1].append((term.group(1), term.group(3)))
            elif line.startswith('  ') and out and out[-1][0] == 'list':
                name, said = out[-1][1].pop()
                out[-1][1].append((name, said + ' ' + line.strip()))
            elif line is not lines[0] and out and out[-1][0] == 'paragraph':
                out[-1] = ('paragraph', out[-1][1] + ' ' + line.strip())
            else:
                out.append(('paragraph', line.strip()))
    return out
