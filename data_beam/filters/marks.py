"""Which characters end a sentence, and which are punctuation."""

import string

SENTENCE_ENDS = frozenset(
    ".!?。！？．｡﹒﹖﹗‼‽⁇⁈⁉"  # Latin and CJK
    "\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f9"  # Armenian, Arabic, Syriac, N'Ko
    "\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e"  # Devanagari, Myanmar, Ethiopic, Canadian
    "\u17d4\u17d5\u1803\u1809\u1944\u1945\u2e2e\u2e3c\ua4ff\ua60e\ua60f\ua6f3\ua6f7"
    "\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1\uabeb")
"""Characters with Unicode's property Sentence_Terminal, but those of scripts out of use."""

LINE_ENDS = {
    "en": tuple(SENTENCE_ENDS),
    "zh": (*SENTENCE_ENDS, "”", "’", "」", "』", "…", "；"),
}
"""What ends a line of text, by table. A Chinese sentence of speech ends with its closing quote."""

PUNCTUATION = frozenset(string.punctuation) | SENTENCE_ENDS | frozenset(
    "—”：％〈（━【「」，】；“《„’∶´–～«〉》）…►»、‘『』") | frozenset(
    chr(code) for code in [*range(32), *range(127, 160)])
"""A word made of these alone is none (datatrove's set, as far as it is punctuation)."""
