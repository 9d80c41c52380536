"""What each filter is there to catch, and what it must let pass.

The filters come in the order of `everything.RULES`, so a text meant for a late filter passes the
earlier ones. Where a limit is a number, there is a text on each side of it.
"""

import hashlib
import re

from tests.data_beam.mini_corpus.corpus import MiniCorpus, Rows, dropped, kept

_DIGITS = str.maketrans("abcdef", "123456")


def add(corpus: MiniCorpus) -> None:
    short_lines(corpus)
    chats(corpus)
    with corpus.rows("rows/entropy.jsonl") as rows:
        entropy(corpus, rows)
    with corpus.rows("rows/repetition.jsonl") as rows:
        repeated_ngrams(rows)
        gopher_repetition(corpus, rows)
    with corpus.rows("rows/gopher_quality.jsonl") as rows:
        gopher_quality_english(corpus, rows)
        gopher_quality_chinese(corpus, rows)
    with corpus.rows("rows/web_rules.jsonl") as rows:
        chinese_web_text(corpus, rows)
        nemo(corpus, rows)
        c4(corpus, rows)
        fineweb(corpus, rows)
        roots(corpus, rows)


def short_lines(corpus: MiniCorpus) -> None:
    """A page of short lines, in columns: a Han character has two. More than 0.67 is too much."""
    with corpus.rows("rows/lines.jsonl") as rows:
        poem = ("The kettle sings on the stove.", "Rain has come to the town.",
                "Nobody is in the street.", "A dog sleeps by the door.")
        long = ("We talked of the harvest and of the year in which the river froze to its bed.",
                "Then the old clock struck, and one after the other went home with a lamp.",
                "The last of them left the gate open, as people do who mean to be back soon.")
        rows.add("\n".join([*poem, *long[:2]]), kept("en", why="4 of 6 lines are short"))
        rows.add("\n".join([*poem, "It is late and dark now.", *long[:2]]),
                 dropped("filter", "short lines", why="5 of 7"))
        short = ("雨停了，天慢慢地亮起来。", "院子里的花开了一半。", "猫在窗台上睡着了。",
                 "邻居家的孩子在读书。")
        wide = corpus.chinese.sentences()
        rows.add("\n".join([*short, *wide[:2]]),
                 dropped("chinese_web_text", "too short", traps=(49,),
                         why="4 of 6 lines are short; what is left is too little for another rule"))
        rows.add("\n".join([*short, "厨房里飘来米饭的香味。", *wide[:2]]),
                 dropped("filter", "short lines", traps=(49,), why="5 of 7"))
        rows.add("\n".join(["15 个汉字有三十列宽，所以算作一短行"[:15]] * 5 + wide[2:4]),
                 dropped("filter", "short lines", traps=(49,), why="lines of exactly 30 columns"))
        rows.add("首页\n电影\n电视剧\n综艺\n动漫\n少儿\n纪录片\n体育\n游戏\n音乐\n直播\n会员\n排行榜\n"
                 "最近更新\n播放记录\n客户端下载\n意见反馈\n登录注册",
                 dropped("filter", "short lines", why="the menu of a page"))


def chats(corpus: MiniCorpus) -> None:
    """More than half of the lines begin like those of a chat."""
    en, zh = corpus.english.sentences(), corpus.chinese.sentences()
    with corpus.rows("rows/chat.jsonl") as rows:
        names = ("ann", "bob", "cem")
        rows.add("\n".join(f"[12:{30 + i}] <{names[i % 3]}> {line}" for i, line in enumerate(en)),
                 dropped("chat_log", "chat lines", why="IRC with times"))
        rows.add("\n".join(f"<{names[i % 3]}> {line}" for i, line in enumerate(en)),
                 dropped("chat_log", "chat lines", why="IRC without"))
        answers = corpus.chinese.sentences()
        rows.add("\n".join(f"张三 2023-05-01 12:30:{10 + i}\n{line}\n李四 12:31:{10 + i}\n{answer}"
                           for i, (line, answer) in enumerate(zip(zh, answers, strict=True)))
                 + "\n王五 12:40:00",
                 dropped("chat_log", "chat lines", why="QQ: a head line, then what was said"))
        rows.add("\n".join(f"[12:{30 + i}] 张三：{line}" for i, line in enumerate(zh)),
                 dropped("chat_log", "chat lines"))
        more = corpus.english.sentences()
        rows.add("\n".join([*(f"<ann> {' '.join(en[i:i + 2])}" for i in (0, 2, 4)),
                            *(" ".join(more[i:i + 2]) for i in (0, 2, 4))]),
                 kept("en", why="exactly half of the lines", traps=(49,)))
        rows.add("\n".join(f"HAMLET. {line}" if i % 2 else f"HORATIO. {line}"
                           for i, line in enumerate(more)), kept("en", why="a play has no times"))
        rows.add("\n".join(f"记者：{line}" if i % 2 else f"受访者：{line}"
                           for i, line in enumerate(corpus.chinese.sentences())),
                 kept("zh", why="an interview"))


def entropy(corpus: MiniCorpus, rows: Rows) -> None:
    """From 3.0 to 6.5 bits a character in English, 4.0 to 10.5 in Chinese."""
    rows.add("He sees the three trees. She sees the three sheets there. " * 3
             + "The sheets rest here, the trees there, the three heed these. "
             + "See the three these trees shed here.", dropped("entropy", "low entropy",
             why="a handful of letters"))
    rows.add("哈哈哈哈，笑死我了，真的笑死了。" * 20, dropped("entropy", "low entropy"))
    symbols = " ".join(chr(code) + chr(code + 1) for code in range(0x2200, 0x2400, 2))
    rows.add(f"{corpus.english.text()} The symbols of the font are these: {symbols}.",
             dropped("entropy", "high entropy", why="a table of symbols"))
    table = bytes(byte for row in range(0xB0, 0xD7) for cell in range(0xA1, 0xFF)
                  for byte in (row, cell)).decode("gb2312")  # the common characters, by their sound
    rows.add("，".join(table[i:i + 60] + sentence for i, sentence in zip(
        range(0, len(table), 60), corpus.chinese.long(2000), strict=False)),
        dropped("entropy", "high entropy", why="a table of characters"))


def repeated_ngrams(rows: Rows) -> None:
    """More than 0.8 of the 5-grams occur more than once."""
    for text in ("Call now and order the new miracle pillow for only nineteen dollars. " * 20,
                 "We buy gold, old cars, furniture and everything that your aunt has left. " * 9):
        rows.add(text.strip(), dropped("ngram_repetition", "repeated n-grams"))
    for text in ("本店长期回收旧手机、旧电脑和各种家用电器，欢迎来电咨询。" * 15,
                 "新店开业，全场八折，买二送一，机会难得，欢迎大家光临。" * 15):
        rows.add(text, dropped("ngram_repetition", "repeated n-grams", traps=(49,)))


def repeat(sentences: list[str], phrase: str, copies: int, joint: str) -> str:
    """The sentences with a phrase after some of them."""
    pieces = []
    for number, sentence in enumerate(sentences):
        pieces.append(sentence)
        if number < copies:
            pieces.append(phrase)
    return joint.join(pieces)


SAID_THRICE = (
    (6, 0.14, "musicians purchased additional furniture yesterday afternoon"),
    (7, 0.13, "seven farmers bought another wooden barrel there"),
    (8, 0.12, "seven farmers bought another wooden barrel there together"),
    (9, 0.11, "seven farmers bought another wooden barrel there together yesterday"),
)
"""Words, Gopher's limit for so many, and a phrase of as many: later copies over the text."""


def gopher_repetition(corpus: MiniCorpus, rows: Rows) -> None:
    """Each limit of the table in Gopher's appendix: what occurs again, over the whole."""
    en, zh = corpus.english, corpus.chinese
    stage = "gopher_repetition"
    s = en.sentences() + en.sentences()
    rows.add("\n\n".join([s[0], s[1], s[2], s[0], s[1], s[3]]),
             dropped(stage, "duplicate paragraphs", why="2 of 6, more than 0.30"))
    rows.add("\n\n".join([" ".join(s[:3]), *s[3:11], " ".join(s[:3])]),
             dropped(stage, "duplicate paragraph characters", why="a long one of ten, twice"))
    s = en.sentences() + en.sentences()
    rows.add("\n".join([s[0], s[1], s[2], s[0], s[1], s[3]]),
             dropped(stage, "duplicate lines", why="2 of 6"))
    rows.add("\n".join([" ".join(s[:3]), *s[3:11], " ".join(s[:3])]),
             dropped(stage, "duplicate line characters"))
    rows.add("The doctor wrote that the patient ate well, and the patient slept. In May the "
             "patient went home, but the patient came again. When the patient spoke of pain, the "
             "patient was given a drug. With it the patient improved, so the patient left. At noon "
             "the patient drank tea. Then the patient read. Of all things the patient liked books, "
             "as the patient had a large library. Soon the patient walked, and the patient sang.",
             dropped(stage, "top 2-gram", why="`the patient` is a fifth of the text"))
    rows.add("The Department of Justice sued. Later the Department of Justice won, and so the "
             "Department of Justice was glad. Nobody but the Department of Justice had hoped for "
             "it. A judge asked the Department of Justice to wait. In June the Department of "
             "Justice went home and cried. There is no end to what one may say of such a matter, "
             "or of the way in which people write of it when they are paid by the line, day "
             "after day.",
             dropped(stage, "top 3-gram", why="`Department of Justice`"))
    rows.add("Reports by the World Health Organization show more. We asked the World Health "
             "Organization twice. Now the World Health Organization has answered that it will look "
             "into it. Doubts remain, because the World Health Organization may be too slow. Later "
             "on, friends of ours met somebody of the World Health Organization in a bar by the "
             "lake and heard that nothing had been decided, which was hardly a surprise to those "
             "who knew how such things go in that town during the long and rainy month of March.",
             dropped(stage, "top 4-gram", why="`the World Health Organization`"))
    s = en.sentences() + en.sentences()
    phrase = "and so the story went on as it always did in those days"
    rows.add(repeat(s[:8], phrase + ".", 5, " "),
             dropped(stage, "duplicate 5-grams", why="a phrase of thirteen words, five times"))
    # Ten words twice. Their share lies between the limits for 10- and 9-grams.
    passage = "Carpenters from another valley had built most cottages around here"
    rest = " ".join(en.sentences())
    size = round(len(passage.replace(" ", "")) / 0.105) - 2 * len(passage)
    rows.add(f"{passage}. {rest[:size - 5]}. {passage}.",
             dropped(stage, "duplicate 10-grams", why="10.5 %, over 10 but under 11 %"))
    for size, limit, phrase in SAID_THRICE:
        said = [f"We knew because {phrase} when it rained.",
                f"Ann left although {phrase} since May.", f"He slept while {phrase} for his aunt."]
        length = round(2 * len(phrase.replace(" ", "")) / (limit + 0.004)) - len(" ".join(said))
        rows.add(f"{said[0]} {said[1]} {' '.join(en.sentences())[:length - 2]}. {said[2]}",
                 dropped(stage, f"duplicate {size}-grams", why=f"{size} words, three times"))
    sentences = zh.sentences() + zh.sentences()
    rows.add("\n".join([*sentences[:3], *sentences[:2]]),
             dropped(stage, "duplicate lines", traps=(49,), why="2 of 5, more than 0.287"))
    rows.add("".join([*sentences[:6], *sentences[:3]]),
             dropped(stage, "duplicate 5-grams", traps=(45, 49), why="a third is a copy"))
    rows.add("".join([*zh.sentences(), sentences[8]]) + sentences[8][:14] + "。",
             kept("zh", traps=(45, 49), why="hardly anything is repeated"))


def gopher_quality_english(corpus: MiniCorpus, rows: Rows) -> None:
    """Fifty words, of 3 to 10 letters, with letters, with stop words, few # and ..."""
    stage = "gopher_quality"
    fifty = ("The baker opens the shop at six. Her first guests are the drivers of the buses. "
             "They drink coffee and talk. At eight the children come for rolls with cheese. When "
             "school begins, the street is quiet until noon. Then the shop closes, and the baker "
             "sleeps. {} mice dance.")
    rows.add(fifty.format("").replace("  mice", " Mice"),
             dropped(stage, "too few words", why="49 words"))
    rows.add(fifty.format("Three"), kept("en", why="fifty words"))
    rows.add("I am in. He is at it. We go up to an ox. It is on my bed. So do it, or go. If he is "
             "in, I am up. To be or to do: is it so? An ox is by us. Up we go, as he is at it. My "
             "pa is in it. Do as I do. We do so, by and by. It is up to me, or to us.",
             dropped(stage, "words too short", why="less than three letters on the average"))
    rows.add("Electroencephalographic characterization demonstrates extraordinarily heterogeneous "
             "responsiveness. Pharmacological interventions notwithstanding, interdisciplinary "
             "collaborations necessitate comprehensive documentation. Neuropsychological "
             "rehabilitation requirements substantially complicate institutional administration. "
             "Methodological considerations regarding electrophysiological instrumentation "
             "predominantly characterize contemporary investigations. Internationalization and "
             "standardization of the terminology have considerably facilitated communication. "
             "Nevertheless, transdisciplinary misunderstandings occasionally compromise "
             "reproducibility. Histopathological classification demands specialization.",
             dropped(stage, "words too long"))
    tags = " ".join(f"#{word.strip('.,')}" for word in corpus.english.text().split()[:30])
    rows.add(f"{corpus.english.text()} {tags}", dropped(stage, "hashes", why="hashtags"))
    dotted = re.sub(r"(\w+) (\w+) (\w+) ", r"\1 \2 \3... ", corpus.english.text())
    rows.add(dotted, dropped(stage, "ellipses"))
    s = corpus.english.sentences()
    rows.add("\n".join(f"- {line}" for line in s), dropped(stage, "bullet lines"))
    rows.add("\n".join(f"• {line}" for line in corpus.english.sentences()),
             dropped(stage, "bullet lines"))
    s = corpus.english.sentences() + corpus.english.sentences()
    rows.add("\n".join([s[0], *(f"- {line}" for line in s[1:10])]),
             kept("en", why="nine of ten lines are bullets, not more than 0.9"))
    s = corpus.english.sentences()
    rows.add("\n".join(line.rstrip(".") + "..." for line in s[:3]) + "\n" + "\n".join(s[3:]),
             dropped(stage, "ellipsis lines", why="3 of 7: teasers"))
    rows.add("In 1901 there were 2310 and 4512, in 1902 there were 3109 and 5287, and in 1903 "
             "there were 3811 and 6170. Sums of those are 6822, 8396 and 9981. With 1200 more of "
             "them, that would have been 8022, 9596 and 11181. From 1904 there were 4108, 4290 and "
             "4377 of them, from 1905 there were 4402, 4518 and 4629, and from 1906 they were "
             "4700, 4811 and 4902.",
             dropped(stage, "words without letters", why="a table of numbers in sentences"))
    rows.add("cheap replica watches discount luxury handbags designer sunglasses brand shoes free "
             "shipping worldwide best price guarantee buy online today wholesale outlet store hot "
             "sale limited offer genuine leather wallets gold necklaces silver rings diamond "
             "earrings perfume samples sport jackets winter coats summer dresses kids toys phone "
             "cases laptop bags travel pillows garden chairs kitchen knives order now. click here!",
             dropped(stage, "few stop words", why="keywords of a shop"))


def gopher_quality_chinese(corpus: MiniCorpus, rows: Rows) -> None:
    """The same with the numbers of FineWeb-2."""
    stage, zh = "gopher_quality", corpus.chinese
    rows.add(zh.text()[:62] + "。", dropped(stage, "too few words", traps=(49,)))
    rows.add("\n".join(f"- {line}" for line in zh.sentences()), dropped(stage, "bullet lines"))
    rows.add("\n".join(line.rstrip("。") + "……" for line in zh.sentences()),
             dropped(stage, "ellipsis lines", traps=(49,)))
    rows.add(re.sub("[，。]", "……", zh.text()).replace("的", "的……"), dropped(
        stage, "ellipses", traps=(49,)))
    rows.add("".join(f"#{word}#" for word in re.findall("[^，。、]{2,4}", zh.text())),
             dropped(stage, "hashes", why="topics of a microblog"))
    table = "".join(f"{year}年为{3 * year % 97}和{7 * year % 89}，{year % 13}月{year % 28}日为"
                    f"{year % 71}、{year % 67}、{year % 61}、{year % 59}。"
                    for year in range(1971, 1989))
    rows.add(table, dropped(stage, "words without letters", why="a table of numbers"))
    rows.add("手机电脑平板耳机音箱键盘鼠标显示器路由器充电器数据线移动电源智能手表游戏主机相机镜头"
             "三脚架闪光灯存储卡打印机扫描仪投影仪电视冰箱洗衣机空调热水器吸尘器电饭煲微波炉烤箱"
             "榨汁机豆浆机电磁炉油烟机燃气灶净水器加湿器取暖器电风扇台灯吊灯沙发茶几餐桌椅子床垫"
             "衣柜书架窗帘地毯枕头被套毛巾牙刷洗发水沐浴露洗衣液",
             dropped(stage, "few stop words", traps=(49,), why="goods, and no sentence"))


def chinese_web_text(corpus: MiniCorpus, rows: Rows) -> None:
    """More than 200 characters, lines of 10 on the average, a third of them Han."""
    stage, zh = "chinese_web_text", corpus.chinese
    text = zh.text()[:199] + "。"
    rows.add(text, dropped(stage, "too short", traps=(49,), why="200 characters"))
    text = zh.text()[:200] + "。"
    rows.add(text, kept("zh", text=text, traps=(49,), why="201 characters"))
    pieces = re.findall("[^，。]{16,17}", "".join(zh.long(9000)))
    rows.add("\n\n".join(pieces[:16]), dropped(stage, "short lines", traps=(49,),
                                               why="an empty line after each of 16 characters"))
    rows.add("   ".join(zh.text()), dropped(stage, "little Han", traps=(49,),
                                            why="three spaces between any two characters"))


def nemo(corpus: MiniCorpus, rows: Rows) -> None:
    """English only: characters that are none, digits, URLs, spaces, phrases of lawyers."""
    en, stage = corpus.english, "nemo"
    spelled = " ".join("*".join(word) if 3 < len(word) < 8 else word
                       for word in re.findall("[A-Za-z]+", en.text()))
    rows.add(f"{spelled}.", dropped(stage, "not alphanumeric",
                                    why="s*p*e*l*l*e*d, so that no list of words finds it"))
    numbers = [f"K{hashlib.sha256(bytes([i])).hexdigest().translate(_DIGITS)[:16]}A"
               for i in range(9)]
    words = en.text().split()
    for place, number in enumerate(numbers):
        words.insert(place * 10 + 7, number)
    rows.add(" ".join(words),
             dropped(stage, "digits", why="numbers of parts"))
    s = en.sentences()
    links = [f"https://{hashlib.md5(bytes([i])).hexdigest()}.example.org/" for i in range(7)]
    rows.add(" ".join(f"{line[:-1]} ({link})." for line, link in zip(s, links, strict=True)),
             dropped(stage, "URLs"))
    rows.add(en.text().replace(" ", "    "), dropped(stage, "not alphanumeric",
                                                     why="four spaces between words"))
    s = en.sentences()
    rows.add(f"{' '.join(s[:3])}\n\nBy reading on you accept our terms of use and all they say."
             f"\n\n{' '.join(s[3:5])} Our cookie policy applies to it.\n\n{' '.join(s[5:])}",
             dropped(stage, "boilerplate", why="2 of 4 paragraphs"))
    rows.add(f"{en.text()} Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
             dropped(stage, "boilerplate", why="a page that nobody has filled"))
    rows.add("\n".join(line.rstrip(".") for line in en.sentences()),
             dropped(stage, "unterminated", why="no line has an end"))
    s = en.sentences()
    rows.add(f"{' '.join(s[:3])}\n\n{' '.join(s[3:])}\n\nThis website uses cookies for its work.",
             kept("en", text=f"{' '.join(s[:3])}\n{' '.join(s[3:])}", transforms=("c4:lines",),
                  traps=(57,), why="1 of 3 paragraphs; C4 takes the line out"))


def c4(corpus: MiniCorpus, rows: Rows) -> None:
    """Lines are taken out, then there must be five sentences left (datatrove)."""
    en, zh = corpus.english, corpus.chinese
    s = en.sentences() + en.sentences()
    rows.add(" ".join(s[:4]), dropped("c4", "too few sentences", why="four"))
    rows.add(" ".join(s[4:9]), kept("en", why="five"))
    s = zh.sentences()
    clauses = "".join(s).replace("。", "，").strip("，").split("，")
    first, rest = "，".join(clauses[:8]), "，".join(clauses[8:])
    rows.add(f"{first}。真的吗？是的！{rest}。", dropped("c4", "too few sentences", traps=(49,),
                                                why="four of them, ended by 。？！"))
    rows.add("".join(zh.sentences()[:8]).replace("。", "！", 3).replace("！", "？", 1),
             kept("zh", traps=(49,), why="Chinese marks end sentences"))
    rows.add(f"{en.text()} The function begins with {{ and nothing closes it.",
             dropped("c4", "curly bracket"))
    rows.add(f"{zh.text()}模板里写着{{name}}，没有人替换它。", dropped("c4", "curly bracket"))
    rows.add(f"{zh.text()}这里原来写的是 Lorem ipsum dolor sit amet，后来忘了改。",
             dropped("c4", "lorem ipsum"))
    s = en.sentences()
    rows.add(f"{' '.join(s)}\nPlease enable Javascript in your browser.\nToo short.",
             kept("en", text=" ".join(s), transforms=("c4:lines",), traps=(57,),
                  why="a line on Javascript, and one of two words"))
    word = "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(16)).translate(
        str.maketrans("0123456789", "ghijklmnop"))[:1001]
    rest = " ".join(en.sentences() + en.sentences() + en.sentences())
    rows.add(f"{s[0]}\n{word} is a word of more than a thousand letters.\n{rest}",
             kept("en", text=f"{s[0]}\n{rest}", transforms=("c4:lines",)))
    text = zh.text()
    rows.add(f"{text}\n使用本站即表示您同意我们的隐私政策和服务条款。",
             kept("zh", text=text, transforms=("c4:lines",), traps=(49, 57)))
    text = " ".join(en.sentences())
    rows.add(text.replace(". ", ".[1] ", 1), kept("en", lacks=("[1]",), contains=(text,),
                                                  transforms=("c4:lines",), why="a citation"))


def fineweb(corpus: MiniCorpus, rows: Rows) -> None:
    """Lines that end, lines that are long, lines that are there once."""
    en, zh = corpus.english, corpus.chinese
    stage = "fineweb"
    rows.add("\n".join(f'"{line}"' for line in en.sentences()),
             dropped(stage, "few lines end with a mark",
                     why="FineWeb does not take a closing quote for an end"))
    rows.add("\n".join([*(line.rstrip("。") for line in zh.sentences() + zh.sentences()),
                        "雨停了。风也停了。天亮了。鸟叫了。花开了。"]),
             dropped(stage, "few lines end with a mark", traps=(49,), why="1 of 17"))
    rows.add("\n".join(f"“{line}”" for line in zh.sentences()),
             kept("zh", traps=(49,), why="a Chinese line may end with a closing quote"))
    s = en.sentences()
    rows.add("\n".join(["The first part of it is here.", " ".join(s), "The second is not.",
                        "And that is the end of it."]),
             dropped(stage, "short lines", why="3 of 4 lines have at most 30 characters"))
    s = en.sentences() + en.sentences()
    line = "Each of these pages was typed by hand."
    rows.add("\n".join([*s[:4], line, *s[4:9], line, *s[9:]]),
             dropped(stage, "duplicate line characters", why="2 %, more than 1 %"))
    s = zh.sentences() + zh.sentences()
    nine = sorted(s, key=len)[4:13]
    rows.add("\n".join([*nine, nine[7]]),
             dropped(stage, "duplicate line characters", traps=(49,), why="1 of 10, a long one"))


def roots(corpus: MiniCorpus, rows: Rows) -> None:
    """Stop words as a share of all words, and what is no letter as a share of all characters."""
    stage = "roots"
    rows.add("Oak tables, pine shelves, walnut chairs and cherry desks fill the show room. Brass "
             "lamps, copper pans, tin boxes and silver spoons shine in glass cases. Wool carpets "
             "cover stone floors. Silk curtains frame high windows. Staff with grey aprons polish "
             "marble fountains. Visitors admire carved frames, painted screens, woven baskets and "
             "bronze bells. Children count coloured glass beads.",
             dropped(stage, "few stop words", why="hardly a fifth are stop words"))
    rows.add("松木书架、胡桃木桌椅和樱桃木柜子摆满展厅。黄铜台灯、紫铜锅、锡罐、银勺陈列玻璃柜内。羊毛地毯铺满石"
             "板地面，丝绸窗帘垂落高大窗户两侧。灰色围裙店员擦拭大理石喷泉，游客欣赏雕花镜框、彩绘屏风、竹编篮子、青铜"
             "铃铛。孩子清点彩色玻璃珠。仓库堆放陶瓷花瓶、水晶吊灯、红木算盘、象棋棋盘。门口停放马车，车夫为黑色骏马和"
             "白色小驴喂食燕麦。楼上画室悬挂山水画、人物画、花鸟画，画家调配朱砂、石青、藤黄颜料，学徒研磨墨条，裁剪宣纸，装裱"
             "立轴长卷。",
             dropped(stage, "few stop words", traps=(49,)))
    rows.add(" ".join(corpus.chinese.text()), dropped(
        stage, "special characters", traps=(49,), why="a space between any two characters"))
