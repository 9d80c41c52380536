"""Copies: exact and near, in chains and around hubs; text that many share; and what is no copy.

How similar two texts are was worked out by hand from their sentences, and is worked out again by
`similarity`, which is no part of the program.
"""

import re

from tests.data_beam.mini_corpus.corpus import MiniCorpus, Rows, dropped, kept

NEAR = ("dedup", "near duplicate")
EXACT = ("dedup", "exact duplicate")
LETTER_BY_LETTER = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W\u3040-\u30ff\u3400-\u9fff]+")


def similarity(one: str, two: str) -> float:
    """Jaccard similarity of the sets of five consecutive words, or Han characters."""
    sets = []
    for text in (one, two):
        tokens = LETTER_BY_LETTER.findall(text.lower())
        sets.append({tuple(tokens[i:i + 5]) for i in range(len(tokens) - 4)})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


PAIRS: list[tuple[str, str, float, float]] = []
"""Two texts, and the bounds of their similarity that their labels rest on."""


def add(corpus: MiniCorpus) -> None:
    PAIRS.clear()
    exact(corpus)
    near(corpus)
    not_near(corpus)
    shared_text(corpus)


def exact(corpus: MiniCorpus) -> None:
    """Of equal texts the one whose source is listed first stays."""
    with corpus.rows("mirror/copies.jsonl") as mirror, corpus.rows("rows/originals.jsonl") as rows:
        for prose, language in ((corpus.english, "en"), (corpus.chinese, "zh")) * 3:
            text = prose.text()
            rows.add(text, kept(language, text=text))
            mirror.add(text, dropped(*EXACT, why="in a source that is listed later"))
        text = corpus.english.text()
        rows.add(text, kept("en", text=text, why="the first of three in one file"))
        rows.add(text + "\r\n", dropped(*EXACT, why="equal once cleaned"))
        rows.add("\u200b" + text, dropped(*EXACT, why="equal once cleaned"))
        text = corpus.chinese.text()
        rows.add(text, dropped("licence", "licence not allowed"), licence="CC-BY-NC-4.0")
        mirror.add(text, kept("zh", text=text, why="the copy before it fell to its licence"))
        text = corpus.english.text()
        corpus.file("web/original.txt", text, kept("en", text=text))
        corpus.file("books/copy.txt", text, dropped(*EXACT, why="another source"))
        mirror.add(text, dropped(*EXACT, why="a third one"))


def cluster(rows: Rows, name: str, language: str, texts: list[str], traps: tuple[int, ...] = (41,)
            ) -> None:
    """Near copies: the longest is kept, and what is no copy of a longer one that is kept. No two
    are equally long, so quality does not matter."""
    lengths = [len(text) for text in texts]
    assert len(set(lengths)) == len(lengths), (name, sorted(lengths))
    stars: list[list[str]] = []
    for text in sorted(texts, key=len, reverse=True):
        star = next((star for star in stars if similarity(star[0], text) >= 0.7), None)
        if star is None:
            stars.append([text])
        else:
            star.append(text)
    for text in texts:
        number, star = next((i, star) for i, star in enumerate(stars) if text in star)
        of = f"{name}, {number}" if len(star) > 1 else ""
        rows.add(text, kept(language, text=text, traps=traps, cluster=of, why=name,
                            **({"split_with": name} if len(stars) > 1 else {}))
                 if text is star[0] else dropped(*NEAR, traps=traps, cluster=of, why=name))


def near(corpus: MiniCorpus) -> None:
    """Known clusters."""
    en, zh = corpus.english, corpus.chinese
    with corpus.rows("rows/near.jsonl") as rows:
        text = en.text()
        longer = text + " This last sentence was added by the second of the two papers."
        PAIRS.append((text, longer, 0.8, 1))
        cluster(rows, "a sentence more", "en", [text, longer])
        text = en.text()
        cluster(rows, "capitals and marks", "en",
                [text, text.replace(". ", "!! "),
                 f"THE {text[0].lower()}{text[1:].replace(',', ' --')} !!!"])
        text = zh.text()
        changed = text[:100] + "这里有二十来个字被换成了完全不同的内容了哦" + text[120:]
        PAIRS.append((text, changed, 0.75, 1))
        cluster(rows, "20 characters of Chinese", "zh", [text, changed], (41, 45))
        text = zh.text() + zh.text() + zh.text() + zh.text()
        scattered = list(text)
        for place in range(20, 1000, 49):
            scattered[place] = "某"
        changed = "".join(scattered) + "完。"
        PAIRS.append((text, changed, 0.75, 1))
        cluster(rows, "20 scattered characters", "zh", [text, changed], (41, 45))
        text = zh.text()
        cluster(rows, "Chinese marks", "zh", [text, text.replace("，", "， ").replace("。", "！！"),
                                              text.replace("。", "。\n") + "。"], (41, 45, 49))
        for prose, joint, language in ((en, " ", "en"), (zh, "", "zh")):
            # Each differs from the next by a sentence at both ends; far ones are not similar.
            sentences = prose.sentences() + prose.sentences()
            chain = [joint.join(sentences[i:i + 9]) for i in range(5)]
            PAIRS.extend((chain[i], chain[i + 1], 0.7, 1) for i in range(4))
            PAIRS.append((chain[0], chain[2], 0, 0.7))
            PAIRS.append((chain[0], chain[4], 0, 0.5))
            cluster(rows, f"a chain, {language}", language, distinct_lengths(chain))
            # Each is like the hub and not like the others.
            sentences = prose.sentences() + prose.sentences()[:4]
            others = prose.sentences()
            spokes = [joint.join([*sentences[:i], others[i], *sentences[i + 1:]])
                      for i in range(1, 7)]
            hub = joint.join(sentences)
            PAIRS.extend((hub, spoke, 0.7, 1) for spoke in spokes)
            PAIRS.append((spokes[0], spokes[3], 0, 0.7))
            cluster(rows, f"a hub, {language}", language, distinct_lengths([hub, *spokes]))
        text = en.sentences() + en.sentences()[:3]
        page = " ".join(text)
        with corpus.rows("mirror/near.jsonl") as mirror:
            # The longer one is in the later source: the length decides, not the source.
            cluster_of = {"cluster": "across sources", "traps": (41,)}
            rows.add(page, dropped(*NEAR, **cluster_of))
            mirror.add(page + " Reprinted with kind permission.", kept("en", **cluster_of))


def distinct_lengths(texts: list[str]) -> list[str]:
    """Longer by some marks where two have the same length."""
    seen: set[int] = set()
    result = []
    for text in texts:
        while len(text) in seen:
            text += "!"
        seen.add(len(text))
        result.append(text)
    return result


def not_near(corpus: MiniCorpus) -> None:
    """What must stay, and what must share a split."""
    en, zh = corpus.english, corpus.chinese
    with corpus.rows("rows/not_near.jsonl") as rows:
        for prose, joint, language in ((en, " ", "en"), (zh, "", "zh")):
            sentences = prose.sentences() + prose.sentences()[:2]
            others = prose.sentences()
            one = joint.join(sentences[:9])
            two = joint.join([*sentences[:3], *others[3:5], *sentences[5:9]])
            PAIRS.append((one, two, 0.53, 0.67))
            for text in (one, two):
                rows.add(text, kept(language, text=text, split_with=f"half alike, {language}",
                                    why="alike, but under the threshold"))
            sentences = prose.sentences()
            others = prose.sentences()
            one, two = joint.join(sentences), joint.join([*sentences[:3], *others[3:]])
            PAIRS.append((one, two, 0.1, 0.45))
            for text in (one, two):
                rows.add(text, kept(language, text=text, traps=(41, 45),
                                    why="three sentences in common"))


NOTICE = (
    "This page is part of the archive of the district. Its texts were typed by volunteers from the "
    "papers of the parish, and errors of the originals were left as they are. Whoever finds a "
    "mistake of ours is asked to write to the office, which is open on every second Tuesday.")
SHENGMING = (
    "本资料由志愿者根据地方档案整理录入，原文中的错误一律保留，没有擅自改动。读者如果发现录入的差错，"
    "请在每月第二个星期二的办公时间与档案室联系。\n未经整理的部分存放在地下室，需要查阅的人可以提前三天"
    "写信预约，管理员会把有关的卷宗取到阅览室来。")
LICENCE = (
    "Permission to use this text is given to everybody, for any purpose and without a fee. Those "
    "who print it must say where it comes from and must not claim that they wrote it. Nobody "
    "answers for what follows from its use, whatever the court or the reason may be. If a part of "
    "these terms is void, the others stay as they are. The terms end for whoever breaks them.")


def shared_text(corpus: MiniCorpus) -> None:
    """Unrelated documents with the same notice are no copies; a notice in many goes."""
    en, zh = corpus.english, corpus.chinese
    lines, paragraphs = ("repeated lines removed: 1",), ("repeated paragraphs removed: 1",)
    # The source that is listed first keeps it.
    own = [en.text() for _ in range(5)]
    corpus.file("web/notice.txt", f"{own[0]}\n{NOTICE}",
                kept("en", text=f"{own[0]}\n{NOTICE}", untouched=True, traps=(41,),
                     why="the first of those with the notice keeps it"))
    with corpus.rows("rows/notice.jsonl") as rows:
        for text in own[1:]:
            PAIRS.append((f"{own[0]}\n{NOTICE}", f"{text}\n{NOTICE}", 0.1, 0.5))
            rows.add(f"{text}\n{NOTICE}", kept("en", text=text, transforms=lines, traps=(41, 57),
                                               why="no copy of each other"))
        own = [zh.text() for _ in range(5)]
        first = f"{own[0]}\n\n{SHENGMING}"
        corpus.file("web/shengming.txt", first, kept("zh", text=first, untouched=True,
                                                     traps=(41, 45)))
        for text in own[1:]:
            PAIRS.append((first, f"{text}\n\n{SHENGMING}", 0.05, 0.5))
            rows.add(f"{text}\n\n{SHENGMING}",
                     kept("zh", text=text, transforms=paragraphs, traps=(41, 45, 57)))
        corpus.file("web/licence.txt", f"{en.text()}\n{LICENCE}",
                    kept("en", contains=(LICENCE,), why="the first with this paragraph"))
        for number in range(3):
            text = en.text()
            rows.add(f"{LICENCE}\n{text}" if number % 2 else f"{text}\n{LICENCE}",
                     kept("en", text=text, transforms=lines))
        rows.add(LICENCE, dropped("dedup", "repeated text", why="nothing else is in it"))
        few = "The following pages were found behind a cupboard when the school was painted in May."
        for _ in range(3):
            rows.add(f"{few}\n{en.text()}",
                     kept("en", contains=(few,), untouched=True,
                          why="a line in three documents is no notice"))
        paragraph = zh.text()[:101]
        for _ in range(3):
            rows.add(f"{zh.text()}\n\n{paragraph}",
                     kept("zh", contains=(paragraph,), untouched=True))
