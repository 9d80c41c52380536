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

from data_beam.base import files
from data_beam.base.characters import HAN, fold_width
from maxlm.config.schema import ConfigError

_HAN = re.compile(f"[{HAN}]")
_HARMLESS = "!"
_COMMENT = "#"
_MAX_LENGTH = 200

# Short default lists for gambling, pornography and advertisements: enough to find spam pages, not
# complete. Words that are also common in harmless text are left out. Entries with ! are harmless
# phrases that contain a keyword: 特色 + 情怀, 感情 + 色彩, and legal terms.
DEFAULT_ZH = (
    "六合彩", "时时彩", "百家乐", "老虎机", "博彩网", "博彩平台", "澳门赌场", "在线投注",
    "投注平台", "网上赌博", "赌博网站", "真人荷官", "棋牌平台", "彩票平台", "外围投注", "高赔率",
    "色情", "情色", "黄色网站", "成人视频", "成人电影", "成人网站", "激情视频", "裸聊", "一夜情",
    "约炮", "援交", "卖淫", "嫖娼", "加微信领取", "微信扫码领", "代开发票", "办理假证", "代办文凭",
    "刷单兼职", "日赚千元", "日入过万", "无抵押贷款", "免费领红包", "点击领取", "!特色情",
    "!角色情", "!景色情", "!夜色情", "!月色情", "!春色情",
    "!神色情", "!脸色情", "!气色情", "!红色情", "!绿色情", "!蓝色情", "!黑色情",
    "!白色情", "!金色情", "!感情色", "!风情色", "!爱情色", "!抒情色", "!热情色", "!表情色",
    "!剧情色", "!打击卖淫", "!禁止卖淫", "!严禁卖淫", "!打击色情", "!禁止色情", "!淫秽色情",
    "!赌博网站的危害",
)

DEFAULT_EN = (
    "online casino", "online casinos", "casino bonus", "sports betting", "betting site",
    "betting sites", "online slots", "free spins", "online poker", "porn", "porno",
    "pornographic videos", "hentai", "nude cams", "sex cams", "sex chat", "adult dating",
    "escort services", "viagra", "cialis", "buy now", "click here to claim",
    "work from home and earn", "make money fast", "earn money online", "payday loan",
    "payday loans", "replica watches", "cheap followers", "limited time offer", "lose weight fast",
)


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
