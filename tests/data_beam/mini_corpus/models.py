"""What the models of the recipe learn from: clean text, and labelled examples."""

import json
from collections.abc import Sequence
from pathlib import Path

from data_beam import train_perplexity, train_quality
from tests.data_beam.mini_corpus import topics

PRAISE = """
Our amazing product will change your life, so click the button below and order it right now.
You will not believe how cheap this offer is, and it is only available for the next ten minutes.
Thousands of happy customers have already bought it, and they all say that it is simply the best.
Do not wait until tomorrow, because the price will double when the timer at the top reaches zero.
We promise you that you will lose weight, sleep better and look ten years younger in one week.
Subscribe to our channel, like the video and share it with your friends to win a brand new car.
This one weird trick is what your doctor does not want you to know about your stomach.
Get your free sample today, and we will only charge you for the shipping and for the handling.
The best deals of the year are here, and you can save up to ninety percent on everything.
Make money from home with this simple system, even if you have never earned a cent online.
Click here to see the shocking pictures that everybody on the internet is talking about.
If you buy two of them today, we will give you a third one and a bonus gift for free.
Why would you pay more when you can get the very same quality from us at half the price.
Our experts have tested all of the products and picked the top ten that you must buy now.
Enter your code at the checkout and enjoy free delivery on your first order from our shop.
""".strip().split("\n")
"""English without any worth."""
TUIGUANG = """
家人们谁懂啊，这款神仙产品真的太好用了，赶紧点击下方链接抢购吧。
限时特惠仅剩最后十分钟，错过今天再等一年，手慢无，速来抢购。
千万用户亲测有效，七天见效，无效全额退款，放心下单不用犹豫。
点赞收藏加关注，评论区扣一，免费领取价值九百九十九元的大礼包。
震惊，医生绝对不会告诉你的减肥秘密，看完你就知道自己亏了多少。
厂家直销全网最低价，买一送二，包邮到家，先到先得，售完即止。
在家就能赚钱，每天只要半小时，月入过万不是梦，加微信马上带你。
姐妹们冲啊，这个价格真的绝了，闭眼入不踩雷，用过都说好得不得了。
不看后悔一辈子，转发到三个群，好运马上就来，财源滚滚挡也挡不住。
专业团队一对一服务，无需经验，轻松上手，名额有限，立即扫码报名。
新人专享红包已经到账，点击领取，下单立减五十元，全场商品任你选。
还在为皮肤暗沉烦恼吗，试试这一款，三天变白，明星都在偷偷使用。
独家秘方祖传手艺，一个疗程就能断根，效果惊人，欢迎来电咨询订购。
年终大促全场清仓，跳楼价甩卖，老板跑路了，亏本也要卖给大家。
关注公众号回复关键词，立即获得全套资料，数量有限，送完为止。
""".strip().split("\n")
"""Chinese without any worth."""
CASINO = """
The casino gives every new player a welcome bonus, so place your first bet on the slots tonight.
Our online casino pays the jackpot at once, and the poker tables are open around the clock.
Bet on football, horses and boxing with the best odds, and cash out before the match is over.
Spin the roulette wheel and double your deposit, because the house gives a bonus on every bet.
Play blackjack with live dealers and win real money from your sofa with each hand of cards.
Join the gambling club of the winners, where the slots never sleep and the jackpots are huge.
""".strip().split("\n")
"""Advertisements for gambling."""
DUCHANG = """
澳门赌场线上开户，注册就送彩金，百家乐真人荷官在线发牌，提款秒到账。
六合彩内部资料，特码精准预测，跟单下注稳赚不赔，老虎机大奖等你拿。
时时彩包赢计划，一对一带单投注，博彩平台信誉保证，充值返利百分之二十。
足球竞猜盘口最全，滚球投注赔率最高，开户即送体验金，赌球就来这里。
棋牌娱乐城火热上线，炸金花斗牛随时开局，赌资随充随提，代理高额返佣。
真人百家乐和轮盘赌全天开放，首存赠送彩金，下注越多返水越多。
""".strip().split("\n")


def clean_texts(topics: dict[str, list[str]], joint: str) -> list[str]:
    """Documents of two or three sentences."""
    return [joint.join(sentences[i:i + 2]) for sentences in topics.values()
            for i in range(0, len(sentences) - 1, 2)]


def pairs(sentences: Sequence[str], joint: str) -> list[str]:
    """Documents of two sentences, each with several others."""
    return [joint.join((one, sentences[(i + step) % len(sentences)]))
            for step in (1, 2, 4) for i, one in enumerate(sentences)]


def examples(texts: dict[int, list[str]]) -> str:
    """Labelled texts as JSON lines."""
    return "".join(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n"
                   for label, those in texts.items() for text in those)


def train(folder: Path) -> None:
    """Writes `zh`, `en` (perplexity), `quality` and `safety` below a folder, by the product's own
    commands."""
    english_texts = clean_texts(topics.ENGLISH, " ")
    chinese_texts = clean_texts(topics.CHINESE, "")
    for language, texts in (("en", english_texts), ("zh", chinese_texts)):
        (folder / f"{language}.txt").write_text("\n\n".join(texts), "utf-8")
        assert train_perplexity.main([
            f"--text={folder / language}.txt", f"--language={language}", "--held_out=0.2",
            "--unit=character", "--order=4", f"--output={folder / language}"]) == 0
    good = english_texts + chinese_texts
    bad, unsafe = (pairs(english_ones, " ") + pairs(chinese_ones, "") for
                   english_ones, chinese_ones in ((PRAISE, TUIGUANG), (CASINO, DUCHANG)))
    for task, labelled in (("quality", {4: good, 0: bad}),
                           ("safety", {0: good[::2] + bad[::3], 1: unsafe})):
        (folder / f"{task}.jsonl").write_text(examples(labelled), "utf-8")
        assert train_quality.main([
            f"--examples={folder / task}.jsonl", f"--task={task}", "--held_out=0.2",
            "--l2=0.001", f"--output={folder / task}"]) == 0
