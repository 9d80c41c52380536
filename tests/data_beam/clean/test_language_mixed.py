"""Texts in two scripts: clinical notes, chats, names in a foreign script."""


import pytest

from data_beam.base.records import Document
from data_beam.clean.language import LanguageFilter, LanguageIdentifier, cld2_share, main_script
from data_beam.config import LanguageConfig
from tests.data_beam.filters.cases import document

NOTES = [
    ("zh", "患者BP 120/80mmHg, HR 78bpm, ECG示ST段抬高, 给予aspirin 300mg po。"),
    ("zh", "T 38.6℃，WBC 15.2×10^9/L，NEUT% 89%，CRP 120mg/L，PCT 2.3ng/ml。痰培养：Klebsiella "
           "pneumoniae (ESBL+)。改用meropenem 1g q8h ivgtt。"),
    ("zh", "我昨天跟team开了个meeting，PPT的deadline改到next Friday了，你那个report记得"
           "upload到drive。"),
    ("zh", "安装完成后运行 pip install torch，然后执行 python train.py --config config.yaml，检查 "
           "CUDA 是否可用。"),
    ("en", "Patient admitted with chest pain for 3 h. BP 150/95 mmHg, HR 102 bpm, ECG: ST "
           "elevation in V1-V4. Given aspirin 300 mg po and ticagrelor 180 mg. Contact: 王芳 "
           "(wife)."),
    ("en", "Please send the invoice to 上海明德医疗科技有限公司 before Friday, and ask Mr. 陈 to "
           "confirm the delivery address."),
    ("ja", "明日のmeetingはZoomでやります。slideはGoogle Driveにuploadしておいてください。"),
    ("ko", "환자는 58세 남성으로 chest pain 3시간 지속되어 내원. BP 150/95mmHg, HR 102bpm, ECG에서 "
           "V1-V4 ST elevation 확인, STEMI 진단하에 aspirin 300mg 투여 후 PCI 시행함."),
]


@pytest.mark.parametrize("second_vote", ["none", "cld2"])
@pytest.mark.parametrize("language, text", NOTES)
def test_a_text_in_two_scripts_has_the_language_of_its_prose(language, text, second_vote):
    """Neither model alone knows: fastText says Tagalog or Japanese of the notes, CLD2 English."""
    result = LanguageFilter(LanguageConfig(second_vote=second_vote))(document(text, ""))
    assert isinstance(result, Document)
    assert result.language == language
    assert result.language_score is not None and 0.8 < result.language_score <= 1


@pytest.mark.parametrize("text, language", [
    ("检验结果正常", "zh"), ("设定您的鼠标", "zh"),
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


def test_what_cld2_calls_japanese_without_kana_is_chinese():
    """CLD2 itself says Japanese, 98 %."""
    assert cld2_share("患者意識清明、血圧正常、胸部聴診異常無", "zh") == 0.98
    assert cld2_share("これは日本語の文章です。", "zh") == 0
