"""Texts in two scripts: clinical notes, chats, names in a foreign script."""

import re

import pytest

from data_beam.base.records import Document
from data_beam.clean import language as module
from data_beam.clean.language import LanguageFilter, LanguageIdentifier, cld2_share, main_script
from data_beam.config import LanguageConfig
from tests.data_beam.debian_material import books
from tests.data_beam.filters.cases import document

NOTES = [
    pytest.param("zh", (
        "患者BP 120/80mmHg, HR 78bpm, ECG示ST段抬高, 给予aspirin 300mg po。"),
        id="emergency"),
    pytest.param("zh", (
        "患者男，58岁，因“胸痛3h”入院。PE: BP 150/95mmHg, HR 102bpm, SpO2 94%。ECG: V1-V4 ST段"
        "弓背向上抬高，cTnI 12.6ng/mL，CK-MB 85U/L。Dx: STEMI (acute anterior MI), Killip II。"
        "予aspirin 300mg + ticagrelor 180mg po，heparin 5000U iv，急诊PCI，LAD植入DES 1枚，"
        "TIMI 3级。术后atorvastatin 40mg qn，metoprolol 23.75mg qd。"),
        id="admission with an infarction"),
    pytest.param("zh", (
        "胸部CT平扫+增强：RUL见一约2.3cm×1.8cm结节，SUVmax 8.6，考虑NSCLC，cT1cN0M0。建议"
        "EGFR/ALK/ROS1检测，MDT讨论后行VATS lobectomy。"),
        id="chest CT"),
    pytest.param("zh", (
        "Na+ 132mmol/L，K+ 5.8mmol/L，Cr 312μmol/L，eGFR 18mL/min/1.73m2，考虑CKD G4，予"
        "calcium gluconate 10% 10ml iv，insulin 10U + glucose 50% 50ml ivgtt。"),
        id="electrolytes"),
    pytest.param("zh", (
        "T 38.6℃，WBC 15.2×10^9/L，NEUT% 89%，CRP 120mg/L，PCT 2.3ng/ml。痰培养：Klebsiella "
        "pneumoniae (ESBL+)。改用meropenem 1g q8h ivgtt。"),
        id="infection"),
    pytest.param("zh", (
        "出院带药：amlodipine 5mg qd，valsartan 80mg qd，metformin 0.5g tid，rosuvastatin 10mg "
        "qn。2周后门诊复查BP、FBG、HbA1c、LDL-C。"),
        id="discharge"),
    pytest.param("zh", (
        "G2P1，孕39+2周，LOA，FHR 142bpm，NST反应型，宫口开3cm，予oxytocin 2.5U ivgtt，Apgar评"
        "分9-10-10分。"),
        id="obstetrics"),
    pytest.param("zh", (
        "我昨天跟team开了个meeting，PPT的deadline改到next Friday了，你那个report记得upload到"
        "drive。"),
        id="chat about work"),
    pytest.param("zh", (
        "哈哈哈这个app的UI真的很nice，就是login老是fail，客服说update一下就OK了"),
        id="chat about an app"),
    pytest.param("zh", (
        "病人既往有COPD病史10余年，长期吸入budesonide/formoterol，本次AECOPD，ABG: pH 7.31, "
        "PaCO2 68mmHg, PaO2 52mmHg，予NIV (BiPAP) 通气，methylprednisolone 40mg iv qd。"),
        id="lungs"),
    pytest.param("zh", (
        "患者女性，45歲，因右上腹痛2天入院。US: GB壁增厚，Murphy sign (+)，WBC 13.8k/μL，予"
        "ceftriaxone 2g IV qd，安排LC手術。"),
        id="traditional characters"),
    pytest.param("zh", (
        "安装完成后运行 pip install torch，然后执行 python train.py --config config.yaml，检查 "
        "CUDA 是否可用。"),
        id="installation"),
    pytest.param("zh", (
        "ICU护理记录：02:00 RASS -2，propofol 20ml/h，norepinephrine 0.15μg/kg/min，MAP 68mmHg"
        "，CVP 10cmH2O，尿量40ml/h，双肺可闻及湿啰音。"),
        id="intensive care"),
    pytest.param("en", (
        "Dr. Zhang Wei (张伟) and Dr. Li Na (李娜) of Peking Union Medical College Hospital (北"
        "京协和医院) reported forty patients with acute myocardial infarction who were treated "
        "within two hours."),
        id="English: names"),
    pytest.param("en", (
        "The formula known as Sini Tang (四逆汤) contains aconite (附子), dried ginger (干姜) "
        "and licorice (甘草), and has been used for the treatment of shock since the Han "
        "dynasty."),
        id="English: drugs"),
    pytest.param("en", (
        "Patient admitted with chest pain for 3 h. BP 150/95 mmHg, HR 102 bpm, ECG: ST "
        "elevation in V1-V4. Given aspirin 300 mg po and ticagrelor 180 mg. Contact: 王芳 "
        "(wife)."),
        id="English: note"),
    pytest.param("en", (
        "Please send the invoice to 上海明德医疗科技有限公司 before Friday, and ask Mr. 陈 to "
        "confirm the delivery address."),
        id="English: invoice"),
    pytest.param("ja", (
        "患者は58歳男性。胸痛を主訴に救急搬送。BP 150/95mmHg、HR 102bpm、ECGでV1-V4のST上昇を認"
        "め、STEMIと診断しaspirin 200mgとprasugrel 20mgを投与、緊急PCIを施行した。"),
        id="Japanese: note"),
    pytest.param("ja", (
        "CTにてRULに2.3cmの結節を認める。SUVmax 8.6、NSCLC疑い。EGFR/ALKを検査し、VATS "
        "lobectomyを予定。"),
        id="Japanese: CT"),
    pytest.param("ja", (
        "明日のmeetingはZoomでやります。slideはGoogle Driveにuploadしておいてください。"),
        id="Japanese: chat"),
    pytest.param("ko", (
        "환자는 58세 남성으로 chest pain 3시간 지속되어 내원. BP 150/95mmHg, HR 102bpm, ECG에서"
        " V1-V4 ST elevation 확인, STEMI 진단하에 aspirin 300mg 투여 후 PCI 시행함."),
        id="Korean: note"),
]


@pytest.mark.parametrize("second_vote", ["none", "cld2"])
@pytest.mark.parametrize("language, text", NOTES)
def test_a_text_in_two_scripts_has_the_language_of_its_prose(language, text, second_vote):
    """Neither model alone knows: fastText says Tagalog or Japanese of the notes, CLD2 English."""
    result = LanguageFilter(LanguageConfig(second_vote=second_vote))(document(text, ""))
    assert isinstance(result, Document)
    assert result.language == language
    assert result.language_score is not None and 0.8 < result.language_score <= 1


@pytest.mark.parametrize("language, text", NOTES)
def test_a_medical_recipe_keeps_the_notes_in_its_languages(language, text):
    rule = LanguageFilter(LanguageConfig(languages=("zh", "en"), second_vote="cld2"))
    assert isinstance(rule(document(text, "")), Document) == (language in ("zh", "en"))


@pytest.mark.parametrize("text, language", [
    ("检验结果正常", "zh"),
    ("设定您的鼠标", "zh"),
    ("列奥纳多・达・芬奇是意大利画家。", "zh"),  # the dots are no kana
    ("Ｃ Ｔ検査を受けました", "ja"),
    ("Привет, 李明! Как дела?", "ru"),
    ("Ngày 5 tháng 3 tôi gặp 李明 ở Hà Nội", "vi"),
    ("Ο Δρ. 王 εξέτασε τον ασθενή και του έδωσε τα φάρμακα.", "el"),
    ("นายแพทย์ 王 ตรวจผู้ป่วยแล้วให้ยา", "th"),
])
def test_few_characters_are_enough_for_a_script(text, language):
    assert LanguageIdentifier(LanguageConfig().min_score)(text)[0] == language


@pytest.mark.parametrize("text, part", [
    ("plain English, 5 mg", "plain English, 5 mg"),
    ("患者BP 120/80mmHg，给予aspirin 300mg po。", "患者 ，给予 。"),
    ("Mr. 陈 will come on Monday", "Mr.   will come on Monday"),
    # 3 for a Han character and 1 for a letter of three words in a row: 12 and 13, 12 and 11.
    ("tea and more tea 茶的历史", "tea and more tea     "),
    ("tea and more ta 茶的历史", "tea and more ta     "),
    ("tea or more t 茶的历史", "茶的历史"),
    # A tenth for a letter of fewer words: 3 and 2.9, 3 and 3; a unit is nothing.
    ("王" + " abcdefghij 1" * 2 + " abcdefghi 1", "王"),
    ("王" + " abcdefghij 1" * 3, " abcdefghij 1" * 3),
    ("王" + " 5 mg 5mmol" * 50, "王"),
    ("", ""), ("12", "12"),
])
def test_the_main_script_is_that_whose_letters_say_more(text, part):
    assert main_script(text).strip() == part.strip()


def test_a_han_character_says_as_much_as_three_letters():
    """Measured on translations: Latin letters that the Chinese text saves, per Han character."""
    text = {book.name: book.plain() for book in books()}
    weights = []
    for english, chinese in [
            ("debian-faq-en", "debian-faq-zh-cn"),
            ("debian-reference-en", "debian-reference-zh-cn"),
            ("debian-reference-en", "debian-reference-zh-tw"),
            ("debmake-doc-en", "debmake-doc-zh-cn"),
            ("installation-guide-en", "installation-guide-zh_CN")]:
        letters = [len(re.findall("[A-Za-z]", text[name])) for name in (english, chinese)]
        weights.append((letters[0] - letters[1]) / len(module._HAN.findall(text[chinese])))
    assert min(weights) > 2.6 and max(weights) < 3.2
    assert round(sorted(weights)[2]) == module._HAN_WEIGHT


def test_short_chinese_has_a_language():
    """fastText gives one in twelve of these under a half, to languages without Han too."""
    text = next(book for book in books() if book.name == "debian-faq-zh-cn").plain()
    stretches = [each[:6] for each in re.findall("[\u4e00-\u9fff]{6,}", text)][:600]
    identify = LanguageIdentifier(LanguageConfig().min_score)
    named = [identify(each)[0] for each in stretches]
    assert named.count("zh") > 0.98 * len(named)


def test_what_cld2_calls_japanese_without_kana_is_chinese():
    """CLD2 itself says Japanese, 98 %."""
    assert cld2_share("患者意識清明、血圧正常、胸部聴診異常無", "zh") == 0.98
    assert cld2_share("これは日本語の文章です。", "zh") == 0
