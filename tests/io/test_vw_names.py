"""VW text that is written keeps names and namespaces; pairs of namespaces that make no feature."""

import numpy as np
import pytest

import thresher
from support.files import called, vw
from support.text_cases import read
from thresher import _core
from thresher.data.namespaces import NamespaceWarning
from thresher.data.scan import scan
from thresher.data.writing import write


def rows_of(path, **reading):
    """Return labels, keys and values of all rows."""
    blocks = list(scan(path, **reading).blocks())
    return [
        np.concatenate([np.asarray(part(block)) for block in blocks]).tolist()
        for part in (
            lambda b: b.labels, lambda b: b.native.keys, lambda b: b.native.values,
            lambda b: np.diff(np.asarray(b.native.starts)),
        )
    ]  # fmt: skip


# ---- names ---------------------------------------------------------------------------------------


def test_vw_to_vw_keeps_names_and_namespaces(tmp_path):
    text = (
        "1 'first|word w1 w2:0.5 |age years:2\n"
        "-1 2 |word w2 |3 4 | 7:2 x\n"
        "1 |x y^z:3\n"
        "-1 |\n"
        "1 | 007 12:4 |user caf\u00e9 \u00fcber:0.25\n"
    )
    (tmp_path / "a.vw").write_text(text)
    called("convert", tmp_path / "a.vw", tmp_path / "b.vw", "--quiet")
    assert (tmp_path / "b.vw").read_text() == text
    called("convert", tmp_path / "a.vw", tmp_path / "c.cache", "--quiet")
    called("convert", tmp_path / "c.cache", tmp_path / "d.vw.gz", "--quiet")
    called("convert", tmp_path / "d.vw.gz", tmp_path / "e.vw", "--quiet")
    assert (tmp_path / "e.vw").read_text() == text


@pytest.mark.parametrize("threads", [1, 2])
def test_many_blocks(tmp_path, threads):
    rng = np.random.default_rng(0)
    path, out = tmp_path / "a.vw", tmp_path / "b.vw"
    lines = [
        f"{k % 2} |word {' '.join(f'w{i}' for i in rng.integers(0, 5000, 20))} |n a{k % 7}:{k}.5\n"
        for k in range(30_000)
    ]
    path.write_text("".join(lines))
    assert path.stat().st_size > 3_000_000  # several blocks
    write(scan(path, threads=threads), str(out), "vw")
    assert rows_of(out) == rows_of(path)
    assert " |n a3:" in out.read_text()
    assert not any(word.isdigit() for word in out.read_text().split("|", 20)[1].split()[1:])


def test_models_have_the_same_names(tmp_path):
    vw(tmp_path / "a.vw")
    called("convert", tmp_path / "a.vw", tmp_path / "b.vw", "--quiet")
    for name in ("a", "b"):
        called("train", tmp_path / f"{name}.vw", "-m", tmp_path / name, "--rule", "ftrl", "--quiet")
    a, b = (thresher.load(tmp_path / name) for name in "ab")
    assert a.names == b.names
    assert any(name.startswith("word^w") for name in b.names.values())
    assert a.weights.tobytes() == b.weights.tobytes()


def test_products_and_cut_keys_stay_numbers(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |user anna |ad sport\n")
    called("convert", path, tmp_path / "b.vw", "-q", "ua", "--quiet")
    text = (tmp_path / "b.vw").read_text()
    assert text.startswith("1 |user anna |ad sport | ")
    assert text.split()[-1].isdigit()
    assert rows_of(tmp_path / "b.vw") == rows_of(path, interactions=["ua"])
    called("convert", path, tmp_path / "c.vw", "--bits", "10", "--quiet")
    assert rows_of(tmp_path / "c.vw") == rows_of(path, bits=10)
    assert "anna" not in (tmp_path / "c.vw").read_text()


def test_names_that_vw_text_cannot_have(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_text("label,colour,12,a b\n1,red,3,5\n0,dark red,4,6\n1,x:y|z,5,7\n")
    called("convert", path, tmp_path / "b.vw", "--quiet")
    text = (tmp_path / "b.vw").read_text()
    assert "|colour red" in text
    assert "dark" not in text
    assert "x:y" not in text
    labels, keys, *rest = rows_of(path)
    assert rows_of(tmp_path / "b.vw") == [labels, keys, *rest]


def test_names_of_other_keys_are_left_out():
    names = _core.VwNames()
    starts, values = np.array([0, 2], np.int64), np.ones(2)
    keys = np.array([_core.hash_name(b"a^x"), 5], np.uint64).view(np.int64)
    block = _core.make_block(
        starts, keys, values, labels=np.ones(1), names=[(int(keys[0]), b"a^x"), (5, b"wrong")]
    )
    assert _core.vw_text(block).startswith(b"1 | ")
    names.add(block)
    assert _core.vw_text(block, names) == b"1 |a x | 5\n"


@pytest.mark.parametrize(
    ("hashed", "shown", "written"),
    [
        (b"a^x", b"a=x", b"|a x"),  # a category
        (b"a=b^c", b"a=b=c", b"|a=b c"),
        (b"a^b=c", b"a=b=c", b"|a b=c"),
        (b"a=b=c", b"a=b=c", b"| a=b=c"),
        (b"a^b^c", b"a^b^c", b"|a b^c"),
        (b"007", b"007", b"| 007"),
        (b"0", b"0", None),  # these two would be read as keys
        (b"12", b"12", None),
        (b"n^12", b"n^12", b"|n 12"),
        (b"1a", b"1a", b"| 1a"),
        (b"", b"", None),
        (b"^x", b"^x", None),
        (b"x^", b"x^", None),
        (b"a b^x", b"a b^x", None),
        (b"a|^x", b"a|^x", None),
        (b"a^x:y", b"a^x:y", None),
        (b"a^x\ty", b"a^x\ty", None),
        (b"a^x\r", b"a^x\r", None),
        (b"a^x\0", b"a^x\0", None),
        (b"a^x\x01\x0e", b"a^x\x01\x0e", b"|a x\x01\x0e"),
    ],
)
def test_which_names_vw_text_can_have(hashed, shown, written):
    """The text is read as the same key; it has the name if VW text can have it."""
    key = _core.hash_name(hashed)
    block = _core.make_block(
        np.array([0, 1]), np.array([key], np.uint64).view(np.int64), np.array([2.5]),
        labels=np.ones(1), names=[(key, shown), (key, b"other")],
    )  # fmt: skip
    names = _core.VwNames()
    names.add(block)
    names.add(block)
    text = _core.vw_text(block, names)
    assert text == b"1 %b:2.5\n" % (b"| %d" % key if written is None else written)
    (found,) = read(text, "vw", dtype="float64")
    assert found.keys.astype(np.int64).view(np.uint64).tolist() == [key]
    assert found.values.tolist() == [2.5]


# ---- pairs of namespaces -------------------------------------------------------------------------


def test_a_pair_that_makes_no_feature(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |user anna |ad sport | 3\n-1 |user emil |ad loan\n" * 50)
    said = r"interactions='ux' makes no feature: no namespace begins with 'x'; the namespaces are"
    model = thresher.FTRLClassifier(store="hashed", passes=2)
    with pytest.warns(NamespaceWarning, match=said) as caught:
        model.fit(scan(path, interactions=["ua", "ux"]))
    assert sum(issubclass(w.category, NamespaceWarning) for w in caught) == 1
    assert str(caught[0].message).endswith("are ad, the default one, user")
    for good in (["ua"], ["::"], ["u:"], ["uu"]):
        source = scan(path, interactions=good)
        list(source.blocks())
        assert source.namespaces.warning() is None


def test_a_letter_that_occurs_after_many_namespaces(tmp_path):
    """Few names are kept, but the first of each letter is among them."""
    path, many = tmp_path / "a.vw", "".join(f"1 |a{i} w\n" for i in range(1100))
    path.write_text(f"{many}1 |a0 y |x z |b7 w\n")
    source = scan(path, interactions=["ax"])
    assert sum(block.native.nonzeros for block in source.blocks()) == 1100 + 4
    assert source.namespaces.warning() is None
    assert {"x", "b7"} < source.namespaces.seen
    assert len(source.namespaces.seen) < 1100
    source = scan(path, interactions=["ac"])
    with pytest.warns(NamespaceWarning, match="no namespace begins with 'c'"):
        list(source.blocks())


def test_the_shell_names_the_option(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |user anna |ad sport\n-1 |user emil |ad loan\n" * 50)
    more = ["-m", tmp_path / "m", "--quiet"]
    done = called("train", path, *more, "-q", "xy")
    expected = (
        "warning: --interactions xy makes no feature: no namespace begins with 'x' or 'y'; the "
        "namespaces are ad, user\n"
    )
    assert expected in done.stderr
    assert "interactions" not in called("train", path, *more, "-q", "ua").stderr
    (tmp_path / "m").unlink()
    called("train", path, *more, "-q", "xy", "--strict", code=1)
    assert not (tmp_path / "m").exists()


def test_rows_without_namespaces(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 20)
    with pytest.warns(NamespaceWarning, match="no row has a namespace; interactions are made of"):
        list(scan(path, interactions=["ab"]).blocks())
