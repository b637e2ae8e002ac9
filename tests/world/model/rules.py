"""rules.py ROOT - the table of tests/world/model/README.md has each rule of the pages of src/,
and is true of the model; each rule that is cited is defined once; and the agreement
can be read in an hour. --self-test: does it notice?"""
import pathlib
import re
import sys

RULE = r"(?:P2P-|[A-Z])\d+[a-z]?"
DEFINED = rf"\*\*({RULE})\*\*"
HEADER = rf"^ \* +({RULE})  (?=\S)"
AGREEMENT_WORDS = 4500
# Families that the model does not know: the contract, and rules of a header.
OUTSIDE = "C"
NO_RULES = {"C11", "C99", "H100"}  # standards, a GPU


def parent(rule):
    return rule.rstrip("abcdefghijklmnop")


def rows_of(text):
    """(rules, answer) of each row."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and re.match(RULE, cells[1]):
            rows.append((re.findall(RULE, cells[1]), cells[2], cells[3]))
    return rows


def faults(protocol, table, model):
    """protocol, table, model: texts."""
    rules = {rule for rule in re.findall(DEFINED, protocol)
             if rule[0] not in OUTSIDE}
    cited = set(re.findall(rf"\b({RULE})\b", model))
    judged = set()
    for text in re.findall(r'"((?:[A-Z0-9-]+[a-z]?(?:, )?)+): ', model):
        judged.update(re.findall(RULE, text))
    found = []
    answers = {}
    for names, answer, words in rows_of(table):
        if answer not in ("yes", "part", "no"):
            found.append(f"{names[0]}: neither yes, part nor no: {answer}")
        if answer != "yes" and not words:
            found.append(f"{names[0]}: {answer}, and no reason")
        for rule in names:
            if rule in answers:
                found.append(f"{rule} has two rows")
            if rule not in rules:
                found.append(f"{rule} is no rule of a page")
            answers[rule] = answer
    for rule in sorted(rules):
        if rule not in answers and parent(rule) not in answers:
            found.append(f"{rule} has no row")
    for rule in sorted(answers):
        known = any(rule in (c, parent(c)) for c in cited)
        if answers[rule] != "no" and not known:
            found.append(f"{rule}: {answers[rule]}, and the model never names it")
    for rule in sorted(judged & rules):
        if answers.get(rule, answers.get(parent(rule))) == "no":
            found.append(f"{rule}: no, and the model refuses by it")
    return found


def cited_in(name, text):
    """The part of a file that cites rules: prose, comments, names of mutants."""
    if name.endswith((".c", ".h")):
        if name.startswith("tests/world/model/"):
            return text
        return "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", text, flags=re.S))
    if name.endswith("mutants.sh"):
        return "\n".join(line.split("|")[0] for line in text.splitlines()
                         if line.count("|") >= 2)
    return text if name.endswith((".md", ".pml")) else ""


def citations(files):
    """files: name -> text. What is cited and not defined, or defined twice."""
    places = {}
    for name, text in sorted(files.items()):
        form = DEFINED if name.startswith("src/") and name.endswith(".md") else HEADER
        for rule in re.findall(form, text, flags=re.M):
            places.setdefault(rule, []).append(name)
    found = [f"{rule} is defined in {' and '.join(names)}"
             for rule, names in sorted(places.items()) if len(names) > 1]
    families = {re.match(r"P2P-|[A-Z]", rule).group() for rule in places}
    for name, text in sorted(files.items()):
        for match in re.finditer(rf"(?<![\w.%-])({RULE})(?![\w%])",
                                 cited_in(name, text)):
            rule = match.group(1)
            if rule in places or rule in NO_RULES:
                continue
            if re.match(r"P2P-|[A-Z]", rule).group() in families:
                found.append(f"{name}: {rule} is defined nowhere")
    return sorted(set(found))


def self_test():
    page = {"src/a/A.md": "* **R1** a\n", "src/b.c": "/* R1 */ R9;\n",
            "src/c.h": "/* x\n * E1  a rule\n */\n"}
    assert citations(page) == []
    assert citations({**page, "src/d.h": " * R1  again\n"})
    assert citations({**page, "tests/e.c": "/* R2 */\n"})
    assert citations({**page, "tests/e.md": "see E2\n"})
    assert citations({**page, "tests/e.md": "C11, and M3 of no family\n"}) == []
    protocol = "* **M1** a\n  * **M1a** b\n* **M2** c\n"
    table = "| M1 | yes | |\n| M2 | no | *bytes* |\n"
    model = 'REFUSE(m, "M1: twice");'
    assert faults(protocol, table, model) == []
    assert faults(protocol + "* **M3** d\n", table, model) == ["M3 has no row"]
    assert faults(protocol, table + "| M3 | no | x |\n", model)
    assert faults(protocol, table + "| M2 | no | x |\n", model)
    assert faults(protocol, table.replace("*bytes*", ""), model)
    assert faults(protocol, table.replace("| no", "| maybe"), model)
    assert faults(protocol, table.replace("| no |", "| part |"), model)
    assert faults(protocol, table, model + 'REFUSE(m, "M2: so");')
    assert faults(protocol, table, "")


def main():
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return 0
    root = pathlib.Path(sys.argv[1])
    folder = root / "tests/world/model"
    model = "".join(p.read_text() for p in sorted(folder.glob("model*.[ch]")))
    files = {str(path.relative_to(root)): path.read_text()
             for top in ("src", "tests") for path in sorted((root / top).rglob("*"))
             if path.suffix in (".c", ".h", ".md", ".pml") or
             path.name == "mutants.sh"}
    pages = "".join(text for name, text in files.items()
                    if name.startswith("src/") and name.endswith(".md"))
    found = [f"tests/world/model/README.md: {fault}" for fault in
             faults(pages, (folder / "README.md").read_text(), model)]
    found += citations(files)
    words = len(files["src/master/AGREEMENT.md"].split())
    if words > AGREEMENT_WORDS:
        found.append(f"AGREEMENT.md has {words} words, more than {AGREEMENT_WORDS}")
    print("\n".join(found) or f"{words} words of the agreement")
    return 1 if found else 0


sys.exit(main())
