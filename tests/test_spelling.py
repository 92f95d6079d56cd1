"""American spelling in all code, tests and documentation."""

import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = {".cff", ".css", ".html", ".json", ".md", ".py", ".rst", ".svg", ".toml", ".yaml", ".yml"}

# Underscores separate words. Brackets as in `toward[s]` keep the pattern from matching itself.
BRITISH = re.compile(
    r"(?<![a-z])("
    r"[a-z]*(arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rig|rum|tum|vap|vig)our[a-z]*"
    r"|(calib|cent|fib|lit|met|spect|theat)re[ds]?|centr[i]ng"
    r"|(?!improv)[a-z]+isation(al|s)?"
    r"|[a-z]{2,}([aegilo]l|[aeo]r|[agio]n|im|[nt]om|[eh]as|hes|[en]t|rd|tr)is(e[drs]?|ers|ing|able)"
    r"|(ana|cata|para)lys(e[dr]?|ers|ing)"
    r"|[a-z]*(cancel|channel|equal|funnel|initial|label|level|model|signal|total|travel|tunnel)"
    r"l(ed|er|ers|ing)"
    r"|(de|of)fence|licen[c]e[ds]?|practis(e[ds]?|ing)|program[m]es?|judg[e]ments?|art[e]facts?"
    r"|age[i]ng|amongs[t]|burn[t]|che[q]ues?|enro[l]s?|fulfi[l]s?|gre[y](ed|ish|s)?|learn[t]|math[s]"
    r"|per[ ]cent|s[c]eptic(al|ism|s)?|spel[t]|toward[s]|whils[t]|(an|leuk)aemi[ac]|p[a]ediatrics?"
    r")(?![a-z])",
    re.IGNORECASE,
)


def text_files():
    """Return the text files of the repository, or of an unpacked sdist without git."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()]
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            names = path.name, path.relative_to(ROOT).as_posix()
            if path.name == ".git" or any(fnmatch(n, i) for n in names for i in ignored):
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix in TEXT or path.name == "Makefile":
                yield path


def test_british_spelling_is_found():
    words = (
        "behavi-our cent-re custom-ise discret-ised label-led n_neighb-ours normal-isation "
        "organ-ising program-me real-ised_ summar-ises toward-s"
    )
    assert len(BRITISH.findall(words.replace("-", ""))) == len(words.split())


def test_american_spelling_is_accepted():
    words = (
        "aria-labelledby arise cancellation contour controlled exercise expertise four "
        "improvisation labeled metric noise programmer promise valise"
    )
    assert not BRITISH.search(words)


def test_spelling_is_american():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in BRITISH.finditer(line)
    ]
    assert not found, "\n".join(found)
