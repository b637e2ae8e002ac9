#!/usr/bin/env python3
"""make_site.py OUT - makes the web site of the documentation in OUT/html.

Lays out the guides of docs/, the texts that stay where they are (README.md of
each folder, AGREEMENT.md, ...) and the reference made from the headers in
OUT/source, and has Sphinx build them. A warning is an error, and so is a link
that leads nowhere. Nothing is fetched. The pages need no network either.

    make_site.py --can-build    status 0 if Sphinx and MyST are there
    make_site.py --lay-out OUT  without Sphinx: OUT/source, and the links in it
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
import api_pages  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Page -> its text in the tree, in the order of the menu.
MENU = (
    ('Guides', {
        'gallery': 'examples/README.md',
        'port': 'docs/port.md',
        'failures': 'docs/failures.md',
        'native': 'docs/native.md',
        'preemptible': 'docs/preemptible.md',
        'checkpoint': 'docs/checkpoint.md',
        'master': 'docs/master.md',
        'network': 'docs/network.md',
        'internet': 'docs/internet.md',
        'keys': 'docs/security.md',
        'open-runs': 'docs/open-runs.md',
        'slurm': 'docs/slurm.md',
        'kubernetes': 'docs/kubernetes.md',
        'training': 'docs/training.md',
        'evidence': 'docs/evidence.md',
        'tuning': 'docs/tuning.md',
        'measuring': 'docs/measuring.md',
        'packaging': 'packaging/README.md',
    }),
    ('When something is wrong', {
        'troubleshooting': 'docs/troubleshooting.md',
        'debugging': 'docs/debugging.md',
        'faq': 'docs/faq.md',
    }),
    ('Reference', {
        'overview': 'README.md',
        'api': None,
        'functions': 'src/mpi/FUNCTIONS.md',
        'python': 'python/README.md',
        'torch': 'python/TORCH.md',
        'changelog': 'CHANGELOG.md',
        'security': 'SECURITY.md',
        'attacks': 'docs/attacks.md',
    }),
    ('Inside', {
        'architecture': 'src/README.md',
        'agreement': 'src/master/AGREEMENT.md',
        'watch': 'src/master/watch/WATCH.md',
        'search': 'src/master/search/SEARCH.md',
        'succession': 'src/master/succession/SUCCESSION.md',
        'coverage': 'src/master/coverage/COVERAGE.md',
        'links': 'src/link/LINKS.md',
        'algorithms': 'src/ring/ALGORITHMS.md',
        'state': 'src/elastic/STATE.md',
        'messages': 'src/message/MESSAGES.md',
        'keys': 'src/base/KEYS.md',
        'trace': 'src/TRACE.md',
        'contributing': 'CONTRIBUTING.md',
        'tests': 'tests/README.md',
        'sched': 'tests/world/sched/README.md',
        'litmus': 'tests/world/litmus/README.md',
        'wan': 'tests/wan/README.md',
        'wan_results': 'tests/wan/RESULTS.md',
        'bench_notes': 'tests/bench/NOTES.md',
        'mutants': 'tests/world/sim/mutants.md',
    }),
)
# In the menu, where the title of the text is not enough.
TITLES = {'overview': 'Overview', 'python': 'Python'}
FIRST = ('index', 'docs/index.md')

LINK = re.compile(r'(?<!\\)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)')
PICTURES = ('.svg', '.png')


class Broken(Exception):
    pass


def pages():
    found = {FIRST[1]: FIRST[0]}
    for _, group in MENU:
        found.update({path: name for name, path in group.items() if path})
    return found


def outside_of_code(text, change):
    """Applies change() to what is neither a block nor a span of code."""
    parts = re.split(r'(^```.*?^```$)', text, flags=re.M | re.S)
    return ''.join(part if i % 2 else change(part)
                   for i, part in enumerate(parts))


def headings(text):
    found = set()

    def take(part):
        for title in re.findall(r'^#+ +(.*)', part, re.M):
            bare = api_pages.slug(title.replace('`', ''))
            found.add(bare)
        return part

    outside_of_code(text, take)
    return found


def resolve(source, target):
    """The file of the tree that a link of `source` leads to, and its place."""
    path, _, place = target.partition('#')
    if not path:
        return source, place
    full = os.path.normpath(os.path.join(os.path.dirname(source), path))
    if not (ROOT / full).exists():
        raise Broken(f'{source}: {target} is not there')
    if place and full.endswith('.md') and \
            place not in headings((ROOT / full).read_text()):
        raise Broken(f'{source}: {target}: no such heading')
    return full, place


def rewrite(source, text, out):
    """Links of a file of the tree, for its page. Pictures come along; what is
    no page keeps its name."""
    known = pages()

    def link(match):
        words, target = match.groups()
        if re.match(r'(https?|mailto):', target):
            return match.group(0)
        full, place = resolve(source, target)
        if not target.partition('#')[0]:
            if place not in headings(text):
                raise Broken(f'{source}: {target}: no such heading')
            return match.group(0)
        if full.endswith(PICTURES):
            name = full.replace('/', '_')
            shutil.copyfile(ROOT / full, out / name)
            return f'[{words}]({name})'
        if full in known:
            return f'[{words}]({known[full]}.md{"#" + place if place else ""})'
        return words if full in words else f'{words} (`{full}`)'

    return outside_of_code(text, lambda part: LINK.sub(link, part))


def lay_out(folder):
    for path in sorted(ROOT.glob('docs/*.md')):
        if str(path.relative_to(ROOT)) not in pages():
            raise Broken(f'{path.relative_to(ROOT)} is not in the menu')
    out = folder / 'source'
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path, name in pages().items():
        text = rewrite(path, (ROOT / path).read_text(), out)
        (out / f'{name}.md').write_text(text)
    reference = api_pages.Reference(ROOT / 'include')
    listed = []
    for header in api_pages.HEADERS:
        page = api_pages.page_of(header)
        (out / page).write_text(reference.page(header))
        listed.append(page.removesuffix('.md'))
    (out / 'api.md').write_text(
        '# The headers\n\nMade from the comments of `include/`.\n\n'
        '```{toctree}\n' + '\n'.join(listed) + '\n```\n')
    menu = ''
    for title, group in MENU:
        menu += (f'\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n' +
                 '\n'.join(f'{TITLES[name]} <{name}>' if name in TITLES
                           else name for name in group) + '\n```\n')
    with open(out / 'index.md', 'a', encoding='utf-8') as index:
        index.write(menu)
    shutil.copyfile(ROOT / 'docs/conf.py', out / 'conf.py')


class Page(html.parser.HTMLParser):
    """The places of a page, and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get('id'):
            self.places.add(attrs['id'])
        if tag == 'a' and attrs.get('name'):
            self.places.add(attrs['name'])
        if tag == 'a' and attrs.get('href'):
            self.links.append(attrs['href'])
        elif attrs.get('src') or (tag == 'link' and attrs.get('href')):
            self.loads.append(attrs.get('src') or attrs['href'])


def check_links(folder):
    """Every link of the site leads to a page or place of it that exists, and
    nothing is loaded from elsewhere."""
    read = {p: Page(p.read_text()) for p in sorted(folder.rglob('*.html'))}
    faults = []
    for path, page in read.items():
        for target in page.links + page.loads:
            url = urllib.parse.urlsplit(target)
            where = f'{path.relative_to(folder)}: {target}'
            if url.scheme or url.netloc:
                if target in page.loads and url.scheme != 'data':
                    faults.append(f'{where} is not of this site')
                continue
            other = path if not url.path else \
                (path.parent / urllib.parse.unquote(url.path)).resolve()
            if not other.exists():
                faults.append(f'{where} is not there')
            elif url.fragment and other in read and \
                    urllib.parse.unquote(url.fragment) not in \
                    read[other].places:
                faults.append(f'{where}: no such place')
    return len(read), faults


def builder():
    """Sphinx, with a Python that has it and MyST, or None."""
    for python in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(python) and subprocess.run(
                [python, '-c', 'import sphinx, myst_parser'],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                check=False).returncode == 0:
            return [python, '-m', 'sphinx']
    return None


def main():
    if sys.argv[1:] == ['--can-build']:
        return 0 if builder() else 1
    only = sys.argv[1:2] == ['--lay-out']
    if len(sys.argv) != 2 + only:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[-1]).resolve()
    try:
        lay_out(folder)
    except Broken as fault:
        print(f'make_site.py: {fault}', file=sys.stderr)
        return 1
    if only:
        return 0
    sphinx = builder()
    if not sphinx:
        print('make_site.py: Sphinx with MyST is missing (Debian package '
              'python3-myst-parser); the site is not built')
        return 77
    result = subprocess.run(
        sphinx + ['-q', '-n', '-W', '--keep-going', '-b', 'html',
                  '-d', folder / 'doctrees', folder / 'source',
                  folder / 'html'], check=False)
    if result.returncode != 0:
        return 1
    count, faults = check_links(folder / 'html')
    for fault in faults:
        print(f'make_site.py: {fault}', file=sys.stderr)
    print(f'make_site.py: {count} pages in {folder / "html"}')
    return 1 if faults or count == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
