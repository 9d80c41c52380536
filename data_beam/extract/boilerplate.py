"""Boilerplate lines of a page: known markers in Chinese and English.

A line is removed only if all of it is a marker in one of the forms below, which we collected from
pages by hand; prose that mentions one of the words, or begins with it, stays. Few lines are
markers, so a line is looked up by its first two characters (in lower case) before any pattern is
tried.
"""

import re

from data_beam.base import word_lists

_LAST_LINES = 10  # with text, of which copyright lines go; higher up may be a licence

_LISTS = word_lists.read("data_beam.extract", "boilerplate.txt")
_ALONE = frozenset(_LISTS["alone"])
_IN_A_ROW = _ALONE.union(_LISTS["in a row"])
_BETWEEN = re.compile(r"\s*[|·•/｜]\s*")

_NO_STOP = r"[^。！？；!?;]"
_NETWORK = "(?:facebook|twitter|x|linkedin|reddit|whatsapp|pinterest|e-?mail|telegram|weibo|" \
           "wechat|instagram|youtube|tumblr|微信好友|微信|朋友圈|新浪微博|微博|qq空间|qq好友|qq|" \
           "好友|豆瓣|知乎)"
_EDITOR = "(?:责任编辑|责编|值班编辑|实习编辑|责任校对|文章来源|本文来源|稿件来源|信息来源|" \
          "新闻来源|稿源)"
# First characters, and the form of the whole line in lower case.
_FORMS = (
    # 责任编辑：张三   （责任编辑：张三）   【编辑:王五】
    ("责任 责编 值班 实习 文章 本文 稿件 信息 新闻 稿源",
     rf"{_EDITOR}\s*[:：]{_NO_STOP}{{0,30}}"),
    (" ".join(bracket + first for bracket in "(（[【" for first in "责值实文本稿信新编来原"),
     rf"[(（\[【](?:{_EDITOR}|编辑|来源|原标题)\s*[:：]{_NO_STOP}{{0,40}}[)）\]】]"),
    # 上一篇：春天   Previous post: Spring
    ("上一 下一 前一 后一",
     rf"[上下前后]一[篇页章条则节](?:文章|新闻)?\s*[:：»›→>]{_NO_STOP}{{0,60}}"),
    ("pr ne ol",
     r"(?:previous|next|older|newer) (?:post|article|story|page|entry|entries)s?"
     r"\s*[:»›→>][^.!?]{0,80}"),
    # 未经许可，不得转载。   版权声明：本文为原创，未经授权禁止转载
    ("未经 声明 版权 本文 本站 本网",
     r"(?:(?:版权)?声明\s*[:：]\s*)?(?:本[文站网][^。，,]{0,15}[，,])?未经[^。，,]{0,16}[，,]?\s*"
     r"(?:不得|禁止|严禁|请勿|谢绝)[^。，,]{0,6}(?:转载|复制|摘编|使用)"
     r"(?:[或及和与、\s]|转载|复制|摘编|使用|镜像|引用|建立)*[。！!.]?(?:\s*违者必究[。！!]?)?"),
    # 分享到：微信 微博   Share this on Facebook
    ("分享 转发 收藏 一键",
     rf"(?:一键)?(?:分享|转发|收藏)(?:到|至|给|本文|文章|此文)?(?:[\s:：、/|,，]|{_NETWORK})*"),
    ("sh tw pi",
     r"(?:share|tweet|pin)(?:[\s:,|/]+(?:this|on|via|with|to|it|article|post|page|story|your|"
     rf"friends|{_NETWORK})\b)*\s*:?"),
    ("fo", rf"follow (?:us|me)(?: on(?:[\s,|/&]+(?:and|{_NETWORK})\b)+)?\s*:?"),
    ("微信 长按 扫一 扫描 扫码 识别 请扫 用微",
     rf"(?:微信|长按|请|用微信)?(?:扫一扫|扫描|扫码|识别){_NO_STOP}{{0,20}}"
     rf"(?:关注|分享|公众号|订阅号|小程序|下载){_NO_STOP}{{0,20}}[！!]?"),
    # Subscribe to our newsletter
    ("pl su si",
     r"(?:please )?(?:subscribe|sign up)(?: now| today)? (?:to|for) (?:our|the|my)"
     r"(?: [\w-]+){0,3} (?:newsletters?|mailing list|e-?mail updates|e-?mail list)"
     r"(?:,? (?:and|to|for|today|now|here|below|so)\b[^.!?]{0,80})?[.!]?"),
    ("ge re", r"(?:get|receive) (?:the|our) (?:latest|best)[^.!?]{0,60} (?:in|to) your inbox[.!]?"),
    # Cookie notices: the word, and what only a notice goes on to say.
    ("th ou we by",
     r"(?:(?:this|our|the) (?:web)?site (?:and [^.]{0,30} )?uses? cookies|"
     r"we (?:and our partners )?use cookies|"
     r"by (?:continuing|using|browsing|clicking)[^.]{0,80}cookies?)\b"
     r"(?=.*\b(?:experience|consent|accept|analy[sz]e|analytics|preferences|policy|personali[sz]e|"
     r"agree|learn more)\b).*"),
    ("本网 本站 我们",
     r"(?:本网站|本站|我们)使用\s*cookies?(?=.*(?:体验|同意|接受|了解更多|隐私)).*"),
    # 【字体：大 中 小】【打印】   阅读：1234 次
    ("字号 字体 【字 [字 (字 （字",
     r"[【\[(（]?(?:字号|字体)(?:大小)?[:：\s]"
     r"(?:[\s【】\[\]()（）|:：]|大|中|小|打印|关闭|收藏|评论)*"),
    ("阅读 浏览 点击 评论",
     r"(?:阅读|浏览|点击|评论)(?:数|次数|量)?\s*[:：(（]\s*\d+\s*次?[)）]?"),
)
_BY_PREFIX: dict[str, list[re.Pattern[str]]] = {}
for _prefixes, _form in _FORMS:
    for _prefix in _prefixes.split():
        _BY_PREFIX.setdefault(_prefix, []).append(re.compile(_form))
# 京ICP备12345678号-1   京公网安备 11010802012345号
_REGISTERED = re.compile(r"[^。！？]{0,60}(?:icp[备证]\s*\d{5,}|公网安备\s*\d{8,})[^。！？]{0,80}")
# 某某网 版权所有 © 2020   版权所有，侵权必究。
_RIGHTS_ZH = re.compile(
    rf"(?:{_NO_STOP}{{0,30}}\s)?版权所有"
    rf"(?:(?:[\s:：©(（|]|\d|[，,]?(?:违者|侵权|翻版|未经|不得|禁止)){_NO_STOP}{{0,80}})?[。！]?")
# Names are recognised by their capitals, so case matters; atomic groups bound the time.
_NAME = r"(?>[A-Z0-9][\w.&'’-]*|(?:of|and|the|by|for|in)\b|&|\||-|–)(?>[\s.,]*)"
_YEARS = r"(?>\d{4}(?:\s*[-–,~至]\s*(?:\d{4}|[Pp]resent))*[\s,.]*)"
_RIGHTS = re.compile(
    rf"(?:(?:[Cc]opyright|COPYRIGHT)\s*(?:©|\([cC]\)|(?=\d))|©)\s*(?:{_YEARS})?(?:{_NAME}){{0,12}}"
    rf"(?:(?i:all rights reserved)[.\s]*)?(?:{_NAME}){{0,8}}"
    rf"|(?:{_NAME}){{0,6}}(?i:all rights reserved)[.!]?"
    rf"|©\s*(?:{_YEARS})?{_NO_STOP}{{0,40}}")
_EDGES = " \t\u3000•·*-–|<>«»‹›←→…:：\u200b"


def is_marker(line: str) -> bool:
    """Whether the whole line is a known marker; for copyright lines see `is_copyright`."""
    low = line.strip(_EDGES).lower()
    if low in _ALONE:
        return True
    for form in _BY_PREFIX.get(low[:2], ()):
        if form.fullmatch(low):
            return True
    if "|" in low or "·" in low or "｜" in low or "•" in low or "/" in low:
        items = _BETWEEN.split(low)
        if len(items) > 1 and all(item in _IN_A_ROW for item in items):
            return True
    return ("icp" in low or "公网安备" in low) and _REGISTERED.fullmatch(low) is not None


def is_copyright(line: str) -> bool:
    line = line.strip(_EDGES)
    if "版权所有" in line:
        return _RIGHTS_ZH.fullmatch(line) is not None
    low = line.lower()
    return (low.startswith(("©", "copyright")) or "all rights reserved" in low) and \
        _RIGHTS.fullmatch(line) is not None


def without_markers(text: str, max_characters: int) -> str:
    """The text without the lines of at most `max_characters` that are markers."""
    lines = text.split("\n")
    kept = [line for line in lines if len(line) > max_characters or not is_marker(line)]
    last, seen = len(kept), 0
    while last > 0 and seen < _LAST_LINES:
        last -= 1
        seen += bool(kept[last].strip())
    kept[last:] = [line for line in kept[last:]
                   if len(line) > max_characters or not is_copyright(line)]
    return text if len(kept) == len(lines) else "\n".join(kept)
