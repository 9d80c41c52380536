"""All repairs and conversions of a recipe, in their order."""

from data_beam.clean.lines import rejoin
from data_beam.clean.script import converter, fold_width
from data_beam.clean.text import clean_prose
from data_beam.config.clean import CleanConfig


def clean(text: str, config: CleanConfig) -> tuple[str, tuple[str, ...]]:
    """Clean prose, and the names of what changed it, in order.

    First the repairs of `clean_prose`, then what the recipe asks for: `fold_width`, the script
    (`opencc:t2s`), `rejoined_lines`.
    """
    text, changed = clean_prose(text, config.fix_mojibake, config.normalization)
    names = list(changed)
    for name, on, change in (
            ("fold_width", config.fold_width and not text.isascii(), fold_width),
            (f"opencc:{config.script}", config.script != "none" and not text.isascii(),
             lambda text: converter(config.script)(text)),
            ("rejoined_lines", config.rejoin_lines, rejoin)):
        if on:
            result = change(text)
            if result != text:
                text = result
                names.append(name)
    return text, tuple(names)
