"""Replacement of dictionary terms by synonyms: whole words in languages with spaces, the longest
matching term in Chinese."""

import json
import re
from collections.abc import Iterator

import xxhash

from data_beam.base import files
from data_beam.base.characters import HAN, HIRAGANA_KATAKANA
from maxlm.config.schema import ConfigError

_INSIDE_WORD = re.compile(rf"[^\W_{HIRAGANA_KATAKANA}{HAN}]{{2}}")  # two characters of a word


class Synonyms:
    """A dictionary of synonyms by term."""

    def __init__(self, terms: dict[str, list[str]]):
        self._synonyms = {term.lower(): synonyms for term, synonyms in terms.items()}
        by_first: dict[str, set[int]] = {}
        for term in self._synonyms:
            by_first.setdefault(term[0], set()).add(len(term))
        self._lengths = {first: sorted(lengths, reverse=True)
                         for first, lengths in by_first.items()}
        firsts = {form for first in by_first for form in (first, first.upper()) if len(form) == 1}
        self._first = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]")

    def find(self, text: str) -> Iterator[tuple[int, int, list[str]]]:
        """Start, end and synonyms of each term in the text, from left to right; the longest term at
        each position. A term that begins or ends with a letter of a script with spaces must begin
        or end at a word boundary. Case is ignored."""
        position = 0
        while match := self._first.search(text, position):
            start = match.start()
            position = start + 1
            for length in self._lengths.get(match[0].lower(), ()):
                end = start + length
                synonyms = self._synonyms.get(text[start:end].lower())
                cuts_word = (start and _INSIDE_WORD.match(text, start - 1)) or (
                    _INSIDE_WORD.match(text, end - 1))
                if synonyms and not cuts_word:
                    yield start, end, synonyms
                    position = end
                    break

    def substitute(self, text: str, share: float, key: str) -> tuple[str, int]:
        """The text with a share of its terms replaced, and the number of replaced terms. A hash of
        the key and the position of a term decides whether the term is replaced, and by which
        synonym."""
        parts, position, count = [], 0, 0
        for start, end, synonyms in self.find(text):
            draw = xxhash.xxh3_64_intdigest(f"{key}\0{start}".encode())
            if (draw >> 32) >= share * 2**32:
                continue
            synonym = synonyms[(draw & 0xFFFFFFFF) % len(synonyms)]
            parts += [text[position:start], _cased_like(text[start:end], synonym)]
            position, count = end, count + 1
        return "".join(parts) + text[position:], count


def _cased_like(term: str, synonym: str) -> str:
    """The synonym in capitals or with a capital letter, like the term."""
    if len(term) > 1 and term.isupper():
        return synonym.upper()
    return synonym[:1].upper() + synonym[1:] if term[:1].isupper() else synonym


def load(path: str, field: str) -> Synonyms:
    """Reads a dictionary from a file on any file system supported by Beam.

    - `.tsv`: a term and its synonyms per line, separated by tabs. Empty lines and lines that begin
      with `#` are skipped.
    - `.json`: an object that maps each term to a list of synonyms.

    Raises ConfigError, which names the setting `field`: the file does not exist or has another
    format, or a term has no synonym or occurs twice, or there is no term.
    """
    where = f"{field}: {path}"
    try:
        text = files.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: is not UTF-8 ({error.reason} at byte {error.start})") from None
    except Exception as error:  # each file system has its own exceptions
        raise ConfigError(f"{where}: cannot be read: {error}") from None
    terms: dict[str, list[str]] = {}
    for place, term, synonyms in _entries(path, text, where):
        term = term.strip()
        others = list(dict.fromkeys(s.strip() for s in synonyms if s.strip() and
                                    s.strip().lower() != term.lower()))
        if not term or not others:
            raise ConfigError(f"{place}: {term!r} has no synonym other than itself")
        if term.lower() in terms:
            raise ConfigError(f"{place}: {term!r} is given twice; put its synonyms into one entry")
        terms[term.lower()] = others
    if not terms:
        raise ConfigError(f"{where}: contains no term")
    return Synonyms(terms)


def _entries(path: str, text: str, where: str) -> Iterator[tuple[str, str, list[str]]]:
    if path.endswith(".tsv"):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                term, *synonyms = line.split("\t")
                yield f"{where}, line {number}", term, synonyms
        return
    if not path.endswith(".json"):
        raise ConfigError(f"{where}: must end in .tsv or .json")
    try:
        table = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: is not valid JSON: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: must contain an object that maps each term to a list of "
                          "synonyms")
    for term, synonyms in table.items():
        if not (isinstance(synonyms, list) and all(isinstance(s, str) for s in synonyms)):
            raise ConfigError(f"{where}: {term!r} must have a list of strings")
        yield where, term, synonyms
