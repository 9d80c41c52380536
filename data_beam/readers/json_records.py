"""Records out of JSON: a value a line, or the items of one array. A bad value costs itself."""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from data_beam.readers import streams
from data_beam.readers.reading import Read, Reading
from data_beam.readers.streams import Gap

_NOT_BLANK = re.compile(r"[^ \t\r\n]|\Z")
# What a byte that is not UTF-8 becomes in `surrogateescape`.
_BAD_BYTE = re.compile("[\udc80-\udcff]")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_MAX_INDENT = 1000
# The standard library counts the lines before an error: text far behind it is cut off.
_MAX_BEHIND = 1 << 14


_DECODER = json.JSONDecoder()
# Python refuses integers of more than 4,300 digits (sys.set_int_max_str_digits). No field that is
# read is a number, so a float will do.
_LONG_INTEGER_DECODER = json.JSONDecoder(parse_int=float)


class _Invalid(Exception):
    """There is no JSON value at a position, or one that cannot be read; with the reason and detail
    of the dead letter. `position` is that of the first character that is not JSON, None where that
    is not known."""

    def __init__(self, reason: str, detail: str, position: int | None):
        super().__init__(detail)
        self.reason, self.detail, self.position = reason, detail, position


def _value_at(text: str, begin: int) -> tuple[Any, int]:
    """The value at a position, and the position behind it. Raises _Invalid without one."""
    try:
        try:
            return _DECODER.raw_decode(text, begin)
        except json.JSONDecodeError:
            raise
        except ValueError:
            return _LONG_INTEGER_DECODER.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise _Invalid("invalid JSON", f"{error.msg} (character {error.pos - begin + 1})",
                      error.pos) from None
    except RecursionError:
        raise _Invalid("nested too deeply", "arrays and objects in each other", None) from None


def _only_value(text: str) -> Any:
    """The value of a text that holds one value and blanks; raises _Invalid for another text."""
    begin = len(text) - len(text.lstrip(" \t\r\n"))
    value, end = _value_at(text, begin)
    if text[end:].strip(" \t\r\n"):
        raise _Invalid("invalid JSON", f"Extra data (character {end + 1})", end)
    return value


@dataclasses.dataclass(frozen=True)
class _Line:
    """Line `number` (from 1) without its line end, or only its `size` where it passed the limit.

    Where `is_cut`, content is missing right before or behind it: it may not be the whole line.
    """

    number: int
    content: bytes | None
    size: int
    is_cut: bool = False


def lines(content: Iterable[bytes | Gap], limit: int) -> Iterator[_Line | Gap]:
    """Splits at LF; memory stays near `limit` and time linear whatever a line's length.

    Lines that are missing are not counted.
    """
    parts: list[bytes] = []
    size, number, behind_gap = 0, 1, False

    def finished(before_gap: bool = False) -> _Line:
        content = b"".join(parts) if size <= limit else None
        if content is not None and content.endswith(b"\r"):
            content = content[:-1]
        return _Line(number, content, size, before_gap or behind_gap)

    for piece in content:
        if isinstance(piece, Gap):
            if size:
                yield finished(before_gap=True)
                parts.clear()
                size, number = 0, number + 1
            behind_gap = True
            yield piece
            continue
        start = 0
        while True:
            end = piece.find(b"\n", start)
            part = piece[start:] if end < 0 else piece[start:end]
            size += len(part)
            if size <= limit:
                parts.append(part)
            else:
                parts.clear()
            if end < 0:
                break
            yield finished()
            parts.clear()
            size, number, start, behind_gap = 0, number + 1, end + 1, False
    if size:
        yield finished()


def jsonl(reading: Reading) -> Iterator[Read]:
    """One JSON value a line, UTF-8.

    In a damaged file, a line next to the damage is used where it is certainly whole.
    """
    empty = True
    for line in lines(streams.pieces(reading.file.location, reading.at), reading.limit):
        if isinstance(line, Gap):
            empty = False
            yield reading.dead(None, line.reason, f"the file is damaged: {line.detail}")
            continue
        content = line.content
        if content is None:
            if not line.is_cut:  # else it counts as part of the damage
                empty = False
                yield reading.too_large(line.number, line.size)
            continue
        if line.number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        if not content.strip():
            continue
        empty = False
        try:
            item = _only_value(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            if not line.is_cut:
                yield reading.dead(line.number, "bad encoding",
                                   f"not UTF-8 at byte {error.start} of the line")
            continue
        except _Invalid as error:
            if not line.is_cut:
                yield reading.dead(line.number, error.reason, error.detail)
            continue
        # Half a line may be a number or an array, but no object and no text.
        if not line.is_cut or isinstance(item, (dict, str)):
            yield reading.from_item(line.number, item, content)
    if empty:
        yield reading.dropped(None, "empty file")


def _after_blanks(text: str, position: int) -> int:
    found = _NOT_BLANK.search(text, position)
    return found.start() if found else len(text)


def _end_by_brackets(text: str, begin: int) -> int | None:
    """Position of the comma or bracket behind an invalid item; None if brackets do not match."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        sign = token.group()
        if depth == 0 and sign in ",]":
            return token.start()
        depth += (sign in "[{") - (sign in "]}")
        if depth < 0:
            return None
    return None


def _next_item(text: str, begin: int, error: int | None) -> int | None:
    """Position behind an item that begins at `begin` and is invalid from `error` on.

    Where each item begins on a line of its own, the next one begins on a line with the same indent:
    brackets and quotes of a bad item need not match. The search begins at `error`, so that time is
    linear in the file.
    """
    line = text.rfind("\n", max(0, begin - _MAX_INDENT), begin)
    if error is not None and line >= 0 and text[line:begin].isspace():
        start = text[line:begin + 1]
        found = text.find(start, max(begin, error - len(start) + 1))
        return None if found < 0 else found + len(start) - 1
    return _end_by_brackets(text, begin)


def json_array(reading: Reading) -> Iterator[Read]:
    """The file is one JSON array; its items are the records.

    An invalid item is a dead letter, and so is the file where it is damaged; the items before the
    damage are used. Where the end of a bad item cannot be found, the rest of the file is not read.
    Missing and surplus commas are ignored between valid items.
    """
    parts: list[bytes] = []
    size, damage = 0, None
    try:
        for chunk in streams.chunks(reading.file.location, limit=reading.limit):
            size += len(chunk)
            if size > reading.limit:
                yield reading.too_large(None)
                return
            parts.append(chunk)
    except streams.DamagedFile as error:
        damage = error
    text = b"".join(parts).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    characters = len(text)
    position, number = _after_blanks(text, 0), 0
    if not text.startswith("[", position):
        if damage is not None:
            raise damage
        yield reading.dead(None, "invalid JSON", "the file is not one array")
        return
    position += 1
    while (position := _after_blanks(text, position)) < len(text) and text[position] != "]":
        if text[position] == ",":
            position += 1
            continue
        begin, number = position, number + 1
        reading.at(reading.file.size * (1 - (len(text) - begin) / characters))
        try:
            item, position = _value_at(text, begin)
        except _Invalid as error:
            following = _next_item(text, begin, error.position)
            if following is None and damage is not None:
                break  # this item is what the damage cut
            yield reading.dead(number, error.reason, error.detail if following is not None else
                               f"{error.detail}; what follows it is not read")
            if following is None:
                return
            position = following
            if position > _MAX_BEHIND:
                text, position = text[position - _MAX_INDENT:], _MAX_INDENT
            continue
        bad = _BAD_BYTE.search(text, begin, position)
        if bad:
            before = len(text[begin:bad.start()].encode("utf-8"))
            yield reading.dead(number, "bad encoding", f"not UTF-8 at byte {before} of the item")
        else:
            yield reading.from_item(number, item, None)
    if damage is not None:
        raise damage
    if position == len(text):
        yield reading.dead(None, "invalid JSON", "the array does not end")
    elif _after_blanks(text, position + 1) < len(text):
        yield reading.dead(None, "invalid JSON", "there is more behind the end of the array")
    elif number == 0:
        yield reading.dropped(None, "empty file")
