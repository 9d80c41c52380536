"""Long texts: a sentence that stands at the end of every chapter."""

from collections.abc import Sequence

from tests.data_beam.mini_corpus import topics
from tests.data_beam.mini_corpus.corpus import MiniCorpus, dropped, kept

ENDING = "And so the candle was put out, and the next night the teller went on with her tale"
WANT_MORE = "欲知后事如何，且听下回分解"
HAN_HEADS = [f"话说第{number}回。" for number in (
    *"一二三四五六七八九十", *(f"十{number}" for number in "一二三四五六七八九"), "二十")]


def add(corpus: MiniCorpus) -> None:
    """The same sentence at the end of twenty chapters; in nineteen it may stand."""
    en = corpus.english.long(100_000)
    zh = corpus.chinese.long(100_000)
    for count in (20, 19):
        label = dropped("repeated_sentences", "repeated sentence") if count == 20 else None
        text = chapters(en, count, 1000, " ", ENDING, topics.EVENINGS)
        corpus.file(f"books/tales-{count}.txt", text, label or kept(
            "en", text=text, traps=(41,), why="19 chapters"))
        text = chapters(zh, count, 300, "", WANT_MORE, HAN_HEADS)
        corpus.file(f"books/yanyi-{count}.txt", text, label or kept(
            "zh", text=text, traps=(41, 49), why="19 chapters"))
    song = corpus.english.sentences()
    refrain = "Row, row, row the boat, the river is so wide, and home is on the other side."
    rows = [line for each in song[:6] for line in (each, refrain)]
    corpus.file("books/song.txt", "\n".join(rows), dropped(
        "gopher_repetition", "duplicate lines", why="a refrain is no ending of a chapter"))


def chapters(sentences: list[str], count: int, size: int, joint: str, ending: str,
             heads: Sequence[str]) -> str:
    """Chapters of at least `size` characters, each with the ending; no sentence twice."""
    unused = iter(sentences)
    result = []
    for number in range(count):
        chapter = [heads[number]]
        while len(joint.join(chapter)) + len(joint) + len(ending) < size:
            chapter.append(next(unused))
        result.append(joint.join([*chapter, ending + ("." if joint else "。")]))
    return "\n".join(result)
