"""The words of the Chinese rules: which verbs and nouns are said in which way."""

from __future__ import annotations

import re

from demo_model.clauses.syntax import Modal

PRONOUNS = {
    "it": "它",
    "weather": "",
    "i": "我",
    "we": "我们",
    "you": "您",
    "he": "他",
    "she": "她",
    "they": "他们",
    "that": "那个",
    "who": "谁",
}
DETERMINERS = {
    "own": "自己的",
    "how_much": "多少",
    "what_kind": "什么样的",
    "whose": "谁的",
    "many": "很多",
    "all": "所有",
}
ASKED = {"when": "什么时候", "where": "在哪里", "why": "为什么", "how": "怎么", "how_often": "多久"}
MODAL = {
    Modal.CAN: ("可以", "不能"),
    Modal.MUST: ("得", "不用"),
    Modal.WANT: ("想", "不想"),
    Modal.SHOULD: ("应该", "不应该"),
    Modal.MIGHT: ("可能会", "可能不会"),
}
UNABLE = {"sleep": ("睡不着", "没睡着"), "fall_asleep": ("睡不着", "没睡着")}
"""Frame → what is said of somebody who cannot or could not do it."""
MATRIX = {"think": "觉得", "know": "知道", "hope": "希望", "say": "说", "whether": "不知道"}
RESULTS = dict.fromkeys([*"写做烤洗修煮煎泡织熨切画叠点租买种", "准备"], "好")
RESULTS |= dict.fromkeys("去看读喝吃教学听谈提找笑哭尝用骑弹讲唱说遛喂等拍", "过")
RESULTS |= dict.fromkeys(
    ("帮助", "联系", "通知", "批评", "表扬", "拜访", "参观", "观察", "讨论", "看望", "照顾"), "过"
)
"""A verb → what it takes with 已经: 已经看过书了."""
AGAIN = {
    **dict.fromkeys(("check", "proofread", "read", "read_book", "test", "test_code"), "一遍"),
    **dict.fromkeys(("review_code", "correct", "inspect"), "一遍"),
    **dict.fromkeys(("iron", "repair", "discuss_with", "summarize", "optimize", "wash", "wash_food"), "一下"),
    **{"change_password": "", "watch": "一遍", "copy": "一份"},
    **{"wrap": "起来", "save": "下来", "photograph": "下来", "print": "出来"},
    **{"taste": "一口", "drive": "一会儿", "use": "一段时间"},
}
"""What is said in place of 它 after these."""
TO_IT = {"send": "=发给 T O", "give": "=送给 T O", "share": "=分享给 T O", "submit": "=提交给 T O"}
TO_IT |= dict.fromkeys(("recommend", "recommend_book"), "=推荐给 T O")
TO_IT_ONCE = {
    **{"read_book": "=看完 O", "eat": "=吃掉 O", "serve": "=端上|桌 O", "advertise": "给O =做|广告"},
    **{"upload": "=上传 O", "translate": "=翻译出来 O", "deploy": "=部署好 O", "launch": "=推向市场 O"},
    **{"furnish": "=布置好 O", "fold": "=叠好 O", "sign": "=签好 O", "distribute": "=分发下去 O"},
    **{"pay": "=付清 O", "configure": "=配置好 O", "exchange": "=换掉 O", "report_problem": "=报告给 T O"},
    **{"present": "=展示给 T O", "install": "=安装好 O", "return_goods": "=寄回去 O", "return_item": "=还回去 O"},
    **dict.fromkeys(("file_doc", "archive"), "=归|档 O"),
    **{"store": "=存放好 O", "move_furniture": "=搬开 O"},
}
"""Frame → its cell if the object is 它, which is not said; the second if it was done."""
ONLY_ONCE = ("use", "drive", "taste", "read_book")
"""Frames that say so of what was done, not of what will be."""
TO_IT_LATER = {"replace": "把O =换掉", "exchange": "把O =换掉", "increase": "把O =提高", "reduce": "把O =降低"}
"""Frame → its cell if it is done to 它."""
SAYS_IT = ("adopt", "choose")
"""Frames that say 它."""
UNDER_WAY = {
    **{"open_event": "给O =致|开幕词", "record": "=录 O"},
    **{"go_shopping": "=买|东西", "hike": "=远足", "camp": "=露营", "fish": "=钓|鱼", "jog": "=慢跑"},
    **{"run": "=跑|步", "swim": "=游|泳", "ski": "=滑|雪", "cycle": "=骑|自行车", "go_bed": "=准备睡觉"},
    **dict.fromkeys(("pick_up", "pick_up_guest"), "=~在去接 O 的路上"),
    **dict.fromkeys(("travel", "fly", "leave_for", "go_to_shop"), "=~在去 T 的路上"),
    **{"go_theatre": "=~在去剧院的路上", "go_cinema": "=~在去电影院的路上", "go_home": "=~在回家的路上"},
    **{"go_beach": "=~在去海边的路上", "see_doctor": "=~在去看病的路上", "go_lunch": "=~在去吃午饭的路上"},
    **{"go_school": "=~在上学的路上", "come_office": "=~在来公司的路上", "return_from": "=~在从 T 回来的路上"},
    "go_holiday": "=~在去度假的路上",
    "take_to_vet": "=~在带 O 去看兽医的路上",
}
"""Frame → its cell for what is going on."""
ONCE = {
    **{"吵|架": "吵了一架", "洗|澡": "洗了个澡", "泡|澡": "泡了个澡", "聊|天": "聊了聊"},
    **{"散|步": "散了会儿步", "做|报告": "做了个报告", "睡|午觉": "睡了个午觉", "打|招呼": "打了个招呼"},
    **{"量": "量了一下", "休息": "休息了一下", "待在|家里": "待在家里", "答应给": "答应了给", "找": "找过"},
    **{"过|夜": "过了一夜", "放松": "放松了一下", "等": "等了一会儿", "没上成": "没上成"},
    **{"拍|照": "拍了照", "做|饭": "做了饭", "丢": "丢了"},
}
"""Verb → how it is said of what was done, where no rule puts 了 in its place."""
THEN = {
    **dict.fromkeys(("cancel", "postpone", "delete_account", "return_goods", "return_item", "exchange"), "后来又"),
    **dict.fromkeys(("check", "correct", "proofread", "print", "share", "upload", "archive", "test"), "并"),
    **dict.fromkeys(("test_code", "review_code", "deploy", "optimize", "configure", "discuss_with"), "并"),
    **dict.fromkeys(("explain", "summarize", "comment_on", "distribute", "sign", "submit", "solve"), "并"),
    **dict.fromkeys(("report_problem", "launch", "advertise", "file_doc", "translate", "furnish"), "并"),
    "find": "最后",
    "serve": "",
}
"""What is done next with the same thing → what joins it, if not 然后."""
MOMENTARY = frozenset(
    [
        *("busy", "tired", "hungry", "ill", "nervous", "happy", "satisfied", "disappointed", "angry", "worried"),
        *("sad (person)", "excited", "relaxed", "surprised", "thirsty", "sleepy", "impatient", "grateful"),
    ]
)
"""What people are at a moment (当时), not as they are (那时候)."""
LASTING = frozenset(
    [
        *("live_city", "live_in", "own_company", "have", "have_thing", "know_person", "work_at", "respect"),
        *("collect_thing", "belong", "love", "trust", "be_responsible", "understand_language"),
        *("rich", "famous", "strong (person)"),
    ]
)
"""Frames and adjectives of states that were so before (以前), not at that moment (当时)."""
BEFORE_VERB = ("向", "给", "对", "把", "和", "为")
QUICK = "as soon as possible"
POINTED_AT = frozenset(
    [
        *(
            "animal",
            "dog",
            "wild",
            "remark",
            "text",
            "code:query",
            "plan:method",
            "plan:plan",
            "product:feature",
            "plan:idea",
        ),
        *("plan:measure", "plan:change", "plan:compromise", "plan:suggestion", "plan:proposal"),
        *("person:colleague", "person:student", "person:partner", "profession:pupil", "person:team member"),
        *("person:employee", "person:designer", "person:graphic designer", "person:web designer"),
    ]
)
"""Nouns, or types of them, that would be all of their kind, or a verb, without 那."""
UNIQUE = frozenset(
    [
        *(
            "person",
            "family",
            "profession",
            "group",
            "city",
            "topic",
            "skill",
            "sport",
            "subject",
            "money",
            "charge",
        ),
        *("nature", "sight", "amenity", "site", "fixture", "transport", "opening", "staple", "ingredient"),
    ]
)
"""Types of nouns that one knows without 这."""
SAID_OF = (
    ("庆祝", "(?:^生日|纪念日)$", "过"),
    ("设立", "(?:店|餐厅|健身房|幼儿园|食堂)$", "开"),
    (
        "做完",
        "(?:报告|文章|信|(?<!演示文)稿|文件|月报|总结|摘要|书|手册|指南|说明|须知|教程|简报|备忘录|纪要|记录|邮件|评估|描述|合同|说明书|论文)$",
        "写完",
    ),
    ("穿上", "(?:帽子?|围巾|手套|头巾|披肩)$", "戴上"),
    ("穿上", "(?:领带|领结|皮带)$", "系上"),
    ("脱下", "(?:帽子?|手套)$", "摘下"),
    ("做完", "(?:政策|制度|规定|规范|计划|方案|时间表|路线图)$", "制定完"),
    ("做完", "(?:任务|项目|分析|调查|盘点|核算|检查|测试|设计|订单|工作|审计|调研)$", "完成"),
    ("弹", "提琴$", "拉"),
    ("做", "(?:系统|软件|应用|程序|网站|平台|数据库|工具|功能)$", "开发"),
    ("泡", "(?:柠檬水|昔|汁|鸡尾酒)$", "做"),
    ("打", "^足球$", "踢"),
    ("弄坏", "(?:杯子?|盘子?|碗|瓶子?|碟子?)$", "打碎"),
    ("清洁", "(?:桌子?|椅子?|柜子?|架子?|沙发|镜子|凳子?)$", "擦"),
    ("开发", "(?:战略|策略|方案|计划|培训项目)$", "制定"),
    ("发运", "(?:包裹|样品)$", "寄出"),
    ("否决", "(?:合同|协议)$", "拒签"),
    ("展示", "(?:计划|方案|策略|路线图)$", "介绍"),
    ("降低", "预算$", "削减"),
    ("预订", "按摩$", "预约"),
    ("付", "发票$", "支付"),
)
"""A verb, objects that take another one, and that one."""
OTHERWISE = {"person:client": "委托人", "person:trainee": "见习生"}
"""What these are called beside customers and interns."""
CLOSE = frozenset(
    [
        *("person:boss", "person:colleague", "person:manager", "person:mentor"),
        *("profession:neighbour", "profession:landlord"),
    ]
)
"""People who are somebody's without 的, like the family: 我老板."""
OWN = frozenset(["dog", "family:child", "family:baby", "feast:birthday", "feast:wedding anniversary"])
"""Whose these are goes without saying, if they are the subject's own."""
CARRIED = ("small", "supplies", "document", "certificate", "position")
WITH_ONE = frozenset(["lose", "lose_doc", "lose_job", "advertise_job", "forget", "look_for", "find", "wear"])
"""What one loses, forgets or finds again is one's own: 她弄丢了钱包."""
BRIEFLY = frozenset(
    [
        *("检查", "比较", "解释", "确认", "测试", "更新", "整理", "打扫", "量", "核实", "校对", "审阅"),
        *("收拾", "概括", "总结", "澄清", "估算", "精简", "调整", "讨论", "评估", "分析", "清洁", "扫"),
        *("修", "修理", "看", "准备", "描述", "联系", "简化", "优化", "改正", "翻译", "打印", "扫描"),
        *("计算", "修改", "更正", "搬", "清洗", "布置", "谈", "切", "改进", "更改", "熨"),
    ]
)
"""Verbs that one asks for with 一下."""
UNWILLED = frozenset(
    [
        *(
            "ask_for",
            "arrive_late",
            "break_down",
            "break_thing",
            "catch_cold",
            "cause",
            "cough",
            "crash",
            "cry",
            "drop",
        ),
        *("exceed", "fail_exam", "fall_asleep", "find", "find_job", "find_problem", "forget", "forget_day"),
        *("forget_event", "forget_password", "get_from", "get_hint", "get_job", "ignore", "laugh", "lose"),
        *("lose_doc", "lose_job", "lose_match", "lose_weight", "miss_deadline", "miss_event", "miss_transport"),
        *("notice", "overlook", "pass_exam", "reach_target", "receive", "receive_goods", "recover", "see_nature"),
        *("smile", "solve", "support", "support_plan", "sweat", "win", "help", "help_family"),
    ]
)
"""Frames of what will happen (会), not of what somebody is going to do (要)."""
TAKEN = frozenset(
    [
        *("adopt", "borrow_book", "borrow_device", "buy", "buy_for", "buy_medicine", "buy_thing", "choose"),
        *("find_problem", "get_from", "order", "order_goods", "order_online", "receive", "receive_goods", "rent"),
        *("sell", "sell_used", "sell_thing", "recommend", "recommend_book", "buy_company", "manage", "listen"),
        "launch",
        *("build_furniture", "develop", "prefer", "invest", "knit", "sew", "write_essay", "hire", "try_on"),
    ]
)
"""Frames of what comes to one, or to be, so that a noun alone would be a new thing: 我买了那艘帆船."""
HIRED = ("hire", "recommend_person", "interview")
"""Frames of one of several people: 聘用了那位律师."""
GOES = "=?去|=来|=回.家|出去|=坐飞机|=动身|=开车去"
"""Cells of where one is going, which one means to do."""
ROLE = re.compile(r"^([^OT]*)([OT])([^OT]*)$")
SOON = ("marry", "move_house", "move_in", "resign", "retire")
"""What is said with 要 … 了 if no time is named."""
ENJOYED = {"drink": "喝"} | dict.fromkeys(("food", "fruit", "vegetable", "sweet", "meal", "staple"), "吃")
ENJOYED |= {"show": "看", "sport": "做"}
"""A type → what one likes to do with it: 喜欢喝牛奶."""
ONE_MORE = frozenset(
    [
        *(
            "explain",
            "explain_code",
            "check",
            "read",
            "read_book",
            "review_code",
            "test",
            "test_code",
            "proofread",
        ),
        *(
            "repeat",
            "show",
            "present",
            "describe",
            "inspect",
            "review_plan",
            "analyze",
            "rewrite",
            "verify",
            "summarize",
        ),
    ]
)
"""What is done 一遍 if it is done again, not 一次."""
FINISHED = frozenset(
    [
        *"看读吃喝写做洗听讲唱画切煮烤修扫擦量熨织缝遛跑游骑弹谈聊泡打干散搬",
        *("检查", "打印", "扫描", "讨论", "打扫", "收拾", "准备", "翻译", "校对", "测试", "修改", "修理", "布置"),
        *("清洁", "粉刷", "面试", "更正", "核实", "总结", "分析", "安装", "整理", "练习", "复习", "填写", "调试"),
        *("清洗", "计算", "比较", "审阅", "编辑"),
    ]
)
"""Verbs that are said with 完 before 之后: 看完报告之后."""
FINISHED_GOING = {"跑步": "跑完步", "慢跑": "慢跑完", "看电影": "看完电影", "吃午饭": "吃完午饭"}
FINISHED_GOING |= {"游泳": "游完泳", "滑雪": "滑完雪", "买东西": "买完东西", "钓鱼": "钓完鱼", "看病": "看完病"}
FINISHED_GOING |= {"看话剧": "看完话剧", "骑自行车": "骑完自行车", "远足": "远足回来", "露营": "露营回来"}
FINISHED_GOING |= {"度假": "度完假"}
"""Where one went → what is over before 之后."""
SKILLS = re.compile("[织缝弹拉唱跳游滑骑说画]|做\\|饭|开车")
"""Verbs that 会 would say one is able to."""
WATCHED = re.compile("参加|[看读听吃喝]")
"""Verbs of what one takes part in, so that one does not ask who comes to do it (谁来)."""
HIT = ("forget", "forget_password", "lose", "lose_doc", "miss_transport")
"""What one does something about at once: 她忘了密码，就 …, not 忘记密码之后."""
