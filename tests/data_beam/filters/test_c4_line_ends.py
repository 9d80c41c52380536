"""Which ends of lines C4 keeps by default, as the paper has it, and with further marks."""

import re

import pytest

from data_beam.base.characters import fold_width
from data_beam.base.records import Document
from data_beam.filters import C4Config
from tests.data_beam.filters.cases import outcome

# Ends of lines; _ is a space.
KEPT = {
    "en": """. ! ? " .” .’ .» !’ ?» .) .] !) ?」 .”) .’” ._” ." !" .”._” word" word” word»
        .¹ .² .¹² .† .* .[a] .[1] .[12] ![b] .[a][b] .[1,2] .[12–14] .[note_3] .[n_1] .[ref_2] .(1)
        .(a) .① .⑫ .❶ .ⓐ .㉑ .㊱ .”[a] ."[1] .[a]” .”¹ .)¹ ._[a] .[1]_[2] .¹_² .【1】 .［1］ .［ａ］
        ．＂ ．” ！』 ？） ．［１］ ．（１） ..." ...” ؟ । 。 。”""",
    "zh": """。 ！ ？ ； … …… ” 」 』 。" 。' 。” 。’ 。） 。】 。」 。』 ！） ？” ！）”
        ！！ ？！ ……” . .” ．＂ 。① 。⑳ 。❶ 。㉑ 。¹ 。※ 。[1] 。[a] 。【1】 。〔1〕 。［1］
        。［１］ 。[注1] 。【注_2】 。（1） 。（１） 。(1) 。”[1] 。）① 。_[1]""",
}
CUT = {
    "en": """, ; : - – … word word) word] [a] ¹ ① * (1) m² ,[a] :① .[read_more] .(2019)
        .(see_the_list) .[b ... ...[1] ...¹ ...) (...) [...] […]""",
    "zh": """， 、 ： — ） 】 ① 【1】 （1） ，① ：【1】 ... ...） [...] 。【更多内容请点击这里】
        。（责任编辑）""",
}
PAPER = {("en", "tfds"): '.!?"', ("en", "datatrove"): """.!?"'""",
         ("zh", "tfds"): ".!?。！？．；…”’」』؟।"}
PRESETS = ("datatrove", "tfds")


def kept(end: str, language: str, **config) -> bool:
    """Whether C4 keeps a line with this end."""
    body = "委员会发表了关于城市的报告" if language == "zh" else "One two three four five"
    good = "\n".join(f"{body}{i}。" if language == "zh" else f"{body} {i}." for i in range(9))
    line = body + end.replace("_", " ")
    result = outcome("c4", f"{good}\n{line}", language, c4=C4Config(**config))
    assert isinstance(result, Document) and result.text.startswith(good)
    return result.text != good


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("language, end, expected", [
    (language, end, expected) for table, expected in ((KEPT, True), (CUT, False))
    for language in table for end in table[language].split()])
def test_by_default(language, end, expected, preset):
    assert kept(end, language, preset=preset) == expected


@pytest.mark.parametrize("language, preset", PAPER)
def test_the_list_of_the_paper(language, preset):
    for end in [*KEPT[language].split(), *CUT[language].split(), "'"]:
        # Citations are removed before the end of the line is looked at.
        bare = re.sub(r"\[\d+\]", "", fold_width(end, marks=language == "en"))
        expected = bare[-1:] in [*PAPER[language, preset]] and not bare.endswith("...")
        assert kept(end, language, preset=preset, end_marks="paper") == expected, end


def test_a_single_quote_ends_a_line_for_datatrove():
    for end in ("'", "’"):
        assert kept(end, "en") and not kept(end, "en", preset="tfds")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("end_marks", ["extended", "paper"])
def test_further_marks(language, end_marks):
    for end in (":", "~"):
        assert not kept(end, language, end_marks=end_marks)
        assert kept(end, language, end_marks=end_marks, more_end_marks=(":", "~"))
    assert kept(":”", "en", more_end_marks=(":",)) and kept(":[a]", "en", more_end_marks=(":",))


def test_a_kept_line_is_kept_as_it_is_written():
    line = "Ｏｎｅ ｔｗｏ ｔｈｒｅｅ ｆｏｕｒ ｆｉｖｅ[１２] ｓｉｘ．［ａ］"
    result = outcome("c4", "\n".join([line] * 5))
    assert isinstance(result, Document)
    assert result.text == "\n".join([line.replace("[１２]", "")] * 5)
