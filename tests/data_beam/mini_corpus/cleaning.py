"""Repairs of text, texts that are hardly any, other languages, and source code."""

from tests.data_beam.mini_corpus.corpus import MiniCorpus, dead, dropped, kept


def add(corpus: MiniCorpus) -> None:
    repairs(corpus)
    almost_nothing(corpus)
    languages(corpus)
    code(corpus)


def repairs(corpus: MiniCorpus) -> None:
    """What is broken is repaired and said; what is not is left alone."""
    en, zh = corpus.english, corpus.chinese
    with corpus.rows("rows/repairs.jsonl") as rows:
        text = en.text() + " The café in Zürich sells crème brûlée at noon — it’s best there."
        rows.add(text.encode().decode("cp1252"),
                 kept("en", text=text, transforms=("mojibake",), traps=(48, 57)))
        text = zh.text()
        rows.add(text[:120].encode().decode("latin-1") + text[120:],
                 kept("zh", traps=(48,), transforms=("mojibake",), text=text,
                      why="the first half was decoded as Latin-1"))
        text = zh.text() + "全角标点：“引号”、（括号）！？；：《书名》——破折号……" \
            "ＡＢＣ１２３，都要保留。"
        rows.add(text, kept("zh", text=text, untouched=True, traps=(48,)))
        text = zh.text() + "日语的「が」「ば」「ぱ」和片假名「ガ」「ヴ」也出现在这里。"
        rows.add(text, kept("zh", text=text, untouched=True, traps=(48,),
                            why="が must not become か"))
        rows.add(text[:-40] + text[-40:].replace("が", "か\u3099"),
                 dropped("dedup", "exact duplicate", traps=(48,),
                         why="NFC makes か and its mark one letter, and so a copy of the above"))
        text = en.text() + " Families 👩\u200d👩\u200d👧 and the Persian word می\u200cخواهم keep " \
            "their joiners."
        rows.add(text, kept("en", text=text, untouched=True, traps=(48,), why="ZWJ and ZWNJ"))
        text = en.sentences()
        rows.add(text[0] + "\x07 " + "\u200b".join(text[1:4]) + " \x00" + " ".join(text[4:]),
                 kept("en", lacks=("\x07", "\u200b", "\x00"), traps=(57,),
                      transforms=("control_characters", "invisible_characters")))
        text = en.sentences()
        rows.add("\ufeff" + " ".join(text[:3]) + "\r\n" + " ".join(text[3:]) + "\r\n",
                 kept("en", text=" ".join(text[:3]) + "\n" + " ".join(text[3:]), traps=(57,),
                      transforms=("line_ends", "invisible_characters")))
        text = zh.sentences()
        rows.add("".join(text[:4]) + "\u3000\u3000 \r\n\r\n\r\n\r\n" + "".join(text[4:]),
                 kept("zh", text="".join(text[:4]) + "\n\n" + "".join(text[4:]),
                      transforms=("line_ends", "whitespace"), why="noise at the ends of lines"))
        text = en.text().replace("fi", "ﬁ") + " An oﬃce is what it is."
        rows.add(text, kept("en", text=text, untouched=True, traps=(48,),
                            why="ligatures are someone's choice"))
        text = "“" + en.text() + "” — the “curly” quotes, the ‘single’ ones and the ½ stay."
        rows.add(text, kept("en", text=text, untouched=True, traps=(48,)))
        text = zh.text() + "古籍里的字如“𠀋”“𪚥”在基本平面以外，不能被当作乱码。"
        rows.add(text, kept("zh", text=text, untouched=True, traps=(48,), why="four-byte letters"))
        text = zh.text() + "数学里写作 x² + y² = r²，温度写作 37℃，编号写作①②③。"
        rows.add(text, kept("zh", text=text, untouched=True, traps=(48,), why="NFKC would lose it"))


def almost_nothing(corpus: MiniCorpus) -> None:
    """No text, a word, a single line without end: a decision each, never a crash."""
    with corpus.rows("rows/short.jsonl") as rows:
        for text in ("", " ", "\n", " \t \r\n \n", "\u200b\u200b\ufeff", "\u3000"):
            rows.add(text, dropped("filter", "empty after extraction", traps=(42, 46)))
        rows.add("\x00\x01\x02", dropped("extract", "garbled text", traps=(46, 53)))
        for text in ("word", "字", ".", "。", "\U0001f600", "?!", "()", "a b c", "0", "null",
                     "x" * 49, "字" * 49, "a " * 49):
            rows.add(text, dropped("filter", "too short", traps=(42, 46)))
        rows.add("Fifty letters and marks are no longer too short, x2.",
                 dropped("filter", "too short", why="43 without its spaces"))
        rows.add("今天的天气很好，我们一起去公园散步。" * 6, dropped(
            "ngram_repetition", "repeated n-grams", traps=(42, 46),
            why="long enough for the first rule"))
        rows.add("x" * 200_000, dropped("entropy", "no thresholds for its language", traps=(46,),
                                        why="one enormous line in no language"))
        rows.add("1 2 3 4 5 6 7 8 9 0 " * 200,
                 dropped("entropy", "no thresholds for its language", traps=(46, 47)))
        rows.add("=-" * 500, dropped("entropy", "no thresholds for its language", traps=(46, 47)))
        rows.add("{" * 300 + "}" * 300,
                 dropped("entropy", "no thresholds for its language", traps=(46, 47)))


OTHER = {
    "ja": "朝の市場では、漁師たちが取れたばかりの魚を並べて大きな声で値段を言っています。"
          "買い物に来た人は魚の目とえらを見て、新しいかどうかを確かめてから選びます。"
          "雨の日は客が少ないので、昼前にはほとんどの店が片付けを始めてしまいます。"
          "近くの食堂に入ると、湯気の立つ味噌汁と焼き魚の定食がすぐに出てきました。",
    "de": "Der Bäcker steht um drei Uhr auf und setzt den Sauerteig an, bevor die Stadt "
          "erwacht. Sein Sohn wollte den Betrieb zuerst nicht übernehmen, weil ihm die Nächte zu "
          "kurz waren. "
          "Inzwischen hat er zwei Gesellen eingestellt und verkauft das Brot auch auf dem Markt. "
          "Die alten Kunden kommen trotzdem lieber in den Laden und reden über das Wetter.",
    "fr": "Le facteur fait sa tournée à vélo, même quand la neige couvre les chemins du village. "
          "Les habitants lui offrent un café et lui racontent les nouvelles de la semaine. "
          "Il connaît chaque chien par son nom et sait lesquels il vaut mieux éviter.",
    "es": "En la plaza del pueblo hay una fuente que nunca se ha secado, ni en los peores veranos. "
          "Los niños juegan alrededor mientras los mayores conversan a la sombra de los árboles. "
          "Dicen que quien bebe de ella vuelve siempre, aunque se marche muy lejos.",
    "ru": "Старый мост через реку закрыли на ремонт, и теперь жители ездят в город через лес. "
          "Дорога там узкая, зимой её чистят редко, поэтому автобус часто опаздывает. "
          "Обещают, что весной всё будет готово, но в это мало кто верит.",
    "ko": "할머니는 아침마다 시장에 나가 직접 기른 채소를 파신다. 단골손님들은 값을 묻지 않고 "
          "필요한 만큼 담아 간다. 비가 오는 날이면 손님이 적어서 일찍 집으로 돌아오신다. "
          "남은 채소로 끓인 국은 언제나 맛이 좋았다.",
    "ar": "في السوق القديم يجلس الحرفيون أمام دكاكينهم ويصنعون الأواني من النحاس كما فعل أجدادهم. "
          "يأتي السياح لالتقاط الصور، لكن أهل المدينة وحدهم يعرفون كيف يساومون على السعر.",
    "th": "ทุกเช้าชาวบ้านจะพายเรือออกไปขายผักและผลไม้ที่ตลาดน้ำ นักท่องเที่ยวชอบมาถ่ายรูปและชิมอาหาร "
          "พ่อค้าแม่ค้ายิ้มแย้มแจ่มใสและพูดคุยกับทุกคนอย่างเป็นกันเอง",
}
"""Texts in other languages."""


def languages(corpus: MiniCorpus) -> None:
    """Unwanted languages go; Japanese, which is wanted, has no thresholds here, and is not judged
    by those of another language."""
    with corpus.rows("rows/languages.jsonl") as rows:
        for language, text in OTHER.items():
            rows.add(text, dropped(
                *(("entropy", "no thresholds for its language") if language == "ja" else
                  ("language", "other language")), traps=(47, 49), why=language))
        rows.add(corpus.chinese.text() + "\n" + corpus.english.sentences()[0],
                 kept("zh", why="Chinese with one English sentence"))
        rows.add("The word 中文 means Chinese. " + corpus.english.text(),
                 kept("en", why="English with a Chinese word"))
        traditional = (
            "老街的盡頭有一間小書店，門口掛著一盞昏黃的燈，下雨的時候燈影在石板路上搖晃。老闆年輕時"
            "在碼頭搬貨，攢下的錢全部拿來買書，後來索性把住的房子改成了書店。店裡的書從地板一直"
            "堆到屋頂，想找什麼只能問他，因為只有他知道哪一本在哪裡。學生們放學以後來這裡看書，"
            "坐在樓梯上，一看就是一個下午，他從來不催。有人勸他把店搬到熱鬧的地方去，他搖搖頭，說"
            "書和人一樣，需要安靜。去年颱風把招牌吹走了，街坊們湊錢替他重新做了一塊，上面寫著四個"
            "大字。他很高興，請每個人喝了一杯自己泡的茶，還送了一本舊書。")
        rows.add(traditional, kept("zh", text=traditional, untouched=True,
                                   why="traditional characters stay unless a recipe converts them"))


PYTHON = '''"""Counts words."""

import collections


def count(text):
\treturn collections.Counter(text.split())


print(count("，full-width comma stays"))
'''
CODE = {
    "count.py": ("python", PYTHON),
    "stack.c": ("c", '#include <stdio.h>\n\nstatic int stack[64];\nstatic int top;\n\nint push(int '
                     'value)\n{\n    if (top == 64)\n        return -1;\n    stack[top++] = value;'
                     '\n    return 0;\n}\n'),
    "sum.go": ("go", 'package main\n\nimport "fmt"\n\nfunc main() {\n\ttotal := 0\n\tfor i := 0; '
                     'i < 10; i++ {\n\t\ttotal += i * i\n\t}\n\tfmt.Println(total)\n}\n'),
    "list.js": ("javascript", "function last(items) {\n  if (items.length === 0) {\n    return "
                              "undefined;\n  }\n  return items[items.length - 1];\n}\n"),
    "Dockerfile": ("dockerfile", "FROM debian:12\nRUN apt-get update && apt-get install -y cowsay\n"
                                 "CMD [\"/usr/games/cowsay\", \"hello\"]\n"),
}


def code(corpus: MiniCorpus) -> None:
    """Rules for prose pass code by; only its length, its licence, privacy and copies count."""
    for name, (language, text) in CODE.items():
        corpus.file(f"code/{name}", text, kept(language, text=text, untouched=True, traps=(42,)))
    corpus.file("code/windows.py", "VALUES = (1, 2, 3)\r\n\r\nfor value in VALUES:\r\n    "
                                   "print(value, 'is a small number')\r\n",
                kept("python", transforms=("line_ends",), lacks=("\r",)))
    corpus.file("code/stack_again.c", CODE["stack.c"][1], dropped(
        "dedup", "exact duplicate", traps=(42,), why="short: a copy as a whole, without shingles"))
    corpus.file("code/tiny.py", "x = 1\n", dropped("filter", "too short", traps=(46,)))
    corpus.file("code/empty.py", "", dropped("read", "empty file", traps=(46,)))
    corpus.file("code/blank.py", "\n\n   \n", dropped("filter", "empty after extraction"))
    corpus.file("code/notes.xyz", "this is in no programming language that anybody has heard of",
                dropped("read", "no known language"))
    corpus.file("code/bad.c", b"\xff\xfei\0n\0t\0 \0x\0;\0\n",
                dead("read", "bad encoding", traps=(51,), why="UTF-16 by its mark, cut short"))
    corpus.file("code/object.c", b"\x7fELF" + b"\0" * 300, dead("read", "binary content"))
    corpus.file("code/owner.py", "AUTHOR = 'Jane Roe <jane.roe@example.org>'\nPORT = 8080\n\n\n"
                                 "def contact():\n    return AUTHOR, PORT\n",
                kept("python", contains=("[EMAIL]", "8080"), lacks=("jane.roe",), traps=(55, 57),
                     transforms=("privacy:email=1",)))
