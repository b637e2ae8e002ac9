"""rules.py ROOT - the table of tests/world/model/README.md has each rule of PROTOCOL.md,
and is true of the model. --self-test: does it notice?"""
import pathlib
import re
import sys

RULE = r"(?:P2P-|[A-Z])\d+[a-z]?"


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
    rules = set(re.findall(rf"\*\*({RULE})\*\*", protocol))
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
                found.append(f"{rule} is no rule of PROTOCOL.md")
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


def self_test():
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
    found = faults(
        (root / "src/master/PROTOCOL.md").read_text(),
        (folder / "README.md").read_text(),
        model,
    )
    for fault in found:
        print(f"tests/world/model/README.md: {fault}")
    return 1 if found else 0


sys.exit(main())
