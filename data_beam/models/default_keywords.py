"""Short lists of keywords that come with data_beam: gambling, pornography, advertisements.

They are a beginning that finds pages of spam, no list of all there is. Words that are as common in
harmless text are left out. What begins with ! is a harmless phrase that holds a keyword.
"""

ZH = (
    "六合彩", "时时彩", "百家乐", "老虎机", "博彩网", "博彩平台", "澳门赌场", "在线投注",
    "投注平台", "网上赌博", "赌博网站", "真人荷官", "棋牌平台", "彩票平台", "外围投注", "高赔率",
    "色情", "情色", "黄色网站", "成人视频", "成人电影", "成人网站", "激情视频", "裸聊", "一夜情",
    "约炮", "援交", "卖淫", "嫖娼", "加微信领取", "微信扫码领", "代开发票", "办理假证", "代办文凭",
    "刷单兼职", "日赚千元", "日入过万", "无抵押贷款", "免费领红包", "点击领取", "!特色情",
    "!角色情", "!景色情", "!夜色情", "!月色情", "!春色情",
    "!神色情", "!脸色情", "!气色情", "!红色情", "!绿色情", "!蓝色情", "!黑色情",
    "!白色情", "!金色情", "!感情色", "!风情色", "!爱情色", "!抒情色", "!热情色", "!表情色",
    "!剧情色", "!打击卖淫", "!禁止卖淫", "!严禁卖淫", "!打击色情", "!禁止色情", "!淫秽色情",
    "!赌博网站的危害",
)
"""Harmless are 特色 + 情怀, 感情 + 色彩 and their like, and the words of the law."""

EN = (
    "online casino", "online casinos", "casino bonus", "sports betting", "betting site",
    "betting sites", "online slots", "free spins", "online poker", "porn", "porno",
    "pornographic videos", "hentai", "nude cams", "sex cams", "sex chat", "adult dating",
    "escort services", "viagra", "cialis", "buy now", "click here to claim",
    "work from home and earn", "make money fast", "earn money online", "payday loan",
    "payday loans", "replica watches", "cheap followers", "limited time offer", "lose weight fast",
)
