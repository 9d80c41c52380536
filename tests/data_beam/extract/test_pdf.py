"""PDF to text: reading order, paragraphs, what surrounds the text, and files that hold none."""

import itertools
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.config import ExtractConfig
from data_beam.extract import pdf
from data_beam.extract.errors import ExtractionError, NoText, check_garbled
from data_beam.extract.pdf_text import Words, check_order
from tests.data_beam.broken_files import broken
from tests.data_beam.extract.pdf_files import (
    CHINESE,
    HEIGHT,
    JAPANESE,
    WIDTH,
    both,
    columns,
    lines,
    make,
    wrapped,
)

ENGLISH = ("Tea was first drunk in China, and spread along the trade routes to the whole of Asia. "
           "Merchants carried it in bricks over the mountains, and monks drank it to stay awake "
           "through long nights of meditation. By the ninth century a poet had written a whole "
           "book about how the leaves are grown, dried and brewed.")
SECOND = ("Coffee came from another continent, and for some hundred years the two drinks "
          "shared the same ports and the same warehouses. Prices were posted every morning on a "
          "board beside the harbour, where clerks copied them into their books before noon.")
HAN = ("茶起源于中国，后来传到世界各地，成为人们日常的饮料。商人把茶压成砖，翻过高山运到草原；"
       "僧人饮茶，以便在长夜里保持清醒。到了九世纪，已经有诗人写了一整本书，讲怎样种茶、焙茶和煮茶。")


FIRST_LINES, SECOND_LINES = wrapped(ENGLISH, 400), wrapped(SECOND, 400)
HAN_LINES = wrapped(HAN, 400, CHINESE)
BODY = lines(FIRST_LINES)


def extract(data: bytes, **options) -> tuple[str, tuple[str, ...]]:
    return pdf.text(data, ExtractConfig(**options))


def test_lines_become_paragraphs_english_with_a_space_and_chinese_without():
    data = make(both(
        lines(["The history of tea"], y=780, size=18), lines(FIRST_LINES, y=740),
        lines(SECOND_LINES, y=740 - 12 * len(FIRST_LINES) - 10),
        lines(HAN_LINES, y=600, font=CHINESE, leading=14)))
    text, done = extract(data)
    assert text.split("\n\n") == ["The history of tea", ENGLISH, SECOND, HAN]
    assert done == ("extract:pdf",)


def test_a_first_line_indent_begins_a_paragraph():
    y = 760 - 12 * len(FIRST_LINES)
    data = make(both(BODY, lines(SECOND_LINES[:1], x=92, y=y), lines(SECOND_LINES[1:], y=y - 12)))
    assert extract(data)[0].split("\n\n") == [ENGLISH, SECOND]


@pytest.mark.parametrize("font, leading, texts", [
    ("Helvetica", 12, (ENGLISH, SECOND)), (CHINESE, 14, (HAN, HAN[::-1]))])
def test_two_columns_are_read_one_after_the_other_however_they_were_drawn(font, leading, texts):
    columns = [wrapped(text, 210, font) for text in texts]

    def row_by_row(canvas):
        lines(["A title that reaches over both of the columns of the page"], size=16, y=790)(canvas)
        canvas.setFont(font, 10)
        for number, row in enumerate(itertools.zip_longest(*columns, fillvalue="")):
            for x, line in zip((60, 300), row, strict=True):
                canvas.drawString(x, 750 - number * leading, line)

    got = extract(make(row_by_row))[0].split("\n\n")
    assert got[0].startswith("A title that reaches")
    assert "".join(got[1:]).replace(" ", "") == "".join(texts).replace(" ", "")


def test_running_headers_footers_and_page_numbers_go():
    body = wrapped(f"{ENGLISH} {SECOND}", 400)

    def page(number):
        return both(
            lines([f"CHAPTER {number // 3} - section {'abcdefgh'[number]}"], y=810, size=9),
            lines([f"{word} {number} {line}" for word, line in zip(
                ("One", "Two", "Six", "Ten") * 3, body, strict=False)], y=760),
            lines(["Copyright of the tea company"], y=60, size=8),
            lines([str(number + 1)], x=WIDTH / 2, y=40, size=9))

    data = make(*map(page, range(8)))
    text, done = extract(data)
    assert done == ("extract:pdf", "page_edges")
    assert "CHAPTER" not in text and "tea company" not in text
    for number in range(8):
        assert f"One {number} " in text and f"Ten {number} " in text
    assert not [line for line in text.split("\n") if line.strip().isdigit()]
    kept, done = extract(data, repeated_edge_lines=False)
    assert done == ("extract:pdf",)
    assert kept.count("CHAPTER") == 8 and kept.count("tea company") == 8


@pytest.mark.parametrize("number", ["7", "- 7 -", "Page 7 of 9", "第 7 页", "第7页 共9页"])
def test_the_page_number_of_a_single_page_goes(number):
    data = make(both(BODY, lines([number], x=280, y=40, font=CHINESE)))
    assert extract(data)[0] == ENGLISH


def test_a_paragraph_goes_on_over_a_page_break():
    rows = wrapped(f"{ENGLISH} {SECOND}", 400)
    data = make(lines(rows[:4]), lines(rows[4:]))
    assert rows[4][0].islower()  # or nothing could tell
    assert extract(data)[0] == f"{ENGLISH} {SECOND}"
    two_pages = [lines(part, font=CHINESE) for part in (HAN_LINES[:2], HAN_LINES[2:])]
    assert extract(make(*two_pages))[0] == HAN


def test_divided_words_are_put_together_and_hyphens_that_belong_stay():
    text = extract(make(lines([
        "The well-known author of the docu-",
        "ment wrote about the well-",
        "known UTF-",
        "8 encoding and state-of-the-",
        "art extraction, and about inter-",
        "national trade and international law."])))[0]
    assert text == ("The well-known author of the document wrote about the well-known UTF-8 "
                    "encoding and state-of-the-art extraction, and about international trade and "
                    "international law.")


@pytest.mark.parametrize("left, right, joined", [
    ("a docu-", "ment", "a document"),
    ("co-", "operate now", "co-operate now"),  # the document has it with a hyphen, twice
    ("re-", "create", "recreate"),  # both ways, more often without
    ("DEST-", "DIR", "DESTDIR"),  # known without
    ("Jean-", "Paul", "Jean-Paul"),
    ("docu\xad", "ment", "document"),
    ("range 1-", "2", "range 1-2"),
    ("a dash -", "then", "a dash -then"),
])
def test_hyphens(left, right, joined):
    words = Words(["co-operate cooperate co-operate", "recreate re-create recreate", "DESTDIR"])
    assert words.join(left, right) == joined


TABLE = [("Leaf", "Origin", "Price"), ("green", "Zhejiang", "12.40"), ("black", "Anhui", "8.15"),
         ("white", "Fujian", "31.00")]


def draw_table(rows, columns):
    def draw(canvas):
        canvas.setFont("Helvetica", 10)
        for number, row in enumerate(rows):
            for x, cell in zip(columns(number), row, strict=True):
                canvas.drawString(x, 600 - 14 * number, cell)

    return both(BODY, draw)


def test_a_table_keeps_its_rows_and_a_garbled_one_goes():
    good = make(draw_table(TABLE, lambda number: (72, 200, 320)))
    text, done = extract(good)
    assert text == ENGLISH + "\n\n" + "\n".join("\t".join(row) for row in TABLE)
    assert done == ("extract:pdf",)
    bad = make(draw_table(TABLE, lambda number: (72 + 31 * number, 200 + 47 * (number % 2) + number,
                                                 380 - 37 * number)))
    text, done = extract(bad)
    assert text == ENGLISH and done == ("extract:pdf", "garbled_tables=1")
    assert "Zhejiang" in extract(bad, drop_garbled_tables=False)[0]


def test_program_text_keeps_its_lines_and_indentation():
    code = ["def brew(leaves):", "    if leaves:", "        return leaves - 1"]
    data = make(both(BODY, lines(code, y=600, font="Courier")))
    assert extract(data)[0] == ENGLISH + "\n\n" + "\n".join(code)


def test_list_items_stay_apart_and_their_lines_together():
    items = wrapped("• " + ENGLISH, 300), wrapped("• " + SECOND, 300)
    y, draws = 760, []
    for item in items:
        draws += [lines(item[:1], y=y), lines(item[1:], x=79, y=y - 12)]
        y -= 12 * len(item)
    assert extract(make(both(*draws)))[0].split("\n\n") == ["• " + ENGLISH, "• " + SECOND]


def test_text_at_an_angle_is_left_out():
    def stamp(canvas):
        canvas.rotate(90)
        canvas.drawString(200, -30, "arXiv stamp")

    assert extract(make(both(BODY, stamp)))[0] == ENGLISH


TRADITIONAL = (
    "茶起源於中國，後來傳到世界各地，成為人們日常的飲料。商人把茶壓成磚，翻過高山運到草原；"
    "僧人飲茶，以便在長夜裡保持清醒。到了九世紀，已經有詩人寫了一整本書，講怎樣種茶。")
CAT = ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗い所で"
       "ニャーニャー泣いていた事だけは記憶している。吾輩はここで始めて人間というものを見た。")


@pytest.mark.parametrize("draw, text", [
    (columns(CAT, JAPANESE), CAT), (columns(CAT, f"{JAPANESE} vertical", length=20), CAT),
    (columns(TRADITIONAL), TRADITIONAL), (columns(TRADITIONAL, f"{CHINESE} vertical"), TRADITIONAL),
    (columns(TRADITIONAL, by_row=True), TRADITIONAL),
    (columns(CAT, JAPANESE, pitch=1.3, leading=2.4, length=17), CAT),  # set wide
    (columns(CAT, JAPANESE, leading=1.4, size=9, length=40, y=800), CAT),  # and close
    # Two tiers of lines, read one after the other, though drawn in the other order.
    (both(columns(TRADITIONAL * 2, length=22, y=400), columns(CAT * 2, JAPANESE, length=22)),
     f"{CAT * 2} {TRADITIONAL * 2}"),
    # A horizontal title and page number stay outside, small kana beside the line are left out.
    (both(lines(["第一章　茶の歴史"], y=800, font=JAPANESE), columns(CAT, JAPANESE),
          columns("わがはい", JAPANESE, x=513, size=5), lines(["12"], x=280, y=40)),
     f"第一章\u3000茶の歴史 {CAT}"),
])
def test_vertical_text_is_read_down_the_lines_from_the_right(draw, text):
    assert extract(make(draw))[0].replace("\n\n", " ") == text


def test_letters_on_their_side_belong_to_vertical_text():
    def on_their_side(canvas):
        canvas.translate(503, 760 - 12 * 10 + 12)
        canvas.rotate(-90)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(0, 0, "TEA")

    data = make(both(columns(CAT[:10], JAPANESE), columns(CAT[10:26], JAPANESE, y=760 - 12 * 12),
                     columns(CAT[26:], JAPANESE, x=500 - 21.6, length=29), on_their_side))
    assert extract(data)[0] == f"{CAT[:10]}TEA{CAT[10:]}"


LABELS = ["Cholera due to Vibrio cholerae", "Typhoid fever", "Paratyphoid fever A",
          "Salmonella enteritis", "Amoebiasis, unspecified", "Tuberculosis of lung"]
CODES = ["A00.0", "A01.0", "A01.1", "A02.0", "A06.9", "A15.0"]
HAN_LABELS = [
    "霍乱由霍乱弧菌引起的疾病说明书", "伤寒以及其他沙门菌引起的疾病", "甲型以及乙型副伤寒的疾病",
    "沙门菌肠炎以及其他细菌的感染", "阿米巴病未特指以及其他的疾病", "肺结核经显微镜检查痰证实"]
DIGESTS = [f"9f86d081884c7d659a2feaa0c55ad015a3bf4f{number:02d}" for number in range(6)]


@pytest.mark.parametrize("left, right", [
    (LABELS, CODES), (CODES, LABELS), (HAN_LABELS, CODES),
    ([label[:3] for label in HAN_LABELS], CODES),
    ([f"Checksum of the release {label}" for label in CODES], DIGESTS),
    (HAN_LABELS, [f"GB/T 15834-2011-{number}" for number in range(6)]),
    (["bin", "boot", "dev", "etc", "home", "lib"], LABELS)])
@pytest.mark.parametrize("by_row", [True, False])
def test_labels_stay_with_their_codes(left, right, by_row):
    cells = [lines([text], x=x, y=760 - 14 * i, font=CHINESE)
             for x, texts in ((72, left), (300, right)) for i, text in enumerate(texts)]
    if by_row:
        cells = [cell for pair in zip(cells[:6], cells[6:], strict=True) for cell in pair]
    rows = map("\t".join, zip(left, right, strict=True))
    assert extract(make(both(*cells)))[0] == "\n".join(rows)


def test_a_label_of_two_lines_has_one_code():
    left = [LABELS[0], "Typhoid fever with", "other complications", *LABELS[2:4]]
    right = [CODES[0], CODES[1], "", *CODES[2:4]]
    assert extract(make(both(lines(left), lines(right, x=300))))[0].split("\n") == [
        f"{LABELS[0]}\tA00.0", "Typhoid fever with other complications\tA01.0",
        f"{LABELS[2]}\tA01.1", f"{LABELS[3]}\tA02.0"]


def test_numbered_items_and_contents_are_no_labels_with_codes():
    items = both(lines(["1.", "2.", "3."]), lines(LABELS[:3], x=100))
    assert extract(make(items))[0].split("\n\n") == [
        f"{number}. {label}" for number, label in enumerate(LABELS[:3], 1)]
    contents = both(lines(LABELS[:4]), lines([f". . . . . . . . {i}" for i in range(4)], x=300))
    assert "\t" not in extract(make(contents))[0]


SPACED = " ".join(HAN)


@pytest.mark.parametrize("text, share", [
    (SPACED, 1.0), (" ".join("The letters of this line are set far from each other".replace(" ", "")
                             ), 1.0), (SPACED[:40] + HAN, 20 / (20 + 85)), (HAN, 0.0),
    (ENGLISH, 0.02), ("I am a man, a b c d e f g h", 0.0), ("\t".join("是否有无" * 9), 0.0)])
def test_the_share_of_scattered_characters(text, share):
    check_order(text, max(share, 0.2))
    if share > 0.1:
        with pytest.raises(NoText, match="scattered characters"):
            check_order(text, share - 0.03)


def test_text_set_letter_by_letter_is_dropped_with_a_reason():
    def spread(canvas):
        canvas.setFont(CHINESE, 12)
        for number, letter in enumerate(TRADITIONAL):
            canvas.drawString(60 + number % 12 * 40, 760 - number // 12 * 40, letter)

    with pytest.raises(NoText, match="scattered characters"):
        extract(make(spread))
    assert extract(make(spread), max_scattered_fraction=1.0)[0]


def test_fonts_without_unicode_are_set_aside_as_garbled():
    data = make(lines(wrapped(HAN * 3, 400, CHINESE), font=CHINESE), pageCompression=0)
    # An encoding that says nothing of characters.
    changed = data.replace(b"/Encoding /UniGB-UCS2-H", b"/Encoding /Identity-H     ")
    with pytest.raises(NoText, match="garbled text"):
        extract(changed)


@pytest.mark.parametrize("text, share", [
    ("(cid:12)(cid:3) (cid:99)", 1.0), ("\ufffd" * 5 + "a" * 95, 0.05), ("\ue000b" * 10, 0.5),
    ("clean", 0.0), ("干净的中文", 0.0), ("a (cid:7) b" + "c" * 91, 0.07)])
def test_the_share_of_garbled_characters(text, share):
    """Counted by hand; the gate is exclusive: a share equal to the limit stays."""
    check_garbled(text, share)
    if share:
        with pytest.raises(NoText, match="garbled text"):
            check_garbled(text, share - 0.001)


def test_files_that_cannot_be_read_say_why():
    good = make(*[BODY] * 3)
    for data, reason in ((make(lines(["secret"]), encrypt="password"), "encrypted PDF"),
                         (b"%PDF-1.4\nnothing", "damaged PDF"), (b"no pdf", "damaged PDF")):
        with pytest.raises(ExtractionError) as caught:
            extract(data)
        assert caught.value.reason == reason
    with pytest.raises(ExtractionError, match="too many pages: 3, more than 2"):
        extract(good, max_pages=2)
    with pytest.raises(ExtractionError, match=r"took too long: 1e-09 s passed at page 1 of 3"):
        extract(good, max_seconds=1e-9)


def test_a_damaged_page_does_not_lose_the_file():
    data = make(lines(["The first page."]), lines(["The second page."]), lines(["The third page."]))
    number = re.findall(rb"/Kids \[ (\d+) 0 R (\d+) 0 R", data)[0][1]
    broken = data.replace(b"\n" + number + b" 0 obj\n<<", b"\n" + number + b" 0 obj\n((")
    assert broken != data
    assert extract(broken) == ("The first page.\n\nThe third page.",
                               ("extract:pdf", "pdf:missing_pages=1"))


def test_threads_take_turns():
    data = make(*[both(BODY, lines(SECOND_LINES, y=400))] * 6)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(extract, [data] * 4)] == [extract(data)] * 4


def test_pages_of_scattered_letters_end_in_bounded_time():
    """A minute is far above what they take (2 s here): what grows with a square takes many."""
    rng = random.Random(0)

    def scattered(canvas):
        canvas.setFont("Helvetica", 4)
        for _ in range(15_000):
            canvas.drawString(rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT), "x")

    def one_line(canvas):
        canvas.setFont("Helvetica", 4)
        for number in range(15_000):
            canvas.drawString(number * 7 - 40_000, 400 + rng.random(), "y")

    def far_away(canvas):
        for number in range(100):
            canvas.drawString(number * 1e7 - 5e8, 700 - number * 1e6, "far away")

    began = time.monotonic()
    for draw in (scattered, one_line, far_away):
        try:
            extract(make(draw))
        except NoText as error:
            assert error.reason in ("no text layer", "scattered characters")
    assert time.monotonic() - began < 60


def test_columns_inside_columns_and_lines_across_in_the_middle():
    left, right = wrapped(ENGLISH, 210), wrapped(SECOND, 210)
    middle = wrapped(f"{ENGLISH} {ENGLISH}", 480)
    y = 780 - 12 * max(len(left), len(right)) - 20
    below = y - 12 * len(middle) - 20
    data = make(both(lines(right, x=310, y=780), lines(left, x=60, y=780), lines(middle, x=60, y=y),
                     lines(right, x=60, y=below), lines(left, x=310, y=below)))
    assert extract(data)[0].replace("\n\n", " ") == " ".join(
        [ENGLISH, SECOND, ENGLISH, ENGLISH, SECOND, ENGLISH])
    three = make(*[both(*[lines(wrapped(text, 140), x=x)
                          for text, x in ((SECOND, 420), (ENGLISH, 40), (ENGLISH, 230))])])
    assert extract(three)[0].replace("\n\n", " ") == " ".join([ENGLISH, ENGLISH, SECOND])


GOOD = make(both(lines(wrapped(ENGLISH, 210)), lines(wrapped(HAN, 210, CHINESE), x=320,
                                                     font=CHINESE)), lines(["7"], y=HEIGHT - 20))


@settings(max_examples=150, deadline=None)
@given(st.one_of(broken(GOOD), st.binary(max_size=300).map(lambda data: b"%PDF-1.7\n" + data)))
def test_damaged_files_end_as_text_or_with_a_reason(content):
    """Cuts and flips of a good file, and bytes that only begin like one."""
    try:
        text, done = extract(content, max_seconds=20.0)
    except (ExtractionError, NoText) as error:
        assert error.reason
    else:
        assert isinstance(text, str) and done[0] == "extract:pdf"
