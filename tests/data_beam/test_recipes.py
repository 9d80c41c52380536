"""The recipes in configs/corpus that a user starts from, run on folders of a few documents."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_beam import prepare, train_perplexity, train_quality
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import ConfigError
from tests.data_beam.mini_corpus import topics

RECIPES = Path(__file__).resolve().parents[2] / "configs/corpus"


def article(*numbers: int) -> str:
    """Chinese paragraphs on the subjects from one number to another."""
    return "\n\n".join("".join(SUBJECTS[i]) for i in range(*numbers))


SUBJECTS = list(topics.CHINESE.values())
ENGLISH = "\n\n".join(map(" ".join, list(topics.ENGLISH.values())[:6]))
CHINESE = article(6)
COPY = CHINESE.replace("三", "四")
MENU = "\n".join(["Home", "About us", "Contact", "Log in"] * 30)
REPEATED = "\n".join([next(iter(topics.ENGLISH.values()))[0]] * 60)
GERMAN = ("Die Katze schläft auf dem warmen Dach und träumt von den Vögeln im Garten. Am Abend "
          "kommt sie wieder herunter und bittet in der Küche um ihre Milch. ") * 8


def write(folder: Path, documents: dict[str, str]) -> None:
    """Text files, but for names that end in .jsonl: those get a line a paragraph."""
    for name, text in documents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def kept_and_dropped(output: Path) -> tuple[dict[str, dict], dict[str, tuple[str, str]]]:
    """Rows of the documents, and (stage, reason) of the dropped, by path."""
    documents = {row["path"]: row for row in pq.read_table(output / "documents").to_pylist()}
    return documents, {row["path"]: (row["stage"], row["reason"])
                       for row in pq.read_table(output / "dropped").to_pylist()}


@pytest.mark.parametrize("name, kept, dropped", [
    ("gopher", {"en.txt", "zh.txt"},
     {"zh_copy.txt": "dedup", "menu.txt": "gopher_repetition", "repeated.txt": "gopher_repetition",
      "de.txt": "language"}),
    ("c4", {"en.txt", "zh.txt", "zh_copy.txt", "repeated.txt"},
     {"menu.txt": "c4", "de.txt": "language"}),
    ("fineweb", {"en.txt"},
     {"zh.txt": "language", "zh_copy.txt": "language", "menu.txt": "gopher_repetition",
      "repeated.txt": "gopher_repetition", "de.txt": "language"}),
    ("fineweb2_zh", {"zh.txt"},
     {"zh_copy.txt": "dedup", "en.txt": "language", "menu.txt": "language",
      "repeated.txt": "language", "de.txt": "language"}),
])
def test_a_recipe_keeps_prose_of_its_languages(name, kept, dropped, tmp_path):
    write(tmp_path / "raw", {
        "en.txt": ENGLISH, "zh.txt": CHINESE, "zh_copy.txt": COPY, "menu.txt": MENU,
        "repeated.txt": REPEATED, "de.txt": GERMAN})
    assert prepare.main([f"--config={RECIPES / name}.py:{tmp_path / 'raw'}",
                         f"--output={tmp_path / 'out'}"]) == 0
    documents, ends = kept_and_dropped(tmp_path / "out")
    assert {path: stage for path, (stage, _) in ends.items()} == dropped
    assert set(documents) == kept


def test_a_folder_is_read_by_the_suffixes_of_its_files(tmp_path):
    write(tmp_path, {"a.txt": "x", "b/c.MD": "x", "b/d.jsonl": "{}", "b/e.tar": "x"})
    (tmp_path / "f.warc.gz").write_bytes(b"x")
    source = raw_folder(str(tmp_path), "mine", "law", "MIT")
    assert (source.name, source.domain, source.licence) == ("mine", "law", "MIT")
    assert [(i.pattern, i.format) for i in source.inputs] == [
        ("**.MD", "markdown"), ("**.txt", "text"), ("**.jsonl", "jsonl"), ("**.warc.gz", "warc")]
    assert [i.licence_field for i in source.inputs] == ["", "", "licence", ""]
    with pytest.raises(ConfigError, match=r"nothing does not exist; .*FILE.py:FOLDER"):
        raw_folder(str(tmp_path / "nothing"))


def shuffled(text: str, seed: int) -> str:
    """The same characters in another order: text that no clean model expects."""
    characters = list(text)
    random.Random(seed).shuffle(characters)
    return "".join(characters)


def test_the_medical_recipe_runs_with_everything_on(tmp_path):
    clean = ["".join(sentences) for sentences in SUBJECTS]
    (tmp_path / "clean.txt").write_text("\n\n".join(clean), "utf-8")
    for task, labels in (("quality", (0, 4)), ("safety", (1, 0))):
        rows = [{"text": text, "label": label} for i, sentences in enumerate(SUBJECTS)
                for label, text in ((labels[0], shuffled("".join(sentences[:4]), i) + "领彩金"),
                                    (labels[1], "".join(sentences[:4])),
                                    (labels[1], "".join(sentences[4:])))]
        (tmp_path / f"{task}.jsonl").write_text(
            "\n".join(json.dumps(row) for row in rows), "utf-8")
        assert train_quality.main([f"--examples={tmp_path}/{task}.jsonl", f"--task={task}",
                                   f"--output={tmp_path}/models/{task}", "--features=4096"]) == 0
    assert train_perplexity.main(["--text", f"{tmp_path}/clean.txt", "--language=zh",
                                  f"--output={tmp_path}/models/perplexity", "--held_out=0.5"]) == 0

    question = "".join(SUBJECTS[20][:2])
    write(tmp_path, {
        "evaluation/quiz.jsonl": json.dumps({"question": question, "answer": "不知道"}),
        "synonyms.tsv": "高血压\t高血压病\n糖尿病\t消渴症\n",
        "raw/guidelines/a.txt": article(8),
        "raw/guidelines/contact.txt": article(8, 14) +
            "\n\n如有疑问，请联系张医生，电话13800138000，邮箱zhang@hospital.cn，我们会尽快给您答复。",
        "raw/web/copy.txt": article(8).replace("三", "四"),
        "raw/web/quiz.txt": article(18, 24),
        "raw/web/noise.txt": shuffled(article(14, 18), 1),
        "raw/web/traditional.txt": article(24, 30).replace("学", "學"),
        "raw/web/de.txt": GERMAN,
        "raw/web/rows.jsonl": "\n".join(json.dumps(row) for row in (
            {"text": article(14, 18), "licence": "CC0-1.0"},
            {"text": article(14, 18), "licence": "proprietary"})),
    })
    pq.write_table(pa.table({"text": [article(14, 18)],
                             "licence": ["proprietary"]}), tmp_path / "raw/web/rows.parquet")
    assert prepare.main([f"--config={RECIPES / 'chinese_medical.py'}:{tmp_path}",
                         f"--output={tmp_path / 'out'}"]) == 0
    documents, dropped = kept_and_dropped(tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert {path: stage for path, (stage, _) in dropped.items()} == {
        "copy.txt": "dedup", "quiz.txt": "decontaminate", "noise.txt": "perplexity",
        "de.txt": "language", "rows.jsonl": "licence", "rows.parquet": "licence"}
    assert documents["rows.jsonl"]["licence"] == "CC0-1.0"
    contact = documents["contact.txt"]
    assert "电话[PHONE]，邮箱[EMAIL]" in contact["text"]
    assert "學" not in documents["traditional.txt"]["text"]
    for row in documents.values():
        scores = dict(row["scores"])
        assert {"perplexity", "quality", "toxicity"} <= scores.keys(), row["path"]
    total = manifest["total"]
    assert total["read"] + total["augmented"] == total["kept"] + total["dropped"]
    assert (tmp_path / "out/report.html").exists()
