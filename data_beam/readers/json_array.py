"""Items of a file that is one JSON array. A bad item costs itself."""

import re
from collections.abc import Iterator

from data_beam.readers import json_values, streams
from data_beam.readers.base import Read, Reading

_NO_BLANK = re.compile(r"[^ \t\r\n]|\Z")
# What a byte that is not UTF-8 becomes in `surrogateescape`.
_BAD_BYTE = re.compile("[\udc80-\udcff]")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_MAX_INDENT = 1000
# An error of the standard library's counts the lines before it: what lies far behind must go.
_MAX_BEHIND = 1 << 14


def _after_blanks(text: str, paths: int) -> int:
    found = _NO_BLANK.search(text, paths)
    return found.start() if found else len(text)


def _end_by_brackets(text: str, begin: int) -> int | None:
    """The comma or bracket behind an item that is no JSON; None where its brackets do not match."""
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
    """Where to go on after an item that begins at `begin` and is no JSON from `error` on.

    Where items stand on lines of their own, at the next line that begins as the item's does, with
    as many blanks: brackets and quotes of a bad item need not match. Never before `error`, so that
    the time is linear in the file.
    """
    line = text.rfind("\n", max(0, begin - _MAX_INDENT), begin)
    if error is not None and line >= 0 and text[line:begin].isspace():
        start = text[line:begin + 1]
        found = text.find(start, max(begin, error - len(start) + 1))
        return None if found < 0 else found + len(start) - 1
    return _end_by_brackets(text, begin)


def json_array(reading: Reading) -> Iterator[Read]:
    """The file is one JSON array; its items are the records.

    An item that is no JSON is a dead letter, and so is the file where it breaks off. Where the end
    of a bad item cannot be told, what follows it is not read. Commas too many or too few do not
    matter where the items are JSON.
    """
    parts: list[bytes] = []
    size, damage = 0, None
    try:
        for chunk in streams.chunks(reading.file.location):
            size += len(chunk)
            if size > reading.limit:
                yield reading.too_large(None)
                return
            parts.append(chunk)
    except streams.DamagedFile as error:
        damage = error
    text = b"".join(parts).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    characters = len(text)
    paths, number = _after_blanks(text, 0), 0
    if not text.startswith("[", paths):
        if damage is not None:
            raise damage
        yield reading.dead(None, "invalid JSON", "the file is not one array")
        return
    paths += 1
    while (paths := _after_blanks(text, paths)) < len(text) and text[paths] != "]":
        if text[paths] == ",":
            paths += 1
            continue
        begin, number = paths, number + 1
        reading.at(reading.file.size * (1 - (len(text) - begin) / characters))
        try:
            item, paths = json_values.first(text, begin)
        except json_values.Invalid as error:
            following = _next_item(text, begin, error.paths)
            if following is None and damage is not None:
                break  # this item is what the damage cut
            yield reading.dead(number, error.reason, error.detail if following is not None else
                               f"{error.detail}; what follows it is not read")
            if following is None:
                return
            paths = following
            if paths > _MAX_BEHIND:
                text, paths = text[paths - _MAX_INDENT:], _MAX_INDENT
            continue
        bad = _BAD_BYTE.search(text, begin, paths)
        if bad:
            before = len(text[begin:bad.start()].encode("utf-8"))
            yield reading.dead(number, "bad encoding", f"not UTF-8 at byte {before} of the item")
        else:
            yield reading.from_item(number, item, None)
    if damage is not None:
        raise damage
    if paths == len(text):
        yield reading.dead(None, "invalid JSON", "the array does not end")
    elif _after_blanks(text, paths + 1) < len(text):
        yield reading.dead(None, "invalid JSON", "there is more behind the end of the array")
    elif number == 0:
        yield reading.dropped(None, "empty file")
