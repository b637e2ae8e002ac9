"""literals.py - the string literals of C and Python sources."""
import io
import re
import tokenize

TOKEN = re.compile(r'''
    (?P<skip>/\*.*?\*/ | //[^\n]* | '(?:[^'\\]|\\.)*')
  | "(?P<text>(?:[^"\\]|\\.)*)"
  | (?P<format>\bPRI[a-zA-Z0-9]+)
  | (?P<space>\s+|\\\n)
  | (?P<other>.)''', re.S | re.X)


def of_c(source):
    """Neighbouring literals are one; PRIu64 and the like are part of it."""
    found, last = [], None
    for token in TOKEN.finditer(source):
        kind = token.lastgroup
        if kind == 'text':
            last = (last or '') + token.group('text')
        elif kind == 'other' or (kind == 'format' and last is None):
            if last is not None:
                found.append(last)
            last = None
    return [re.sub(r'\\(.)', lambda m: {'n': '\n', 't': '\t'}.get(
        m.group(1), m.group(1)), text) for text in found]


def of_python(source):
    found = []
    joined = ''
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            joined += re.sub(r'^\w*(\'\'\'|"""|\'|")|(\'\'\'|"""|\'|")$', '',
                             token.string)
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            found.append(joined)
            joined = ''
    return [text for text in found if text]
