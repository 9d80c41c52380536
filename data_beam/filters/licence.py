"""Licences: their SPDX names from the spellings that sources use, and the filter by an allow-list.
"""

import functools
import re
from typing import Any

from license_expression import ExpressionError, ExpressionParseError, get_spdx_licensing

from data_beam.base.characters import fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import LicenceConfig
from maxlm.config.schema import ConfigError, suggestion

# Spellings that no pattern below matches, in lower case with single spaces. "BSD" is left out,
# because it may mean any of several licences.
_SPELLINGS = {spelling: name for name, spellings in {
    "Apache-2.0": ("apache license", "apache software license"),
    "MIT": ("mit license", "the mit license", "the mit license (mit)", "expat",
            "麻省理工学院许可证"),
    "ISC": ("isc license", "isc license (iscl)"),
    "Unlicense": ("the unlicense", "the unlicense (unlicense)"),
    "BSD-3-Clause": ("new bsd license", "modified bsd license"),
    "BSD-2-Clause": ("simplified bsd license",),
    "PSF-2.0": ("python software foundation license",),
    "MPL-2.0": ("mozilla public license 2.0 (mpl 2.0)",),
    "MulanPSL-2.0": ("木兰宽松许可证 第2版", "木兰宽松许可证 第二版"),
}.items() for spelling in spellings}
_NUMBERED = (  # name, then a version with or without its .0
    (re.compile(r"(?:the )?(?:apache|asl)(?: software)?(?: licen[cs]e)?,?[ -]*(?:version|v)?[ .-]*"
                r"(1\.0|1\.1|2(?:\.0)?)"), "Apache-"),
    (re.compile(r"(?:mozilla public licen[cs]e|mpl),?[ -]*(?:version|v)?[ .-]*(1\.0|1\.1|2(?:\.0)?)"
                ), "MPL-"),
    (re.compile(r"(?:mulan psl|mulanpsl|木兰宽松许可证),?[ -]*(?:version|v)?[ .-]*(1|2)(?:\.0)?"),
     "MulanPSL-"),
)
_BSD = re.compile(r"(?:the )?(?:bsd[ -]([023])[ -]clause|([023])[ -]clause bsd)(?: licen[cs]e)?")
_GNU = re.compile(
    r"(?:the )?(?:gnu )?(?:(lesser|library|affero) )?(?:general public licen[cs]e|([la]?gpl)),?"
    r"[ -]*(?:version|v)?[ .-]*([123](?:\.[013])?)( or (?:\(at your option\) )?(?:any )?later"
    r"(?: version)?|\+|-or-later)?(?:[ -]only)?")
_GNU_NAMES = {"lesser": "LGPL", "library": "LGPL", "affero": "AGPL", None: "GPL"}

# `Apache-2.0+`: this version or a later one (SPDX 2.3, annex D). The `+` goes, except of `GPL-2.0+`
# and its like, which have names of their own.
_OR_LATER = re.compile(r"([a-z0-9][a-z0-9.-]*)\+(?=[\s()]|$)", re.IGNORECASE)

_VERSION = re.compile(r"-[0-9]+(?:\.[0-9]+)*$")
_MAX_CHARACTERS = 500  # of a name or an expression; a longer text is the licence itself

_CC_URL = re.compile(r"(?:https?://)?(?:www\.)?creativecommons\.org/"
                     r"(?:licenses/([a-z-]+)/([0-9.]+)|publicdomain/(zero|mark)/1\.0).*")
_CC = re.compile(r"(?:cc|creative commons)[ :-]*((?:by|nc|nd|sa)(?:[ -]+(?:by|nc|nd|sa))*)"
                 r"[ -]*v?\.?([1-4](?:\.[05])?)?(?: (?:international|unported|generic))?"
                 r"(?: licen[cs]e)?")
_CC_WORDS = re.compile(
    r"(?:creative commons )?attribution((?:[ -]*(?:non-?commercial|share-?alike|no-?deriv\w*))*)"
    r"[ -]*v?\.?([1-4](?:\.[05])?)?(?: (?:international|unported|generic))?(?: licen[cs]e)?"
    r"(?: \(cc[a-z0-9. -]*\))?")
_CC_CHINESE = re.compile(
    r"(?:知识共享|知識共享|cc|创作共用)?[ 《]*(?:署名|姓名標示)"
    r"((?:[ \-－—–]*(?:非商业性使用|非商业性|非商业|非商業性|相同方式共享|相同方式分享"
    r"|禁止演绎|禁止改作))*)[ 》]*([1-4](?:\.[05])?)?[ ]*(?:国际|國際|中国大陆|本地化)*"
    r"(?:版|许可协议|公共许可协议|授权)*")
_CC_PARTS = (
    (_CC_WORDS, {"noncommercial": "nc", "sharealike": "sa", "noderiv": "nd"}),
    (_CC_CHINESE, {"非商": "nc", "相同": "sa", "禁止": "nd"}),
)
_CC_ZERO = re.compile(r"(?:cc[ -]?(?:0|zero)|creative commons (?:zero|0)|知识共享 ?(?:零|0))"
                      r"(?:[ -]*v?1(?:\.0)?)?(?: universal)?(?: licen[cs]e)?(?: public domain "
                      r"dedication)?")


def _version(number: str | None) -> str:
    return "" if number is None else number if "." in number else f"{number}.0"


def _creative_commons(parts: str, version: str | None) -> str:
    """`CC-BY-NC-SA-4.0` of the parts in any order; without a version the name of the family."""
    ordered = [part for part in ("by", "nc", "nd", "sa") if part in parts]
    return "-".join(["CC", *(part.upper() for part in ordered), _version(version)]).rstrip("-")


def _by_rule(text: str) -> str | None:
    if match := _CC_URL.fullmatch(text):
        if match[3]:
            return "CC0-1.0" if match[3] == "zero" else None
        return _creative_commons(match[1], match[2])
    if _CC_ZERO.fullmatch(text):
        return "CC0-1.0"
    if (match := _CC.fullmatch(text)) and "by" in match[1]:
        return _creative_commons(match[1], match[2])
    for pattern, parts in _CC_PARTS:
        if match := pattern.fullmatch(text):
            words = re.sub("[ -]", "", match[1])
            found = [part for word, part in parts.items() if word in words]
            return _creative_commons(" ".join(["by", *found]), match[2])
    for pattern, name in _NUMBERED:
        if match := pattern.fullmatch(text):
            return name + _version(match[1])
    if match := _BSD.fullmatch(text):
        clauses = match[1] or match[2]
        return "0BSD" if clauses == "0" else f"BSD-{clauses}-Clause"
    if match := _GNU.fullmatch(text):
        name = match[2].upper() if match[2] else _GNU_NAMES[match[1]]
        return f"{name}-{_version(match[3])}-{'or-later' if match[4] else 'only'}"
    return None


@functools.cache
def licensing() -> Any:
    """The parser of SPDX expressions with all licences that SPDX lists."""
    return get_spdx_licensing()


@functools.cache
def identifiers() -> dict[str, str]:
    """SPDX licence identifiers by their lower-case form. Exceptions are not among them."""
    symbols = licensing().known_symbols
    return {key.lower(): key for key, symbol in symbols.items()
            if not key.startswith("LicenseRef-") and not symbol.is_exception}


@functools.cache
def families() -> dict[str, str]:
    """Identifiers without their version (`CC-BY` of `CC-BY-4.0`) by their lower-case form."""
    bases = {_VERSION.sub("", name) for name in identifiers().values()}
    return {base.lower(): base for base in bases if base.lower() not in identifiers()}


def family_of(name: str) -> str:
    """`CC-BY` for `CC-BY-4.0`. `MIT-0` is its own: `MIT` is a licence and no family."""
    base = _VERSION.sub("", name)
    return base if base.lower() in families() else name


def _is_reference(symbol: Any) -> bool:
    """Whether a licence is one that SPDX does not list: `LicenseRef-x`, `DocumentRef-y:...`."""
    return str(symbol.key).startswith(("LicenseRef-", "DocumentRef-"))


def _without_references(tree: Any) -> Any | None:
    """What a text may be taken under of what SPDX lists: of `A OR LicenseRef-x` it is `A`."""
    if not getattr(tree, "args", ()):
        symbols = licensing().license_symbols(tree)
        return None if any(map(_is_reference, symbols)) else tree
    parts = [_without_references(part) for part in tree.args]
    known = [part for part in parts if part is not None]
    if not known or (len(known) < len(parts) and tree.operator.strip().upper() == "AND"):
        return None
    return known[0] if len(known) == 1 else type(tree)(*known)


@functools.lru_cache(maxsize=10_000)
def parse(text: str) -> Any | None:
    """An SPDX expression from what a source calls its licence: a tree of `license_expression`, the
    name of a family as a text (`CC-BY`: the version is not said), or None when it is not known what
    is meant.

    The text is an identifier in any case, an expression with AND, OR, WITH, one of the usual
    spellings of Apache, BSD, Creative Commons (in Chinese too), GNU, MIT, Mozilla and Mulan
    licences, or the address of a Creative Commons licence. `Apache-2.0+` is `Apache-2.0`, which who
    takes the text may choose.
    """
    plain = " ".join(fold_width(text).split())
    if len(plain) > _MAX_CHARACTERS:
        return None
    lower = plain.lower().rstrip(".")
    name = _SPELLINGS.get(lower) or _by_rule(lower) or _by_rule(lower.removesuffix("+")) or lower
    if name.lower() in families():
        return families()[name.lower()]
    expression = identifiers().get(name.lower()) or _OR_LATER.sub(
        lambda match: identifiers().get(match[1].lower(), match[0]), plain)
    try:
        tree = licensing().parse(expression, strict=True)
    except (ExpressionError, ExpressionParseError):
        return None
    if tree is None or not all(map(_is_reference, licensing().unknown_license_symbols(tree))):
        return None
    return _without_references(tree)


def _rendered(licence: Any) -> str:
    return licence if isinstance(licence, str) else licence.render()


class Allowed:
    """The licences of an allow-list: SPDX identifiers, families (`CC-BY`), or identifiers WITH an
    exception. Raises ConfigError, which names the setting `field`, for a name that SPDX does not
    have, with the nearest that it has."""

    def __init__(self, names: tuple[str, ...], field: str):
        self._names: set[str] = set()
        for index, name in enumerate(names):
            plain = " ".join(name.split())
            known = identifiers().get(plain.lower()) or families().get(plain.lower())
            tree = None if known else parse(plain)
            if known is None and " with " in plain.lower() and tree is not None:
                known = tree.render()
            if known is None:
                hint = suggestion(plain, [*identifiers().values(), *families().values()])
                if re.search(" (?:and|or) ", str(tree), re.IGNORECASE):
                    hint = "list each licence by itself"
                elif tree is not None:
                    hint = f"write {_rendered(tree)!r}"
                elif not hint.startswith("did you"):
                    hint = "see https://spdx.org/licenses"
                raise ConfigError(f"{field}[{index}]: {name!r} is no SPDX identifier; {hint}")
            # `GPL-2.0+` and other old identifiers are written as SPDX writes them today.
            self._names.add(_rendered(parse(known)))

    def __call__(self, licence: Any) -> bool:
        """Whether a licence (from `parse`) lets a document stay.

        Of `A OR B` one must be allowed, of `A AND B` both. An exception only grants more, so `A
        WITH E` is allowed where `A` is.
        """
        if isinstance(licence, str):
            return licence in self._names
        if hasattr(licence, "license_symbol"):
            return licence.render() in self._names or self(licence.license_symbol)
        if not hasattr(licence, "args") or not licence.args:
            name = licence.render()
            return name in self._names or family_of(name) in self._names
        every = licence.operator.strip().upper() == "AND"
        return (all if every else any)(self(part) for part in licence.args)


_UNKNOWN = {"keep": "", "drop": "licence unknown", "quarantine": "licence quarantined"}


class LicenceFilter(Filter):
    """Drops documents whose licence is not allowed, and by choice those of an unknown licence."""

    name = "licence"
    section = "licence"
    libraries = ("license-expression",)

    @classmethod
    def is_enabled(cls, config: LicenceConfig) -> bool:
        return bool(config.allow)

    def __init__(self, config: LicenceConfig):
        super().__init__(config)
        self._allowed = Allowed(config.allow, "config.licence.allow")

    def __call__(self, document: Document) -> Document | Dropped:
        licence = parse(document.licence)
        if licence is None:
            reason = _UNKNOWN[self._config.unknown]
        else:
            reason = "" if self._allowed(licence) else "licence not allowed"
        if not reason:
            return document
        return Dropped(document.origin, self.name, reason, repr(document.licence[:80]))
