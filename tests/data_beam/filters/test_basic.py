"""Empty, short and menu-like texts."""

import pytest

from data_beam.clean.conversions import display_width
from data_beam.config import FilterConfig
from data_beam.filters.basic import reason_to_drop

RULES = FilterConfig(min_characters=10, short_line_width=30, max_short_line_fraction=0.67)


@pytest.mark.parametrize("text, reason", [
    ("", "empty after extraction"), (" ", "empty after extraction"),
    ("\n", "empty after extraction"), ("\u3000\t\n ", "empty after extraction"),
    ("word", "too short"), ("a b c d e f g h i", "too short"),
    ("x" * 10_000_000, None),
    ("\n".join(["Home"] * 20), "short lines"),
    ("\n".join(["首页", "关于我们", "联系方式", "新闻中心", "产品介绍"]), "short lines"),
])
def test_every_text_gets_a_decision(text, reason):
    failed = reason_to_drop(text, False, RULES)
    assert (failed and failed[0]) == reason


def test_the_share_of_short_lines_is_exact():
    long, short = "a line that is certainly longer than thirty columns", "short"
    # 2 of 3 is 0.667, under 0.67; 21 of 31 is 0.677, over it.
    assert reason_to_drop("\n\n".join([short] * 20 + [long] * 10), False, RULES) is None
    failed = reason_to_drop("\n\n".join([short] * 21 + [long] * 10), False, RULES)
    assert failed == ("short lines", "0.677 of the lines, more than 0.67")
    assert reason_to_drop("\n".join([short] * 21), True, RULES) is None  # code has short lines


def test_chinese_lines_are_measured_in_columns():
    # 16 Han characters are 32 columns: a sentence, not a menu entry.
    text = "\n".join(["天下大势分久必合合久必分周末七国"] * 10)
    assert reason_to_drop(text, False, RULES) is None
    assert list(map(display_width, ("中文ab", "e\u0301", "，"))) == [6, 1, 2]
