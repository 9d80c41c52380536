"""Long texts: a sentence that stands at the end of every chapter."""

from collections.abc import Sequence

from tests.data_beam.mini_corpus.corpus import MiniCorpus, dropped, kept

ENDING = "And so the candle was put out, and the next night the teller went on with her tale"
WANT_MORE = "欲知后事如何，且听下回分解"
HAN_HEADS = [f"话说第{number}回。" for number in (
    *"一二三四五六七八九十", *(f"十{number}" for number in "一二三四五六七八九"), "二十")]
EVENINGS = """
Rain had soaked the miller to the bone, and his mule stood steaming under the roof of the barn.
Two sisters came with a basket of plums and wanted to know at once whether the prince had lived.
Because the clerk had a cold, everybody had to speak up, and so did the dog under his chair.
A pedlar spread ribbons over the table until the hostess told him to put them away for good.
It was so still that one could hear the ferryman cough from the other bank of the lake.
Someone had brought a soldier who had lost a leg in the north and most of his patience too.
Sparks flew when the smith threw a whole root of oak on the fire and sat down beside it.
Four students had walked from the city for a wager and would not say what it had been about.
With the midwife came news of twins, and a round was drunk to each of them in turn.
Even the judge had heard of the teller by now, and he sat where the light did not reach.
Cattle filled the yard that night, for a drover had missed the road in the fog behind the mill.
Nobody had expected the cantor, least of all his wife, who was there already and laughed.
Three masons played dice until the first sentence and then forgot whose turn it had been.
Snow lay on the sill, the first of that winter, when a widow asked for the chair by the stove.
What the hunter carried in his bag moved, but no one asked him, and he did not explain it.
There was a juggler among the guests who kept a spoon in the air through most of the chapter.
Late came the carter, and they told him in one breath all that he had missed since Monday.
Pilgrims on their way home had seen the sea and did not believe much of what was told here.
Before he sat down, the cooper went around the room and knocked on every barrel to hear it.
Only the host himself was left on that night, with a cat, a candle and the last of the wine.
""".strip().split("\n")


def add(corpus: MiniCorpus) -> None:
    """The same sentence at the end of twenty chapters; in nineteen it may stand."""
    en = corpus.english.long(100_000)
    zh = corpus.chinese.long(100_000)
    for count in (20, 19):
        label = dropped("repeated_sentences", "repeated sentence") if count == 20 else None
        text = chapters(en, count, 1000, " ", ENDING, EVENINGS)
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
