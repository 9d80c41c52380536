"""IP addresses, as opposed to section numbers, versions and object identifiers."""

import ipaddress
import re
from collections.abc import Iterator

from data_beam.privacy.spans import Span

_V4 = re.compile(r"(?<![0-9A-Za-z_\-])(?<![0-9][.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
                 r"(?![0-9A-Za-z_])(?!\.[0-9])")
_SECTION_OR_VERSION_CUE = re.compile(
    r"(?:version|release|ver|v|section|sec|chapter|appendix|table|figure|fig|§|clause|step|"
    r"版本?|第|节|章|条|表|图|附录|編|篇)[ .:]{0,2}\Z", re.IGNORECASE)
_ADDRESS_CUE = re.compile(
    r"(?:(?<![A-Za-z])(?:ipv?4?|ips|address|host|server|from|ping|dns|gateway|client|proxy|login)"
    r"(?![A-Za-z])|地址|服务器|主机|网关|来自|代理|登录|://|@)[^\n]{0,16}\Z", re.IGNORECASE)
_VERSION = re.compile("version|release|版本", re.IGNORECASE)
_PORT_OR_PREFIX = re.compile(r":[0-9]{2,5}(?![0-9])|/[0-9]{1,2}(?![0-9/])")
_CONTEXT_CHARACTERS = 24

_V6 = re.compile(r"(?<![0-9A-Za-z_:.])[0-9A-Fa-f]{4}:[0-9A-Fa-f:]{2,34}(?![0-9A-Za-z_:])")


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_global and not address.is_multicast


def ipv4(text: str, start: int, stop: int, private: bool) -> Iterator[Span]:
    """IPv4 addresses in a window.

    `8.1.2.4` may be a section and `2.5.29.15` an object identifier. If all octets are below 100
    (true for 2% of all addresses), the number counts only with a word such as `host` before it, or
    a port or prefix length after it. A number after `version`, `section`, `第` or a similar word
    never counts.

    With `private` also private, loopback and documentation addresses (RFC 1918, 5737), which
    identify nobody.
    """
    for match in _V4.finditer(text, start, stop):
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            continue
        before = text[max(0, match.start() - _CONTEXT_CHARACTERS):match.start()]
        if _SECTION_OR_VERSION_CUE.search(before) or not (private or _is_public(address)):
            continue
        if (max(address.packed) >= 100 or _PORT_OR_PREFIX.match(text, match.end())
                or (_ADDRESS_CUE.search(before) and not _VERSION.search(before))):
            yield Span(*match.span(), "ip")


def ipv6(text: str, private: bool) -> Iterator[Span]:
    """IPv6 addresses of global unicast (2000::/3); with `private` also every other range that
    starts with four digits, including documentation (2001:db8::/32)."""
    if text.count(":") < 2:
        return
    for match in _V6.finditer(text):
        number = match[0].rstrip(":") if not match[0].endswith("::") else match[0]
        if number.count(":") < 2:
            continue
        try:
            address = ipaddress.IPv6Address(number)
        except ValueError:
            continue
        if private or (_is_public(address) and address.packed[0] >> 5 == 1):
            yield Span(match.start(), match.start() + len(number), "ip")
