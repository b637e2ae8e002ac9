"""page_blocks.py - the blocks of commands of a page, and their marks.

A block is what stands between ```sh and ```. A comment on a line of its own
before it is its mark; readers do not see it. Without a mark the block is given
to a shell as it stands, in a folder that all blocks of the page share.

    <!-- run: beside -->      each command beside those before it, on the host
                              that its remark names ("# on node2") or node1
    <!-- run: in the tree --> in a folder that has examples/ and the build
    <!-- run: where TOOL is --> not, with a word, where it is not installed
    <!-- file: NAME -->       it is no command but a file of that name; so may
                              be blocks of other languages
    <!-- not run: REASON -->  it does not run, for this reason
"""
import re
import shutil

BLOCK = re.compile(
    r'(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?'
    r'^```(?P<language>\w*)\n(?P<text>.*?)^```$', re.M | re.S)
WAYS = re.compile(r'beside|in the tree|where (\w+) is')


class Block:
    """One block: how it runs, where it stands, what it says."""

    def __init__(self, page, match):
        mark = match.group('mark') or ''
        self.page, self.text = page, match.group('text')
        self.language = match.group('language')
        at = match.start('language')
        self.line = match.string.count('\n', 0, at) + 1
        self.kind, _, rest = mark.partition(':')
        self.kind, self.rest = self.kind.strip(), rest.strip()

    def runs(self):
        return self.language == 'sh' and self.kind in ('', 'run')

    def tool(self):
        """What it needs, if that is not here."""
        match = self.kind == 'run' and WAYS.fullmatch(self.rest)
        name = match and match.group(1)
        return name if name and not shutil.which(name) else None

    def __str__(self):
        return f'{self.page}:{self.line}'


def of(page, text):
    blocks = [Block(page, match) for match in BLOCK.finditer(text)]
    return [b for b in blocks if b.language == 'sh' or b.kind == 'file']


def faults(block, tests):
    """What is wrong with the mark of a block. A reason may name tests."""
    if block.kind not in ('', 'run', 'file', 'not run'):
        return f'{block}: the mark {block.kind!r} is not known'
    if block.kind == 'run' and not WAYS.fullmatch(block.rest):
        return f'{block}: nobody knows how to run {block.rest!r}'
    if block.kind == 'not run' and len(block.rest.split()) < 3:
        return f'{block}: it does not run, and no reason is given'
    if block.kind == 'not run':
        for name in re.findall(r'\b[a-z]+(?:_[a-z]+)+\b', block.rest):
            if name not in tests:
                return f'{block}: {name} is no test'
    if block.kind == 'file' and not re.fullmatch(r'[\w.]+', block.rest):
        return f'{block}: {block.rest!r} is no name of a file'
    return None


def commands(text):
    """The commands of a block with the hosts that their remarks name."""
    found, joined = [], ''
    for line in text.split('\n'):
        joined += line
        if joined.endswith('\\'):
            joined = joined[:-1]
            continue
        command, _, remark = re.sub(r'(^|\s)#', '\0', joined).partition('\0')
        if command.strip():
            found.append((' '.join(command.split()),
                          re.findall(r'\bnode\d\b', remark) or ['node1']))
        joined = ''
    return found
