"""What a request asks: its options and its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from thresher.data.text_rows import LINE_FORMATS
from thresher.serving.refusal import Refusal

JSON, TEXT = "application/json", "text/plain"
_MOST_TOP = 10_000


@dataclass(frozen=True)
class Question:
    """Options of a request, and the rows in its body.

    Attributes
    ----------
    options : dict
        Those that were given, by name.
    rows : list or None
        Rows of a JSON body: all dicts, or all lists.
    text : bytes or None
        A body of lines.
    labels, weights : list or None
        For learning.
    """

    options: dict[str, Any] = field(default_factory=dict)
    rows: list[Any] | None = None
    text: bytes | None = None
    labels: list[Any] | None = None
    weights: list[Any] | None = None


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "1": True, "": True, "false": False, "0": False}
    found = value if isinstance(value, bool) else words.get(str(value).lower())
    if found is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        raise Refusal(422, f"{name} must be true or false; got {_shown(value)}", option=name)
    return found


def _count(name: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_TOP:
        allowed = f"a whole number from 1 to {_MOST_TOP:,}"
        raise Refusal(422, f"{name} must be {allowed}; got {_shown(value)}", option=name)
    return value


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Refusal(422, f"{name} must be a string; got {_shown(value)}", option=name)
    return value


def _format(name: str, value: Any) -> str:
    if value not in LINE_FORMATS:
        allowed = " or ".join(LINE_FORMATS)
        raise Refusal(422, f"{name} must be {allowed}; got {_shown(value)}", option=name)
    return str(value)


def _any(name: str, value: Any) -> Any:
    return value


PREDICT: dict[str, Callable[[str, Any], Any]] = {
    "model": _word, "probability": _flag, "raw": _flag, "top": _count, "unknown": _flag,
    "format": _format,
}  # fmt: skip
EXPLAIN: dict[str, Callable[[str, Any], Any]] = {
    "model": _word, "top": _count, "label": _any, "unknown": _flag, "format": _format,
}  # fmt: skip
LEARN: dict[str, Callable[[str, Any], Any]] = {"model": _word, "format": _format}


def question_of(
    body: bytes,
    content_type: str,
    query: bytes,
    known: Mapping[str, Callable[[str, Any], Any]],
    most_rows: int,
) -> Question:
    """Return what a request asks; raise Refusal if it cannot be understood.

    Parameters
    ----------
    body : bytes
    content_type : str
        The header, or "".
    query : bytes
        The query of the address.
    known : mapping
        Options that the request may have, and functions that check their values.
    most_rows : int

    Examples
    --------
    >>> asked = question_of(b'[{"age": 31}]', "application/json", b"top=2", PREDICT, 10)
    >>> asked.rows, asked.options
    ([{'age': 31}], {'top': 2})
    """
    options = _options_in_query(query, known)
    kind = content_type.partition(";")[0].strip().lower()
    charset = content_type.lower().partition("charset=")[2].partition(";")[0].strip(' "')
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise Refusal(415, f"the charset must be utf-8; got {charset[:40]}")
    if kind == TEXT:
        if not body.strip():
            raise Refusal(422, "the body has no rows")
        return Question(options, text=body)
    if kind != JSON and not kind.endswith("+json"):
        raise Refusal(415, f"the header Content-Type must be {JSON} or {TEXT}; "
                      f"got {kind[:80] or 'none'}")  # fmt: skip
    found = json_of(body)
    members = {"rows": found} if isinstance(found, list) else found
    if not isinstance(members, dict):
        raise Refusal(422, f'expected {{"rows": [...]}} or [...]; found {_kind(found)}')
    labelled = ("labels", "weights") if known is LEARN else ()
    for name in members:
        if name not in ("rows", *labelled) and name not in known:
            raise Refusal(
                422, f"unknown member {_shown(name)}; rows are given as "
                f'{{"rows": [{{"colour": "red"}}]}}, and the options are {", ".join(known)}',
                option=str(name)[:80],
            )  # fmt: skip
        if name in options:
            raise Refusal(
                422, f"{name} is given twice: in the address and in the body", option=name
            )
    if "rows" not in members:
        raise Refusal(422, 'the member "rows" is missing')
    options |= {n: check(n, members[n]) for n, check in known.items() if n in members}
    rows = members["rows"]
    _check_rows(rows, most_rows)
    more = {name: _one_each(name, members.get(name), len(rows)) for name in labelled}
    return Question(options, rows=rows, labels=more.get("labels"), weights=more.get("weights"))


def json_of(body: bytes) -> Any:
    """Return the value of a JSON text; raise Refusal with its place if it is none.

    No member may occur twice in an object, and no number may be NaN or infinite.
    """
    if not body.strip():
        raise Refusal(400, "the body is empty")
    try:
        return _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the body is not UTF-8: byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        text = f"not JSON: {error.msg}"
        raise Refusal(400, text, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise Refusal(400, "not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise Refusal(400, f"not JSON that can be read: {str(error)[:200]}") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Refusal(400, f"the member {_shown(name)} occurs twice in an object")
            seen.add(name)
    return found


def _constant(name: str) -> Any:
    raise Refusal(400, f"not JSON: {name} is not a number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_constant)


def _options_in_query(
    query: bytes, known: Mapping[str, Callable[[str, Any], Any]]
) -> dict[str, Any]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise Refusal(400, "the query of the address cannot be read") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in known:
            allowed = ", ".join(known)
            raise Refusal(422, f"unknown option {_shown(name)}; the options are {allowed}",
                          option=name[:80])  # fmt: skip
        if name in found:
            raise Refusal(422, f"{name} is given twice", option=name)
        found[name] = known[name](name, value)
    return found


def _check_rows(rows: Any, most: int) -> None:
    if not isinstance(rows, list):
        raise Refusal(422, f"rows must be an array; found {_kind(rows)}")
    if not rows:
        raise Refusal(422, "there are no rows")
    if len(rows) > most:
        raise Refusal(413, f"{len(rows):,} rows; a request may have {most:,}")
    first = type(rows[0])
    for number, row in enumerate(rows, 1):
        if type(row) is not first or first not in (dict, list):
            raise Refusal(422, f"all rows must be objects, or all arrays; found {_kind(row)}",
                          row=number)  # fmt: skip


def _one_each(name: str, given: Any, rows: int) -> list[Any] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != rows:
        found = f"{len(given)}" if isinstance(given, list) else _kind(given)
        raise Refusal(422, f"{name} must be an array, one for each of the {rows} rows; "
                      f"found {found}", option=name)  # fmt: skip
    return given


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "true or false",
             type(None): "null"}  # fmt: skip
    return kinds.get(type(value), "a number")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
