"""Recognisers of personal data: check digits and labelled lines."""

import random
import re
from pathlib import Path

import pytest

from data_beam.privacy.card import is_card, luhn
from data_beam.privacy.filter import find
from data_beam.privacy.identity import mod11_2
from data_beam.privacy.spans import Span, without_overlaps


def found(text: str, **options) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start:span.end]) for span in find(text, **options)]


# Check digits.

def test_luhn_exhaustively():
    """Compared with the definition."""
    for payload in range(10_000):
        digits = f"{payload:04d}"
        doubled = "".join(str(2 * int(d)) if i % 2 == 1 else d for i, d in enumerate(digits))
        check = str(-sum(map(int, doubled)) % 10)
        assert [d for d in "0123456789" if luhn(digits + d)] == [check]


def test_mod11_2_exhaustively():
    """Compared with Horner's scheme of ISO/IEC 7064: P <- 2 (P + digit), total 1 modulo 11."""
    rng = random.Random(1)
    for _ in range(10_000):
        digits = "".join(rng.choices("0123456789", k=17))
        remainder = 0
        for digit in digits:
            remainder = 2 * (remainder + int(digit)) % 11
        check = (1 - remainder) % 11
        right = "X" if check == 10 else str(check)
        assert [c for c in "0123456789X" if mod11_2(digits + c)] == [right]


def test_published_numbers():
    # The examples of GB 11643-1999; the second has a birth year of 1880.
    assert mod11_2("11010519491231002X") and mod11_2("11010519491231002x")
    assert mod11_2("440524188001010014") and not mod11_2("440524188001010015")
    assert luhn("79927398713")
    # The test cards of payment processors.
    for card in ("4111111111111111", "378282246310005", "5555555555554444", "6011111111111117",
                 "3530111333300000", "30569309025904", "2223003122003222"):
        assert is_card(card), card
    assert not is_card("4111111111111112") and not is_card("1234567812345670")
    assert not is_card("0000000000000000") and not is_card("411111111111111")


def resident_id(digits: str) -> str:
    return next(digits + c for c in "0123456789X" if mod11_2(digits + c))


def test_only_valid_resident_ids_are_found():
    rng = random.Random(2)
    for _ in range(2_000):
        region = rng.choice(["110101", "440305", "510104", "650102", "820000"])
        number = resident_id(f"{region}{rng.randint(1930, 2015)}{rng.randint(1, 12):02d}"
                             f"{rng.randint(1, 28):02d}{rng.randint(0, 999):03d}")
        text = f"身份证号{number}，请核对"
        assert found(text) == [("resident_id", number)]
        others = [c for c in "0123456789X" if c != number[-1]]
        bad = text.replace(number, number[:-1] + rng.choice(others))
        assert "resident_id" not in [kind for kind, _ in found(bad)]
    good = resident_id("91114419880504123")  # a foreigner's: 9, province, country
    assert found(f"证件号{good}。") == [("resident_id", good)]
    for bad in ("11010119900230123", "99010119900220123"):  # 30 February; no such province
        assert found(f"身份证号{resident_id(bad)}") == []


def with_check_digit(digits: str) -> str:
    return next(digits + c for c in "0123456789" if luhn(digits + c))


@pytest.mark.parametrize("sentence", ["他的号码是{}，已经登记", "see {} for details, please",
                                      "电话：{}；", "call ({})!"])
def test_generated_items_of_every_format_are_found(sentence):
    """Every generated item is found completely and with its kind."""
    rng = random.Random(3)

    def digits(count: int) -> str:
        return "".join(rng.choices("0123456789", k=count))

    for _ in range(300):
        card = with_check_digit((rng.choice(["4", "51", "55", "62"]) + digits(14))[:15])
        mobile = rng.choice(["138", "159", "177", "186", "199", "147"]) + digits(7) + "8"
        american = f"({rng.randint(201, 399)}) {rng.randint(200, 999)}-{digits(4)}"
        items = [
            ("card", card), ("card", "-".join(card[i:i + 4] for i in range(0, 16, 4))),
            ("card", " ".join(card[i:i + 4] for i in range(0, 16, 4))),
            ("phone", f"+86 {mobile}"), ("phone", f"{mobile[:3]}-{mobile[3:7]}-{mobile[7:]}"),
            ("phone", f"{rng.choice(['010', '021', '0571'])}-{rng.randint(2, 8)}{digits(7)}"),
            ("phone", american), ("phone", f"+44 20 7{digits(3)} {digits(4)}"),
            ("email", f"{rng.choice(['li.wei', 'a', 'x_1+y'])}@"
                      f"{rng.choice(['qq.com', 'b.edu.cn'])}"),
            ("ip", f"{rng.choice([101, 114, 223])}.{rng.randint(0, 255)}.{rng.randint(0, 255)}.7"),
            ("ssn", f"{rng.randint(667, 899)}-{rng.randint(1, 99):02d}-{rng.randint(1, 9999):04d}"),
        ]
        for kind, item in items:
            if kind == "ssn" and "电话" in sentence:  # digits after the cue are a telephone number
                kind = "phone"
            assert found(sentence.format(item)) == [(kind, item)]


# Labelled lines: {kind:data}.

LABELLED = (Path(__file__).parent / "labelled_lines.txt").read_text("utf-8")


def test_labelled_lines():
    """51 items of 8 kinds, and lines with look-alikes, in Chinese and English."""
    lines = LABELLED.splitlines()
    assert (len(lines), LABELLED.count("{")) == (58, 51)
    for line in lines:
        text = re.sub(r"\{\w+:(.*?)\}", r"\1", line)
        for span in reversed(find(text)):
            item = f"{{{span.kind}:{text[span.start:span.end]}}}"
            text = text[:span.start] + item + text[span.end:]
        assert text == line


@pytest.mark.parametrize("text", [
    "doi:10.1016/j.cell.2019.11.025", "10.1016/j.cell.2020.1234567", "10.1000/j.mobile.1234567",
    "per cell: 1200000 copies", "per cell: 1200000", "reads per cell: 4155552671 reads",
    "blood cell 4500-11000", "white cell: 4500-11000", "cell 20000 30000",
    "Cell 2019-2020 201-215", "Cell 2019 177 1888-1902", "Mobile 2019 12 345-360",
    "fax 2019-2020", "fax 2019–2020", "fax 2019-20 201-215", "phone 1998 - 2003",
    "电话 2020-12-31", "电话：2020.12.31", "電話 2020 12 31", "传真 2019.11-2020.05",
    "Tel: 31.12.2020", "phone 4500-11000", "phone 12-31-2020",
    "电话２０２０－１２－３１", "手机 20201231", "手机20201231-20210101",
    "mobile 1234567 units", "mobile 1234567 new subscribers", "phone 1234567 per year",
    "手机1234567部", "手机 1234567 台", "电话1234567户", "电话 1234567 人", "mobile 1234567/km",
    "mobile 3.1415926", "手机 1999.00 2999.00",
])
def test_dates_and_amounts_after_a_telephone_cue_are_not_found(text):
    assert found(text) == []


@pytest.mark.parametrize("text, number", [
    ("cell: {}", "415-555-2671"), ("Cell: {}", "4155552671"), ("cell: {}", "07911 123456"),
    ("my cell phone {}", "5551234567"), ("cell phone: {}", "555-2671"), ("cell no. {}", "555-2671"),
    ("cellphone {}", "07911123456"), ("cell #{}", "1 415 555 2671"), ("cell: {}", "13800138000"),
    ("cell {}", "(415) 555-2671"), ("我的cell是{}", "13800138000"),
    ("fax {}", "2525 2838"), ("Fax: {}", "01.42.68.53.00"),
    ("phone {} per Marie", "555-2671"), ("phone {} customers only", "555-2671"),
    ("mobile: {} (2019)", "1234567"),
    ("mobile {} now", "5551234567"), ("Office/Mobile: {}", "5551234567"), ("tel.{}", "62345678"),
    ("电话{}位于北京", "62345678"), ("电话{}人工服务", "62345678"), ("电话{}部门经理", "62345678"),
    ("手机{}，2020年", "13800138000"), ("电话 2020-12-31 手机{}", "13912345678"),
    ("電話：{}台北", "22345678"), ("香港电话 {}", "2815 1234"), ("电话：{}", "2019 5678"),
])
def test_numbers_after_a_telephone_cue_are_found(text, number):
    assert found(text.format(number)) == [("phone", number)]


@pytest.mark.parametrize("text, numbers", [
    ("监督电话：2765432、2766353", ["2765432", "2766353"]),
    ("电话：62345678；62345679，62345680", ["62345678", "62345679", "62345680"]),
    ("联系电话 2765432（白天）、2766353（夜间）", ["2765432", "2766353"]),
    ("Tel: 7654321 / 7654322 or 7654323", ["7654321", "7654322", "7654323"]),
    ("传真:2765432\n2766353", ["2765432", "2766353"]),
    ("Tel: (020) 7946 0958, (020) 7946 0959", ["(020) 7946 0958", "(020) 7946 0959"]),
    ("热线：400-800-1234、62345678", ["62345678"]),  # a toll-free number does not end the list
    ("电话：2765432，邮编：100083", ["2765432"]),
    ("电话：2765432、20191231、2766353", ["2765432"]),
    ("Tel: 7654321, 1234567 units", ["7654321"]),
    ("电话：2765432、2766353元", ["2765432"]),
])
def test_a_cue_covers_a_list_of_telephone_numbers(text, numbers):
    assert found(text) == [("phone", number) for number in numbers]


@pytest.mark.parametrize("text, kind, item", [
    ("港澳通行证{}", "passport", "C12345678"),
    ("往来港澳通行證號碼：{}。", "passport", "W12345678"),
    ("港澳通行证{}", "passport", "CA1234567"), ("回乡证号{}", "passport", "H1234567801"),
    ("往来台湾通行证：{}", "passport", "T12345678"), ("台胞证 {}", "passport", "L12345678"),
    ("Mainland Travel Permit No. {}", "passport", "M12345678"),
    ("通行证号码{}", "passport", "Ｃ１２３４５６７８"),
    ("邮箱{}，谢谢", "email", "li_si＠例子.com"), ("联系{}。", "email", "li_si@例子.中国"),
    ("发到{}即可", "email", "wang@邮件.例子.公司"), ("Mail {}, please", "email", "info@münchen.de"),
    ("发到{}联系我", "email", "a.b@例子.com"), ("to {} now", "email", "a@xn--fsqu00a.xn--fiqs8s"),
    ("to {} now", "email", "a@xn--fsqu00a.com"), ("发到{}联系我", "email", "a@例子.com.cn"),
    ("邮箱{}网址www.x.com", "email", "a@b.com"), ("邮箱{}网址www.x.com", "email", "a@例子.com"),
])
def test_travel_permits_and_international_domains(text, kind, item):
    assert found(text.format(item)) == [(kind, item)]


@pytest.mark.parametrize("text", [
    "型号C12345678", "证书编号H12345678", "通行证共12345678张", "通行证型号XC123456789",
    "a@张三：你好.com", "转发a@张三 去看baidu.com", "foo@装饰器.py", "RT v@小王.哈哈",
    "x@变量.net(1)",
])
def test_look_alikes_of_permits_and_domains_are_not_found(text):
    assert found(text) == []


def test_the_longest_of_overlapping_spans_is_kept():
    assert found("13912345678@163.com") == [("email", "13912345678@163.com")]
    rank = {"a": 0, "b": 1}
    assert without_overlaps([Span(0, 4, "b"), Span(3, 9, "b"), Span(8, 12, "a")], rank) == [
        Span(3, 9, "b")]
    assert without_overlaps([Span(0, 4, "b"), Span(0, 4, "a"), Span(4, 5, "b")], rank) == [
        Span(0, 4, "a"), Span(4, 5, "b")]
