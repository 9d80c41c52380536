"""What the models of the recipe learn from: clean text, and labelled examples."""

import json
from collections.abc import Sequence
from pathlib import Path

from data_beam import train_perplexity, train_quality
from tests.data_beam.mini_corpus import topics


def clean_texts(topics: dict[str, list[str]], joint: str) -> list[str]:
    """Documents of two or three sentences."""
    return [joint.join(sentences[i:i + 2]) for sentences in topics.values()
            for i in range(0, len(sentences) - 1, 2)]


def pairs(sentences: Sequence[str], joint: str) -> list[str]:
    """Documents of two sentences, each with several others."""
    return [joint.join((one, sentences[(i + step) % len(sentences)]))
            for step in (1, 2, 4) for i, one in enumerate(sentences)]


def examples(texts: dict[int, list[str]]) -> str:
    """Labelled texts as JSON lines."""
    return "".join(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n"
                   for label, those in texts.items() for text in those)


def train(folder: Path) -> None:
    """Writes `zh`, `en` (perplexity), `quality` and `safety` below a folder, by the product's own
    commands."""
    english_texts = clean_texts(topics.ENGLISH, " ")
    chinese_texts = clean_texts(topics.CHINESE, "")
    for language, texts in (("en", english_texts), ("zh", chinese_texts)):
        (folder / f"{language}.txt").write_text("\n\n".join(texts), "utf-8")
        assert train_perplexity.main([
            f"--text={folder / language}.txt", f"--language={language}", "--held_out=0.2",
            "--unit=character", "--order=4", f"--output={folder / language}"]) == 0
    good = english_texts + chinese_texts
    bad, unsafe = (pairs(topics.SPAM[f"{kind}, en"], " ") + pairs(topics.SPAM[f"{kind}, zh"], "")
                   for kind in ("worthless", "gambling"))
    for task, labelled in (("quality", {4: good, 0: bad}),
                           ("safety", {0: good[::2] + bad[::3], 1: unsafe})):
        (folder / f"{task}.jsonl").write_text(examples(labelled), "utf-8")
        assert train_quality.main([
            f"--examples={folder / task}.jsonl", f"--task={task}", "--held_out=0.2",
            "--l2=0.001", f"--output={folder / task}"]) == 0
