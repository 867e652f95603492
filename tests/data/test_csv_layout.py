"""How the first lines of a CSV file decide about header, delimiter, quotes and encoding."""

import numpy as np
import pytest

from thresher import look, scan
from thresher.data.csv_layout import CsvOptions, layout_of
from thresher.errors import DataError, InputError, ParameterError

pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file

MUSHROOMS = "p,x,s\ne,x,s\ne,b,s\np,x,y\n" * 5
TEXTS = "".join(
    f"{'ham' if i % 3 else 'spam'}\tGo until jurong point, crazy number {i} today\n"
    for i in range(20)
)


def layout(tmp_path, text, **options):
    return layout_of(csv_file(tmp_path, text), CsvOptions(**options))


@pytest.mark.parametrize(
    "text",
    [
        "age,city,label\n31,Rome,1\n4,Oslo,0\n",
        "label,0,1,2\n1,0.5,2,3\n0,1,1,1\n",  # as `convert` writes it
        "0,1,2,3\n0.5,1.5,2.5,1\n0.1,0.2,0.3,0\n",  # as pandas writes columns without names
        "2019,2020,2021,y\n1,2,3,0\n4,5,6,1\n",
        "colour,shape\nred,round\nblue,square\nred,round\n",
        "a,b\n",
        "question,answer\n" + "How many of these are there now?,yes\n" * 20,
        "name,1,price\nx,2,3\ny,3,4\n",
    ],
)
def test_a_first_line_of_names(tmp_path, text):
    found = layout(tmp_path, text)
    assert found.header
    assert found.names == tuple(text.split("\n")[0].split(","))
    assert found.note == ""


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", 3),
        (MUSHROOMS, 3),
        ("842302,M,17.99\n842517,M,20.57\n84300903,B,19.69\n", 3),
        ("0,tcp,http,491,normal\n2,udp,dns,146,normal\n0,tcp,http,0,attack\n", 5),
        ("0.5,1\n", 2),
        ("1;0;0.5\n2;1;0.25\n", 3),
        ("b|3|x\nb|4|x\nc|5|x\n", 3),
    ],
)
def test_a_first_line_of_data(tmp_path, text, columns):
    found = layout(tmp_path, text)
    assert not found.header
    assert found.names == tuple(map(str, range(columns)))
    assert "no header" in found.note
    assert layout(tmp_path, text, header=True).names == tuple(found.rows[0])


def test_a_first_line_that_is_not_clear(tmp_path):
    with pytest.raises(
        InputError, match=r"data.csv:1: is the first line a header\? '0.5' is a num"
    ):
        layout(tmp_path, "unknown,0.5\n3,0.25\n4,0.75\n")
    with pytest.raises(InputError, match=r"'red' occurs twice.*header=False.*header=True"):
        layout(tmp_path, "red,red,size\nred,blue,3\nblue,red,4\n")
    assert not layout(tmp_path, "unknown,0.5\n3,0.25\n4,0.75\n", header=False).header
    with pytest.raises(ParameterError, match=r"two columns are named 'a'; .*header=False.*columns"):
        list(scan(csv_file(tmp_path, "a,a,y\n1,2,3\n")).blocks())


def test_given_names(tmp_path):
    for text in ("a,b,y\n1,2,0\n", "1,2,0\n", "y,b,a\n0,2,1\n", "x1,x2,x3\n1,2,0\n"):
        source = scan(csv_file(tmp_path, text), columns=["a", "b", "y"])
        (block,) = source.blocks(names=True)
        assert block.rows == 1
        assert {name for _, name in block.names} == {"a", "b"}
        assert block.labels.tolist() == [0]
    with pytest.raises(ParameterError, match="has 3 cells, but there are 2 names of columns: a, b"):
        list(scan(csv_file(tmp_path, "1,2,3\n"), columns=["a", "b"]).blocks())
    with pytest.raises(ParameterError, match="columns must be different names; got 'a'"):
        scan(csv_file(tmp_path, "1,2\n"), columns=["a", "a"])


def test_columns_by_position(tmp_path):
    path = csv_file(tmp_path, "7,0.5,2,red\n8,1.5,3,blue\n9,2.5,1,red\n")
    source = scan(path, label=-1, weight=2, ignore=0)
    (block,) = source.blocks(names=True)
    assert block.labels.tolist() == ["red", "blue", "red"]
    assert block.weights.tolist() == [2, 3, 1]
    assert {name for _, name in block.names} == {"1"}
    settled = source.settled()
    assert (settled.label, settled.weight, settled.ignore) == ("3", "2", ("0",))
    assert settled.columns == ("0", "1", "2", "3")
    assert settled.header is False
    with pytest.raises(DataError, match="there is no column '4'; the columns are 0, 1, 2, 3"):
        list(scan(path, label=4).blocks())
    with pytest.raises(InputError, match=r"label='-1' for the last.*0 \(7\), 1 \(0.5\), 2 \(2\)"):
        list(scan(path).blocks())
    named = csv_file(tmp_path, "a,1,0\n5,6,1\n7,8,0\n")  # a name is not a position
    assert next(scan(named, label=1).blocks()).labels.tolist() == [6, 8]
    assert next(scan(named, label=-1).blocks()).labels.tolist() == [1, 0]


def test_labels_and_texts(tmp_path):
    source = scan(csv_file(tmp_path, TEXTS, "sms.txt"))
    (block,) = source.blocks(names=True)
    assert set(block.labels) == {"ham", "spam"}
    assert "text^jurong" in dict(block.names).values()
    assert source.kinds == {"label": "string", "text": "text"}
    assert "labels and texts" in source.notes[0]
    turned = "".join("\t".join(line.split("\t")[::-1]) + "\n" for line in TEXTS.splitlines())
    (block,) = scan(csv_file(tmp_path, turned)).blocks()
    assert set(block.labels) == {"ham", "spam"}


def test_quotes_in_texts_between_tabs_are_plain(tmp_path):
    text = 'ham\t"Hi" he said, and so on and on\nspam\t"never closed and more words\n' * 10
    (block,) = scan(csv_file(tmp_path, text)).blocks(names=True)
    assert block.rows == 20
    assert {"text^hi", "text^never"} <= set(dict(block.names).values())
    quoted = 'name\ty\n"a\tb"\t1\n"say ""x"""\t0\n'
    (block,) = scan(csv_file(tmp_path, quoted)).blocks(names=True)
    assert {name for _, name in block.names} == {"name=a\tb", 'name=say "x"'}
    (block,) = scan(csv_file(tmp_path, 'a,y\n"x,1\ny,0\n'), quotes=False).blocks(names=True)
    assert {name for _, name in block.names} == {'a="x', "a=y"}


def test_lines_of_fasttext(tmp_path):
    text = "__label__a two words here\n__label__b __label__a other, words\n" * 20
    path = csv_file(tmp_path, text, "rows.txt")
    (block,) = scan(path, multilabel=True).blocks(names=True)
    assert block.label_sets()[1].tolist()[:3] == ["a", "b", "a"]
    assert {name for _, name in block.names} == {
        "text^two", "text^words", "text^here", "text^other",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b;y\n1,5;2;0\n2,5;3;1\n", ";"),
        ("a|b c|y\n1|x y|0\n2|z|1\n", "|"),
        ("a\tb\ty\n1\tx, y, z, u\t0\n2\tz\t1\n", "\t"),
        ('a,b,y\n1,"x;y;z;u;v",0\n', ","),
    ],
)
def test_delimiters(tmp_path, text, delimiter):
    assert layout(tmp_path, text).delimiter == delimiter
    (block,) = scan(csv_file(tmp_path, text)).blocks()
    assert sorted(block.labels.tolist())[0] == 0


def test_given_delimiters(tmp_path):
    path = csv_file(tmp_path, "a y\n1 0\n2 1\n", "rows.txt")
    (block,) = scan(path, format="csv", delimiter=" ").blocks()
    assert block.labels.tolist() == [0, 1]
    path = csv_file(tmp_path, "a,b\ty\n1\t0\n", "rows.txt")
    for options in ({"format": "tsv"}, {"format": "csv", "delimiter": "tab"}):
        assert next(scan(path, **options).blocks()).labels.tolist() == [0]
    with pytest.raises(ParameterError, match="delimiter must be one character"):
        scan(path, delimiter=",,")


def test_encodings(tmp_path):
    path = csv_file(tmp_path, "x,y\ncafé,1\nplain,0\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"data.csv:2: column 'x': \"caf\\xe9\" is not UTF-8; .*"):
        list(scan(path).blocks())
    (block,) = scan(path, encoding="latin-1").blocks(names=True)
    assert {name for _, name in block.names} == {"x=café", "x=plain"}
    source = scan(path, on_bad_line="skip")
    assert sum(block.rows for block in source.blocks()) == 1
    assert source.bad_lines.count == 1
    (block,) = scan(csv_file(tmp_path, "x,y\ncafé,1\n".encode("utf-16"))).blocks(names=True)
    assert {name for _, name in block.names} == {"x=café"}
    with pytest.raises(ParameterError, match="encoding must be a known one"):
        scan(path, encoding="klingon")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"", 0),
        (b"\n\n", 0),
        (b"a,y\n", 0),
        (b"\xef\xbb\xbfa,y\r\n1,0\r\n2,1\r\n", 2),
        (b"\xef\xbb\xbf1.5,0\r\n2.5,1\r\n", 2),
        (b"y\n1\n0\n", 2),
        (b"a,y\nx\0z,1\nw,0\n", 2),
    ],
)
def test_small_and_strange_files(tmp_path, text, rows):
    label = None if b"y" in text or rows == 0 else -1
    source = scan(csv_file(tmp_path, text), label=label)
    assert sum(block.rows for block in source.blocks()) == rows


def test_a_very_long_line(tmp_path):
    path = csv_file(tmp_path, "text,y\n" + "word " * 140_000 + ",1\n")
    with pytest.raises(DataError, match="a row is longer than 256 KiB"):
        list(scan(path, text="text").blocks())
    path = csv_file(tmp_path, "ham\t" + "some words " * 10_000 + "\n" + TEXTS)
    assert sum(block.rows for block in scan(path).blocks()) == 21
    path = csv_file(tmp_path, "word " * 30_000 + ",y\n1,1\n")
    with pytest.raises(DataError, match=r"data\.csv:1: field larger than field limit \(131072\)"):
        list(scan(path).blocks())
    path = csv_file(tmp_path, "a,y\n1,1\n" + "2" * 600_000 + ",1\n")
    with pytest.raises(DataError, match=r"data\.csv: a row is longer than 256 KiB$"):
        list(scan(path, quotes=False).blocks())


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_a_very_long_header(tmp_path, delimiter):
    """Another delimiter than theirs would make one cell that is too long for the module csv."""
    names = ["y", *(f"column_{'x' * 150}_{number}" for number in range(1000))]
    assert len(delimiter.join(names)) > 131_072
    lines = [names, ["1", *["2.5"] * 1000], ["0", *["3"] * 1000]]
    path = csv_file(tmp_path, "".join(delimiter.join(line) + "\n" for line in lines))
    (block,) = scan(path).blocks()
    assert (block.rows, block.native.nonzeros, block.labels.tolist()) == (2, 2000, [1, 0])


@pytest.mark.parametrize("rows", [100, 20_000])
@pytest.mark.parametrize("cell", ["word " * 40_000, f'"{"word, " * 25_000}"'])
def test_a_long_cell_in_the_first_row(tmp_path, rows, cell):
    """The module csv stops there: it says nothing about the rows after it, nor about quotes."""
    path = csv_file(tmp_path, f"label,a\n1,{cell}\n" + "0,y\n" * rows)
    found = layout_of(path, CsvOptions())
    assert (found.header, found.names, found.empty) == (True, ("label", "a"), False)
    for options in ({}, {"columns": ["label", "a"]}):
        assert sum(block.rows for block in scan(path, **options).blocks()) == rows + 1
    assert "--no-quotes" not in look(path).command
    with pytest.raises(InputError, match=r"csv:1: a quote in the header is never closed"):
        layout(tmp_path, f'label,"a\n1,{cell.replace(chr(34), "")[:100_000]}\n')


@pytest.mark.parametrize("before", ["", "\n", "\ufeff"])
def test_a_header_longer_than_256_kib(tmp_path, before):
    names = ",".join(f"column_{number}" for number in range(25_000))
    path = csv_file(tmp_path, f"{before}y,{names}\n1{',2' * 25_000}\n")
    with pytest.raises(DataError, match=r"data\.csv:1: the header is longer than 256 KiB$"):
        list(scan(path, label="y").blocks())
    assert look(path).facts.files[0].about == "a text whose first row is too long"
    with pytest.raises(DataError, match=r"csv:1: the first line is longer than 4096 KiB$"):
        layout(tmp_path, "word " * 1_000_000, header=False)
    assert layout(tmp_path, "a,y\r" + "2,1\r" * 70_000).names == ("a", "y")  # lines end with CR
    with pytest.raises(DataError, match=r"csv:1: the first 64 KiB are blank"):
        layout(tmp_path, "\n" * 70_000 + "a,y\n1,2\n")


@pytest.mark.parametrize("header", [False, None])
def test_a_first_line_of_data_may_be_longer(tmp_path, header):
    path = csv_file(tmp_path, "1" + f",{'word ' * 20_000}" * 3 + "\n" + "0,a b,c,d\n" * 5)
    if header is False:
        options = {"header": False, "label": "0", "text": ["1", "2", "3"]}
    else:
        options = {"columns": ["y", "a", "b", "c"], "label": "y", "text": ["a", "b", "c"]}
    assert sum(block.rows for block in scan(path, **options).blocks()) == 6


def test_several_files_share_a_layout(tmp_path):
    csv_file(tmp_path, MUSHROOMS, "part1.csv")
    csv_file(tmp_path, "q,z,w\n", "part2.csv")  # alone it would be a header
    source = scan(tmp_path / "part*.csv", label=0)
    labels = np.concatenate([block.labels for block in source.blocks()])
    assert len(labels) == 21
    assert labels[-1] == "q"


def test_ragged_lines_without_a_header(tmp_path):
    path = csv_file(tmp_path, "0.5,1,x\n0.25,2,y\n1,2\n0.5,3,x\n0.5,oops,x\n")
    with pytest.raises(DataError, match=r"data.csv:3: expected 3 cells, found 2"):
        list(scan(path, label=-1, kinds={"1": "number"}).blocks())
    source = scan(path, label=-1, kinds={"1": "number"}, on_bad_line="skip")
    (block,) = source.blocks()
    assert block.rows == 3
    assert source.bad_lines.count == 2
    assert block.place(2) == f"{path}:4"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_uneven_lines_that_are_not_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,y\n1,1\n\xd3,2,3\n" * 3)
    with pytest.raises(DataError, match=r"rows.csv:3: expected 2 cells, found 3.*not UTF-8.*latin"):
        list(scan(path).blocks())
