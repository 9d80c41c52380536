"""Columns that text takes on a screen with fixed width."""

import unicodedata


def width(line: str) -> int:
    """Columns of a line: full-width and wide characters count two, combining marks none."""
    if line.isascii():
        return len(line)
    columns = 0
    for character in line:
        if unicodedata.combining(character):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns
