"""Language codes a recipe can name: those that fastText's lid.176 tells apart, and `und`."""

from collections.abc import Iterable

from maxlm.config.schema import ConfigError, suggestion

_CODES = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co
cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi
hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li
lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no
oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq sr su
sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh
und
"""
LANGUAGES = frozenset(_CODES.split())

SPACELESS = frozenset(("bo", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"))
"""Languages that write no spaces between words: rules made for words with spaces do not fit."""


def check_languages(codes: Iterable[str], path: str) -> None:
    """Raises ConfigError for a code that no document can carry."""
    for code in codes:
        if code not in LANGUAGES:
            raise ConfigError(f"{path}: {code!r} is no language code of lid.176; "
                              f"{suggestion(code, LANGUAGES)}")
