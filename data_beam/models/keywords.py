"""Keyword search in text, and default lists of keywords.

A keyword with a Han character matches anywhere, because Chinese has no spaces between words; other
keywords match only between word boundaries. So 色情 also matches in 特色情怀. Lists of harmless
phrases prevent that: where several entries match, the one that begins first wins, then the longest
one, and a harmless phrase does not count.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, word_lists
from data_beam.base.characters import HAN, fold_width
from maxlm.config.schema import ConfigError

_HAN = re.compile(f"[{HAN}]")
_HARMLESS = "!"
_COMMENT = "#"
_MAX_LENGTH = 200

DEFAULT_ZH, DEFAULT_EN = word_lists.read("data_beam.models", "keywords.txt").values()


class Keywords:
    """Searches texts for a list of keywords in any case; entries that begin with ! are harmless
    phrases."""

    def __init__(self, entries: Iterable[str]):
        words = {" ".join(fold_width(entry).lower().split()) for entry in entries}
        self._harmless = {word[1:].strip() for word in words if word.startswith(_HARMLESS)}
        plain = {word for word in words if not word.startswith(_HARMLESS)} | self._harmless
        plain.discard("")
        inside = sorted(word for word in plain if _HAN.search(word))
        between = sorted(plain - set(inside))
        patterns = []
        if inside:
            patterns.append(_pattern(_trie(inside)))
        if between:
            patterns.append(rf"(?<!\w){_pattern(_trie(between))}(?!\w)")
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each keyword in a lower-case text, in order."""
        found = [match.span() for pattern in self._patterns for match in pattern.finditer(text)
                 if " ".join(match[0].split()) not in self._harmless]
        return sorted(found)


def _trie(words: Sequence[str]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return root


def _pattern(node: dict[str, Any]) -> str:
    """A regular expression that matches the longest word of a trie. In a plain alternation `re`
    would try the words one by one."""
    parts = [(r"\s+" if character == " " else re.escape(character)) + _pattern(child)
             for character, child in sorted(node.items()) if character]
    if not parts:
        return ""
    inner = parts[0] if len(parts) == 1 and "" not in node else f"(?:{'|'.join(parts)})"
    return f"{inner}?" if "" in node else inner


def read_list(path: str, field: str) -> list[str]:
    """The entries of a file on any file system that Beam knows: one per line; # starts a comment.
    Raises ConfigError, which names the setting `field`, if the file does not exist, is not UTF-8,
    or has no keyword or an overlong one."""
    if not FileSystems.exists(path):
        raise ConfigError(f"{field}: {path} does not exist")
    try:
        lines = files.read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{field}: {path} is not UTF-8 ({error})") from None
    entries = [entry for line in lines if (entry := line.partition(_COMMENT)[0].strip())]
    for entry in entries:
        if len(entry) > _MAX_LENGTH:
            raise ConfigError(f"{field}: {path} has a keyword of {len(entry)} characters "
                              f"({entry[:40]!r} ...); write one per line, at most {_MAX_LENGTH}")
    if all(entry.startswith(_HARMLESS) for entry in entries):
        raise ConfigError(f"{field}: {path} contains no keyword")
    return entries
