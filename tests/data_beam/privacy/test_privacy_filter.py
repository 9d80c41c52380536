"""The privacy filter: actions, placeholders, masked quotes, and the user's name recogniser."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import DeadLetter, Document, Dropped, Origin, text_sha256
from data_beam.config import PrivacyConfig
from data_beam.filters.chain import judge
from data_beam.privacy.filter import PrivacyFilter, find
from maxlm.config.schema import ConfigError, build

RESIDENT_ID = "11010519491231002X"


def document(text: str) -> Document:
    return Document(Origin("s", "p"), text, "general", "MIT", "", "zh", 0.9, text_sha256(text),
                    "0" * 64, ("extract:html",))


def privacy_filter(**fields) -> PrivacyFilter:
    return PrivacyFilter(build(PrivacyConfig, {"enabled": True, **fields}, "config.privacy"))


def redact(text: str, **fields) -> str:
    outcome = privacy_filter(**fields)(document(text))
    assert isinstance(outcome, Document)
    return outcome.text


def test_parts_of_items_are_masked_in_quotes():
    item, address = RESIDENT_ID, "zhang.san@example.org"
    text = f"他的身份证号码是{item}，住在北京。 Mail {address.title()} or call."
    for start, whole in ((text.index(item), item), (text.index("Zhang"), address)):
        for first in range(-3, len(whole) - 5):
            for last in range(max(first, 0) + 5, len(whole) + 3):
                quote = f"0.25, limit 0.2 '{text[start + first:start + last].lower()}…'"
                shown = privacy_filter().masked_quote(quote, text)
                assert shown.startswith("0.25, limit 0.2 '") and shown.endswith("…'")
                assert not any(whole[i:i + 5] in shown for i in range(len(whole) - 4)), quote
    harmless = "0.25 '他的身份证号码是'"
    assert privacy_filter().masked_quote(harmless, text) == harmless
    kept = f"'{item[:12]}'"
    assert privacy_filter(resident_id="keep").masked_quote(kept, text) == kept


def test_actions_differ_by_kind():
    text = "邮箱a@b.com，电话13912345678。"
    kept = privacy_filter(email="keep")(document(text))
    assert isinstance(kept, Document)
    assert kept.text == "邮箱a@b.com，电话[PHONE]。"
    assert kept.scores == {"pii/email": 1.0, "pii/phone": 1.0}
    assert kept.transforms[1:] == ("privacy:phone=1",)
    dropped = privacy_filter(phone="drop")(document(text))
    assert dropped == Dropped(Origin("s", "p"), "privacy", "personal data",
                              "phone=1: '邮箱[EMAIL]，电话[PHONE]。'")
    assert redact(text, phone="drop", drop_over=1) == "邮箱[EMAIL]，电话[PHONE]。"
    dropped = privacy_filter(phone="drop", email="drop", drop_over=1)(document(text))
    assert isinstance(dropped, Dropped) and dropped.detail.startswith("email=1, phone=1: ")


@pytest.mark.parametrize("kind, item, placeholder", [
    ("email", "a@b.com", "[EMAIL]"), ("phone", "13912345678", "[PHONE]"),
    ("resident_id", RESIDENT_ID, "[ID]"), ("ssn", "123-45-6789", "[ID]"),
    ("card", "4111111111111111", "[CARD]"), ("ip", "114.114.114.114", "[IP]"),
    ("passport", "护照E12345678", "护照[PASSPORT]"), ("plate", "京A12345", "[PLATE]"),
])
def test_each_kind_has_its_own_action(kind, item, placeholder):
    text = f"他的{item}，"
    assert redact(text) == f"他的{placeholder}，"
    assert redact(text, **{kind: "keep"}) == text
    assert isinstance(privacy_filter(**{kind: "drop"})(document(text)), Dropped)


def test_private_addresses_are_replaced_on_request():
    assert redact("at 192.168.1.1") == "at 192.168.1.1"
    assert redact("at 192.168.1.1", private_addresses=True) == "at [IP]"


PIECES = [
    "a@b.com", "13912345678", "010-62345678", "11010519491231002X", "4111 1111 1111 1111",
    "京A12345", "8.8.8.8", "123-45-6789", "+44 20 7946 0958", "护照E12345678", "tel:", "[EMAIL]",
    "2001:4860:4860::8888", "电话", " ", ".", "-", "1", "@", "x", "，", "(", "+86", "\n", "IP ",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join))
def test_running_twice_changes_nothing(text):
    apply = privacy_filter()
    once = apply(document(text))
    assert isinstance(once, Document)
    assert apply(once).text == once.text
    assert find(once.text) == []


@pytest.mark.parametrize("piece", [
    "1", "1 ", "a@", "@", "a@a.", "1.1.1.1.", "-1", "+1 ", "京A", "a", "(at)", "a@例.", "a@例",
    "cell: ", "回乡证H1234567", "passport E1234567",
    "2001:", "0571-", "138 0013 ", "4111 1111 ", "(", "电话", "x.", "身份证", " at x dot x", "a%",
])
def test_adversarial_lines_take_linear_time(piece):
    """A line of half a million characters; quadratic time would exceed the timeout."""
    outcome = privacy_filter()(document(piece * (500_000 // len(piece))))
    assert isinstance(outcome, Document)


@pytest.mark.parametrize("text", ["", " ", "\n", "一", "\ud800@\udfff.com", "\0", "@", "1"])
def test_every_text_gets_an_outcome(text):
    assert find(text) == []
    if not any("\ud800" <= character <= "\udfff" for character in text):
        clean = document(text)
        assert privacy_filter()(clean) is clean


# Names.

RECOGNISER = """
def people(text):
    return [(m, m + 2) for m in range(len(text)) if text.startswith("张伟", m)]

wrong = lambda text: [(0, len(text) + 1)]
words = lambda text: ["张伟"]

def fails_on_tea(text):
    if "茶" in text:
        raise RuntimeError("no model for tea")
    return []

def exits_on_tea(text):
    if "茶" in text:
        raise SystemExit(3)
    return []

def exits(text):
    raise SystemExit(3)

constant = 3
"""


@pytest.fixture
def recogniser(tmp_path, monkeypatch) -> Iterator[str]:
    name = f"recogniser_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(RECOGNISER, encoding="utf-8")
    (tmp_path / f"{name}_broken.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def test_names_from_a_users_function(recogniser):
    apply = privacy_filter(name_recogniser=f"{recogniser}:people")
    outcome = apply(document("张伟和张伟的邮箱a@b.com"))
    assert isinstance(outcome, Document)
    assert outcome.text == "[NAME]和[NAME]的邮箱[EMAIL]"
    assert outcome.scores == {"pii/email": 1.0, "pii/name": 2.0}
    kept = privacy_filter(name_recogniser=f"{recogniser}:people", name="keep")(document("张伟"))
    assert isinstance(kept, Document) and kept.text == "张伟" and kept.scores == {"pii/name": 1.0}


def test_a_failing_recogniser_gives_a_dead_letter(recogniser):
    apply = privacy_filter(name_recogniser=f"{recogniser}:fails_on_tea")
    [(_, outcome)] = judge(document("茶"), [apply])
    assert outcome == DeadLetter(
        Origin("s", "p"), "privacy", "failed",
        f"RuntimeError: config.privacy.name_recogniser: '{recogniser}:fails_on_tea' raised "
        "RuntimeError: no model for tea")
    assert isinstance(apply(document("水")), Document)
    apply = privacy_filter(name_recogniser=f"{recogniser}:exits_on_tea")
    [(_, outcome)] = judge(document("茶"), [apply])
    assert isinstance(outcome, DeadLetter) and "raised SystemExit: 3" in outcome.detail


@pytest.mark.parametrize("function, message", [
    ("people", "must be written module:function"),
    ("no_such_module_x:f", "No module named 'no_such_module_x'"),
    ("{module}:nobody", "has no function 'nobody'"),
    ("{module}:constant", "has no function 'constant'"),
    ("{module}_broken:f", "ZeroDivisionError"),
    ("{module}:wrong", "it must return (start, end) pairs within the text"),
    ("{module}:exits", "raised SystemExit: 3"),
    ("{module}:words", "returned '张伟'"),
])
def test_an_invalid_recogniser_raises_at_start(recogniser, function, message):
    with pytest.raises(ConfigError) as caught:
        privacy_filter(name_recogniser=function.format(module=recogniser))
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.privacy.name_recogniser: ")


def test_invalid_settings_raise():
    with pytest.raises(ConfigError, match=r"config\.privacy\.enabled"):
        build(PrivacyConfig, {"email": "drop"}, "config.privacy")
    with pytest.raises(ConfigError, match="did you mean 'placeholder'"):
        build(PrivacyConfig, {"enabled": True, "email": "placeholders"}, "config.privacy")
