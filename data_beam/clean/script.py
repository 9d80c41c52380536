"""Chinese script and character width.

OpenCC (Apache-2.0, dictionaries in the package) is only imported where a recipe asks for it.
"""

import functools
from collections.abc import Callable

_WIDTH = {0xFF00 + low: 0x20 + low for low in range(1, 0x5F) if chr(0x20 + low).isalnum()}
"""Full-width letters and digits to ASCII."""


@functools.cache
def converter(conversion: str) -> Callable[[str], str]:
    """OpenCC's conversion of this name (`t2s`, `s2tw`, ...), as a function on texts."""
    import opencc
    return opencc.OpenCC(conversion).convert


def fold_width(text: str) -> str:
    """Full-width ASCII letters and digits as ASCII: ＡＢＣ１２ becomes ABC12.

    Punctuation stays: ，。！？：；（） are how Chinese is written. So does half-width katakana,
    where voicing marks are characters of their own.
    """
    return text.translate(_WIDTH)
