"""Trained spans: the parts of a text whose tokens are targets of the loss.

A span is [start, end) in characters (code points) of the text. Spans ascend and do not overlap. A
document without spans (None) is trained as a whole; an empty list trains nothing.
"""

from typing import Any

import numpy as np

Spans = tuple[tuple[int, int], ...]


def read_spans(value: Any, characters: int) -> Spans:
    """The spans of a list of pairs.

    Args:
      value: as read from JSON or Parquet.
      characters: of the text.

    Raises:
      ValueError: they are not spans of such a text; says which is wrong.
    """
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"a list of [start, end] is needed, got {str(value)[:40]}")
    before = 0
    for number, span in enumerate(value, 1):
        if not (isinstance(span, (list, tuple)) and len(span) == 2
                and all(type(border) is int for border in span)):
            raise ValueError(f"span {number} is not [start, end]: {str(span)[:40]}")
        start, end = span
        if not 0 <= start < end <= characters:
            raise ValueError(f"span {number} [{start}, {end}] is empty or outside of the text, "
                             f"which has {characters} characters")
        if start < before:
            raise ValueError(f"span {number} [{start}, {end}] begins before the end of the span "
                             "before it")
        before = end
    return tuple((start, end) for start, end in value)


def token_mask(text: str, spans: Spans, token_bytes: np.ndarray, prefix_bytes: int) -> np.ndarray:
    """Which tokens of a document are trained: [tokens + 2] bool, with BOS and EOS around them.

    A token is trained if any of its bytes lies in a span, so a token that crosses a border is. EOS
    is trained if a span ends at the end of the text. BOS never is.

    Args:
      text: of the document.
      spans: see the module.
      token_bytes: [tokens] UTF-8 bytes of text that each token stands for.
      prefix_bytes: that the tokenizer put before the text (`Tokenizer.prefix_bytes`).

    Raises:
      ValueError: the bytes of the tokens are not those of the text.
    """
    borders, size, position = [], prefix_bytes, 0  # the prefix is part of the first character
    for border in (*(border for span in spans for border in span), len(text)):
        size += len(text[position:border].encode())
        position = border
        borders.append(size if border else 0)
    ends = np.cumsum(token_bytes, dtype=np.int64)
    if text and (len(ends) == 0 or ends[-1] != size):
        raise ValueError("its tokens stand for another number of bytes than its text has, so its "
                         "trained spans cannot be mapped to tokens")
    starts = ends - token_bytes
    mask = np.zeros(len(ends) + 2, bool)
    for start, end in zip(borders[:-1:2], borders[1:-1:2], strict=True):
        first = ends.searchsorted(start, "right")
        mask[1 + first:1 + starts.searchsorted(end, "left")] = True
    mask[-1] = bool(spans) and spans[-1][1] == len(text)
    return mask
