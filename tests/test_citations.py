"""Every number such as R-6.12 that is cited in this repository is explained in docs/theory.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
ROOT = next(folder for folder in HERE.parents if (folder / "docs" / "theory.md").exists())
THEORY = ROOT / "docs" / "theory.md"
PLACES = ("src", "cpp", "tests", "benchmarks", "experiments", "docs", "README.md",
          "CONTRIBUTING.md")  # fmt: skip
NOT_TEXT = {"__pycache__", "corpus", "fixtures"}

# R-6, a whole section; R-6.*, all of it; A-03, the same as A-3
_NUMBER = r"(?<![\w-])([RAPN])-(\d+)(?:\.(\d+|\*))?(?![\w-])"
_GAP = r"[\s/#*]+"  # a citation may go on in the next line of a comment
_RANGE = re.compile(rf"{_NUMBER}{_GAP}to{_GAP}(?:\1-)?(\d+)(?:\.(\d+))?(?![\w-])")
_SHORT = re.compile(rf"{_NUMBER}((?:,{_GAP}\d+\.\d+(?![\w.]))+)")  # 1.7

# letter, section or number, entry of the section; None: the section as a whole
Number = tuple[str, int, int | None]


def citations(text: str) -> Iterator[Number]:
    """Yield the numbers that a text cites; ranges are written out."""
    for letter, section, entry in re.findall(_NUMBER, text):
        yield letter, int(section), int(entry) if entry.isdigit() else None
    for found in _RANGE.finditer(text):
        letter, section, entry, last_section, last_entry = found.groups()
        if entry is None and last_entry is None:
            for number in range(int(section), int(last_section) + 1):
                yield letter, number, None
        elif entry is not None and last_entry is not None and section == last_section:
            for number in range(int(entry), int(last_entry) + 1):
                yield letter, int(section), number
        else:
            raise ValueError(f"a range must stay within a section: {found.group()!r}")
    for found in _SHORT.finditer(text):
        for section, entry in re.findall(r"(\d+)\.(\d+)", found.group(4)):
            if section == found.group(2):  # else it is a number that cites nothing
                yield found.group(1), int(section), int(entry)


def explained(theory: str) -> list[Number]:
    """Return the numbers that have a heading or a row of a table."""
    titles = re.findall(r"^(?:#+ |\| )([RAPN])-(\d+)(?:\.(\d+))?(?= )", theory, re.MULTILINE)
    return [(letter, int(a), int(b) if b else None) for letter, a, b in titles]


def missing(text: str, theory: str) -> list[Number]:
    """Return the numbers that a text cites and the theory does not explain."""
    known = set(explained(theory))
    return sorted({number for number in citations(text) if number not in known}, key=str)


def texts() -> Iterator[Path]:
    """Yield the files that may cite numbers."""
    for place in PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            parts = file.relative_to(ROOT).parts
            hidden = any(part.startswith(".") for part in parts)
            if file.is_file() and file != HERE and not hidden and not NOT_TEXT.intersection(parts):
                yield file


def read(file: Path) -> str:
    """Return the text of a file, nothing if it is no text."""
    content = file.read_bytes()
    if b"\0" in content:
        return ""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return ""


def test_every_citation_is_explained() -> None:
    theory = THEORY.read_text(encoding="utf-8")
    found = {str(f.relative_to(ROOT)): missing(read(f), theory) for f in texts()}
    assert {file: numbers for file, numbers in found.items() if numbers} == {}


def test_citations_are_found() -> None:
    """The search reaches code, tests and documents: citations are found in each folder."""
    cited = Counter(f.relative_to(ROOT).parts[0] for f in texts() for _ in citations(read(f)))
    assert {"src", "cpp", "tests", "benchmarks", "experiments", "docs"} <= set(cited)


def test_numbers_are_explained_once() -> None:
    counts = Counter(explained(THEORY.read_text(encoding="utf-8")))
    assert [number for number, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(R-6.12, A-3; P-03)", [("R", 6, 12), ("A", 3, None), ("P", 3, None)]),
        ("R-10.2 to R-10.4.", [("R", 10, 2), ("R", 10, 3), ("R", 10, 4)]),
        ("// (R-13.2 to\n// R-13.4)", [("R", 13, 2), ("R", 13, 3), ("R", 13, 4)]),
        ("R-3 to R-5", [("R", 3, None), ("R", 4, None), ("R", 5, None)]),
        ("A-16 to A-18", [("A", 16, None), ("A", 17, None), ("A", 18, None)]),
        ("P-14 to 16", [("P", 14, None), ("P", 15, None), ("P", 16, None)]),
        ("R-14.* says so", [("R", 14, None)]),
        ("R-1.5, 1.7, 0.5", [("R", 1, 5), ("R", 1, 7)]),
        ("see N-2.", [("N", 2, None)]),
        ("XR-1.1, R-1x, 3 A-, FOR-1", []),
    ],
)
def test_the_search_knows_lists_and_ranges(text: str, numbers: list[Number]) -> None:
    assert sorted(set(citations(text)), key=str) == sorted(numbers, key=str)


def test_a_number_that_does_not_exist_is_found() -> None:
    theory = THEORY.read_text(encoding="utf-8")
    made_up = "as R-6.12 says (R-99.1, A-03), R-10.5 to R-10.8 and A-39 to A-41"
    assert missing(made_up, theory) == [
        *[("A", 41, None), ("R", 10, 7), ("R", 10, 8), ("R", 99, 1)],
    ]
    assert missing("R-6.12", theory.replace("### R-6.12 ", "### ")) == [("R", 6, 12)]
    assert missing("R-1.3", theory.replace("| R-1.3 |", "| |")) == [("R", 1, 3)]


def test_a_range_over_sections_is_refused() -> None:
    with pytest.raises(ValueError, match="within a section"):
        list(citations("R-1.2 to R-2.3"))
