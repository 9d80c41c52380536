"""What must not be in a corpus: other licences, personal data, evaluation sets, spam, nonsense."""

import json

from tests.data_beam.mini_corpus import topics
from tests.data_beam.mini_corpus.corpus import FREE, MiniCorpus, Rows, dropped, kept


def add(corpus: MiniCorpus) -> None:
    licences(corpus)
    with corpus.rows("rows/privacy.jsonl") as rows:
        personal_data(corpus, rows)
        no_personal_data(corpus, rows)
    contamination(corpus)
    nonsense(corpus)
    spam(corpus)


def licences(corpus: MiniCorpus) -> None:
    """An allow-list of SPDX names; what nobody knows is dropped, with a reason of its own."""
    with corpus.rows("rows/licences.jsonl") as rows:
        for licence in ("CC-BY-4.0", "CC BY 3.0", "cc0-1.0", "MIT License", "Apache License 2.0",
                        "https://creativecommons.org/licenses/by/4.0/", "MIT OR GPL-3.0-only",
                        "Apache-2.0 WITH LLVM-exception", "署名 4.0"):
            rows.add(corpus.english.text(), kept("en", licence=licence, why=licence),
                     licence=licence)
        for licence in ("CC-BY-NC-4.0", "CC BY-SA 4.0", "GPL-3.0-or-later", "AGPL-3.0-only",
                        "MIT AND GPL-2.0-only", "CC-BY-ND-4.0", "署名-非商业性使用 4.0"):
            rows.add(corpus.chinese.text(), dropped("licence", "licence not allowed", why=licence),
                     licence=licence)
        rows.add(corpus.english.text(), kept("en", licence=FREE, why="blank: that of the source"),
                 licence=" ")
        for licence in ("all rights reserved", "see website", "BSD", "版权所有", "CC", "MITT"):
            rows.add(corpus.english.text(), dropped("licence", "licence unknown", why=licence),
                     licence=licence)


def luhn_completed(digits: str) -> str:
    """The digits and the one that makes their Luhn sum a multiple of ten."""
    for last in "0123456789":
        total = 0
        for place, digit in enumerate((digits + last)[::-1]):
            value = int(digit) * (1 + place % 2)
            total += value - 9 * (value > 9)
        if total % 10 == 0:
            return digits + last
    raise AssertionError


def resident_id(first: str) -> str:
    """17 digits and their check character, by the sum of GB 11643-1999."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return first + "10X98765432"[sum(int(d) * w for d, w in zip(first, weights, strict=True)) % 11]


def off_by_one(number: str) -> str:
    """The number with a wrong last digit."""
    return number[:-1] + str((int(number[-1]) + 1) % 10 if number[-1] != "X" else 3)


PLACEHOLDERS = {"email": "[EMAIL]", "phone": "[PHONE]", "ssn": "[ID]", "resident_id": "[ID]",
                "card": "[CARD]", "plate": "[PLATE]", "ip": "[IP]"}


def personal_data(corpus: MiniCorpus, rows: Rows) -> None:
    """Found between Han characters too, by form and check digit, and replaced by its kind."""
    assert resident_id("11010519491231002") == "11010519491231002X"  # the standard's own example
    person = resident_id("44010619880214512")
    card, debit = luhn_completed("411111111111111"), luhn_completed("622202120000123456")
    english = (
        ("Write to mary.smith+news@mail.example.com before Friday.", "email", "mary.smith"),
        ("Her address is john_doe [at] example [dot] org, as it says.", "email", "john_doe"),
        ("Call the ward at (212) 555-0187 in the evening.", "phone", "555-0187"),
        ("The number of the desk is +44 20 7946 0958 for all who wait.", "phone", "7946"),
        ("His social security number 219-09-9999 was on the form.", "ssn", "219-09"),
        (f"The card {card[:4]} {card[4:8]} {card[8:12]} {card[12:]} was charged.", "card",
         card[12:]),
        ("The requests came from 203.0.114.77 until noon on that day.", "ip", "203.0.114"),
        ("The host 2a00:1450:4001:82b::200e answered to every call.", "ip", "2a00:1450"),
    )
    chinese = (
        ("请把病历发到zhang.wei@hospital.example.cn谢谢。", "email", "zhang.wei"),
        ("联系邮箱ｌｉ＠ｅｘａｍｐｌｅ．ｃｏｍ欢迎来信。", "email", "ｌｉ＠"),
        ("家属的手机是13812345678随时可以联系。", "phone", "13812345678"),
        ("护士站电话010-62345678转分机。", "phone", "62345678"),
        (f"他的身份证号是{person}，已经核对过。", "resident_id", person),
        ("样例号码11010519491231002X来自标准。", "resident_id", "19491231002X"),
        (f"退款请打到卡号{debit}的账户。", "card", debit),
        ("当时停在门口的车是京A12345，没有人在车里。", "plate", "A12345"),
        ("新能源车粤BD12345也停在那里很久了。", "plate", "BD12345"),
        ("日志里的访问来自203.0.114.88这个地址。", "ip", "203.0.114"),
    )
    for language, prose, traps, texts in (("en", corpus.english, (57,), english),
                                          ("zh", corpus.chinese, (55, 57), chinese)):
        for text, kind, secret in texts:
            rows.add(prose.around(text), kept(
                language, contains=(PLACEHOLDERS[kind],), lacks=(secret,),
                transforms=(f"privacy:{kind}=1",), scores=((f"pii/{kind}", 1.0),), traps=traps,
                why=text))
    text = f"病人{person}，电话13912345678，邮箱a@example.cn，还有13712345678。"
    rows.add(corpus.chinese.around(text), kept(
        "zh", contains=("病人[ID]，电话[PHONE]，邮箱[EMAIL]，还有[PHONE]。",),
        transforms=("privacy:email=1", "privacy:phone=2", "privacy:resident_id=1"),
        traps=(55, 57)))
    for prose, text in ((corpus.english, "Her passport number is E12345678, issued in May."),
                        (corpus.chinese, "他的护照号码是E87654321，明年到期。")):
        rows.add(prose.around(text),
                 dropped("privacy", "personal data", traps=(55,), why="passports drop a document"))


def no_personal_data(corpus: MiniCorpus, rows: Rows) -> None:
    """What only looks like it."""
    person = resident_id("44010619880214512")
    card, debit = luhn_completed("411111111111111"), luhn_completed("622202120000123456")
    for text in (
            "See section 8.1.2.4 of the manual, and table 10.2.3.1 there.",
            "Version 192.168.300.1 does not exist, nor does release 1.2.3.4 of it.",
            f"The number {off_by_one(card)} fails its check digit.",
            "The code of the article is 9783161484100 on the back.",
            "In 2019 the price rose from 1200 to 1350 within 12 months.",
            "Address the @mention to no one, and a@b is no address.",
            "The servers 192.168.1.10 and 127.0.0.1 lead to nobody.",
            "The number 000-12-3456 was never issued to anybody."):
        whole = corpus.english.around(text)
        rows.add(whole, kept("en", text=whole, untouched=True, traps=(55,), why=text))
    for text in (
            "详见本规范第8.1.2.4节和表10.2.3.1的说明。",
            f"身份证号{off_by_one(person)}的校验位不对。",
            f"卡号{off_by_one(debit)}通不过校验。",
            "客服热线4008001234全天开通，欢迎拨打。",
            "身份证号440106198813451234里没有这样的月份。",
            "订单编号20230501123045678已经发货了。"):
        whole = corpus.chinese.around(text)
        rows.add(whole, kept("zh", text=whole, untouched=True, traps=(55,), why=text))


QUESTIONS = (
    ("Which of the four chambers of the heart pumps blood into the aorta of an adult?",
     ["left ventricle", "right ventricle", "left atrium", "right atrium"]),
    ("A farmer has seventeen sheep and all but nine of them run away; how many are left?",
     ["nine", "eight"]),
    ("Name the vitamin whose lack causes scurvy in sailors on long voyages without fresh fruit.",
     ["C"]),
    ("患者男性六十五岁，突发胸骨后压榨性疼痛两小时，心电图提示哪一种疾病的可能性最大？",
     ["急性心肌梗死", "肺炎"]),
    ("下列哪一项不属于中国古代四大发明，而是从国外传入的农业技术或者作物？", ["玉米", "造纸术"]),
    ("Too short?", ["yes"]),
)
QUIZ = "".join(json.dumps({"question": question, "choices": choices}, ensure_ascii=False) + "\n"
               for question, choices in QUESTIONS)
"""An evaluation set, as JSON lines."""


def contamination(corpus: MiniCorpus) -> None:
    """13 words or 20 Chinese characters of a question are too much, whatever the punctuation."""
    fate = ("decontaminate", "evaluation overlap")
    heart, sheep, scurvy, chest, invention = (question for question, _ in QUESTIONS[:5])
    with corpus.rows("rows/contamination.jsonl") as rows:
        def inside(text: str, label, prose=corpus.english) -> None:
            rows.add(prose.around(text, 3), label)

        inside(heart, dropped(*fate, why="as it is"))
        inside(sheep.upper().replace(";", " --").replace("?", "."), dropped(*fate, why="capitals"))
        inside(scurvy.replace(" in sailors", ", in (sailors)"), dropped(*fate, why="other marks"))
        inside("It was asked " + " ".join(heart.split()[2:]), dropped(
            *fate, why="13 words of it"))
        inside("It was asked which " + " ".join(heart.split()[:12]) + ".", kept(
            "en", why="12 words of it"))
        inside("What is left of seventeen sheep when all but nine have run away, he asked.",
               kept("en", why="the same in other words"))
        inside("Too short? Yes.", kept("en", why="an item with too few words is not searched for"))
        inside("The left ventricle and the right ventricle differ in strength.", kept(
            "en", why="single choices are too short to count"))
        inside(chest, dropped(*fate, traps=(45,)), corpus.chinese)
        inside(invention.replace("，", "").replace("？", "。"), dropped(*fate, traps=(45,)),
               corpus.chinese)
        inside("有一道题问" + chest[6:28] + "等等。", dropped(*fate, traps=(45,)),
               corpus.chinese)
        inside("有一道题写的是" + chest[6:20] + "等等。", kept(
            "zh", traps=(45,), why="13 characters"), corpus.chinese)
        inside("他得了急性心肌梗死，住进了医院。", kept("zh", traps=(45,)), corpus.chinese)


def nonsense(corpus: MiniCorpus) -> None:
    """Texts that pass every rule and that no one can read: a language model finds them."""
    with corpus.rows("rows/nonsense.jsonl") as rows:
        for _ in range(4):
            rows.add(misread(corpus.english.text()), dropped(
                *UNLIKELY, why="read by a machine from a bad copy"))
        for _ in range(4):
            text = corpus.chinese.text()
            rows.add(f"{text[:25]}。{misdecoded(text[25:], '的是在和了有')}", dropped(
                *UNLIKELY, traps=(48,), why="UTF-8 taken for GBK, between common words"))
        text = corpus.chinese.text()
        rows.add(f"{text[:60]}。{misdecoded(text[60:])}", dropped(
            "roots", "few stop words", traps=(48,), why="UTF-8 taken for GBK"))


UNLIKELY = ("perplexity", "perplexity too high")


def misread(text: str) -> str:
    """Letters of longer words taken for others of a like shape."""
    shapes = str.maketrans("ehnmulcratg", "cbuwniexoiq")
    return " ".join(word.translate(shapes) if len(word) > 3 else word for word in text.split())


def misdecoded(text: str, words: str = "") -> str:
    """What a program writes that takes the UTF-8 bytes for GBK, with a stop now and then.

    Args:
      text: Chinese.
      words: of one character each, put between; without them any count of common words finds it.
    """
    wrong = text.replace("，", "").replace("。", "").encode().decode("gbk", "ignore")
    if words:
        wrong = "".join(wrong[i:i + 3] + words[i // 3 % len(words)]
                        for i in range(0, len(wrong), 3))
    return "".join(f"{wrong[i:i + 20]}。" for i in range(0, len(wrong), 20))


QUACK = "听说有人吃大力丸。"
KEYWORDS = "# what quacks sell\n大力丸\n"
"""A list of keywords, and a sentence with one."""


def spam(corpus: MiniCorpus) -> None:
    """Texts in good order, and worthless, or worse."""
    with corpus.rows("rows/spam.jsonl") as rows:
        for kind, label in (
                ("pages without worth", dropped("quality", "quality too low")),
                ("pages on gambling", dropped("safety", "toxic"))):
            for text in topics.SPAM[kind]:
                rows.add(text, label)
        sentences = corpus.chinese.sentences() + corpus.chinese.sentences()
        lines = ["".join(sentences[i:i + 5]) for i in (0, 5, 10)]
        rows.add("\n".join([f"{lines[0]}{QUACK}", f"{lines[1]}{QUACK[2:]}", lines[2]]), dropped(
            "safety", "lines with keywords", why="in two of three lines, but little of the text"))
        sentences = corpus.chinese.sentences() + corpus.chinese.sentences()
        lines = ["".join(sentences[i:i + 5]) for i in (0, 5, 10)]
        rows.add("\n".join([f"{lines[0]}{QUACK}", *lines[1:]]), kept(
            "zh", contains=(QUACK,), why="in one of three"))
