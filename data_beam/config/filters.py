"""Rules that drop a document."""

import dataclasses

from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class FilterConfig:
    """When a document is dropped."""

    min_characters: int = setting(
        50, "shorter documents are dropped, counted without whitespace", minimum=1)
    short_line_width: int = setting(
        30, "lines up to this many columns are short; a full-width character takes two (FineWeb "
        "takes 30 characters)", minimum=1)
    max_short_line_fraction: float = setting(
        0.67, "prose with a larger share of short lines is dropped; 1 switches it off (FineWeb)",
        minimum=0.0, maximum=1.0)
