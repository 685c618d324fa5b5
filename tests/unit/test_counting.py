"""What a text costs a model: estimated by its characters, learnt from what servers count."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.parse.tokens import least_tokens, tokens
from tarsd.providers.base import Message, ModelRequest
from tarsd.providers.counting import REASONING, ReadCheck, TokenRatios, halved, with_room
from tarsd.upstream import fault

REPORT = "https://github.com/joshuaswarren/remnic/issues/2188"


def _digest(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def _number(row: int, column: int) -> int:
    return int.from_bytes(_digest(row * 8 + column)[:3], "big")


TABLE = "\n".join(
    "| " + " | ".join(f"{_number(row, column) / 16777:.2f}" for column in range(8)) + " |" for row in range(60)
)
KINDS = {
    "a table of numbers": (TABLE, 2460, 3897),
    "digits": ("".join(str(byte % 10) for n in range(40) for byte in _digest(n)), 427, 1282),
    "dates": (
        "\n".join(
            f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}T{n % 24:02}:{n * 7 % 60:02}:{n * 11 % 60:02}Z" for n in range(90)
        ),
        1259,
        1891,
    ),
    "base64": (base64.b64encode(b"".join(map(_digest, range(70)))).decode(), 2022, 2422),
    "hashes": ("\n".join(_digest(n).hex() for n in range(40)), 1501, 2335),
    "JSON": (
        json.dumps(
            [{"id": n, "name": f"item {n}", "values": [b / 255 for b in _digest(n)[:4]], "ok": True} for n in range(30)]
        ),
        1839,
        3109,
    ),
    "emoji": ("😀😂🥰🤔🎉🚀🌍🍕🐈📚⚡🧠🏔🪐🧑🏽‍🚀👨‍👩‍👧🇩🇪" * 20, 960, 1742),
    "Japanese": (
        "昨日は会議が長引いて、夕食を作る時間がありませんでした。明日の朝は早く起きて、図書館に行くつもりです。" * 8,
        304,
        736,
    ),
    "Chinese": (
        "昨天的会议拖得很长,没有时间做晚饭。明天早上我打算早点起床去图书馆。关于新项目我会做一些笔记。" * 8,
        312,
        586,
    ),
    "Korean": (
        "어제 회의가 길어져서 저녁을 만들 시간이 없었습니다. 내일 아침에는 일찍 일어나서 도서관에 갈 생각입니다." * 8,
        280,
        714,
    ),
    "Thai": ("เมื่อวานการประชุมยืดเยื้อจนไม่มีเวลาทำอาหารเย็น พรุ่งนี้เช้าฉันตั้งใจจะตื่นแต่เช้าและไปห้องสมุด" * 8, 320, 1434),
    "Hindi": ("कल बैठक लंबी चली और रात का खाना बनाने का समय नहीं था। कल सुबह मैं जल्दी उठकर पुस्तकालय जाऊँगा।" * 8, 224, 850),
    "Russian": (
        "Вчера собрание затянулось, и не было времени приготовить ужин. Завтра утром я пойду в библиотеку." * 8,
        209,
        337,
    ),
    "Greek": (
        "Χθες η συνάντηση τράβηξε πολύ και δεν υπήρχε χρόνος να μαγειρέψω βραδινό. Αύριο θα ξυπνήσω νωρίς." * 8,
        352,
        778,
    ),
    "Hebrew": (
        "אתמול הפגישה התארכה ולא היה זמן להכין ארוחת ערב. מחר בבוקר אני מתכוון לקום מוקדם וללכת לספרייה." * 8,
        296,
        762,
    ),
    "Arabic": (
        "أمس طال الاجتماع ولم يكن هناك وقت لطهي العشاء. صباح الغد أنوي الاستيقاظ مبكرا والذهاب إلى المكتبة." * 8,
        248,
        690,
    ),
    "German": (
        "Gestern zog sich die Besprechung in die Länge, und für das Abendessen blieb keine Zeit mehr übrig." * 8,
        192,
        241,
    ),
    "Markdown": (
        "- [ ] [[Projects/Alpha|Alpha]] #todo/urgent **bold** and `code`, due ==Friday== with the others\n" * 8,
        232,
        265,
    ),
    "English": (
        "The meeting ran long yesterday and there was no time to cook dinner, so we ordered soup instead. " * 8,
        161,
        162,
    ),
}
"""A text, and the fewest and the most tokens that the tokenizers of models in use make of it."""


@pytest.mark.report(REPORT)
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_near_what_tokenizers_make_of_it(kind: str) -> None:
    text, fewest, most = KINDS[kind]
    assert 0.85 * most <= tokens(text) <= 2 * most
    assert 0.1 * fewest <= least_tokens(text) <= fewest


@given(st.text(), st.text())
def test_the_estimate_grows_with_the_text(one: str, two: str) -> None:
    assert least_tokens(one) >= 0 and tokens(one) > 0
    assert tokens(one) + tokens(two) + 4 >= tokens(one + "\n" + two) >= tokens(two) - 4


@pytest.mark.parametrize("piece", ["a", "1", "-", " ", "\n", "é", "語", "ก", "😀", "\ud800", "aB", "| 1 "])
def test_a_megabyte_is_counted_in_one_go(piece: str) -> None:
    assert tokens(piece * (1_000_000 // len(piece))) > 1000 or piece in "-"


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.report(REPORT)
@pytest.mark.parametrize(
    ("said", "asked", "window"),
    [
        ("request (4044 tokens) exceeds the available context size (1024 tokens), try increasing it", 4044, 1024),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3976 in the "
            "messages, 1024 in the completion). Please reduce the length of the messages.",
            3976,
            4096,
        ),
        ("maximum context length is 8192 tokens. However, your messages resulted in 10,000 tokens.", 10_000, 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 210_000, 200_000),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease", 188_240, 200_000),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 40_000, 32_768),
        ("The input token count (12000) exceeds the maximum number of tokens allowed (10485).", 12_000, 10_485),
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens",
            5000,
            4096,
        ),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 `inputs` tokens and 512", 3900, 4096),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 5000, 4096),
        ("This model's maximum prompt length is 131072 but the request contains 200000 tokens.", 200_000, 131_072),
        ("Requested tokens (5000) exceed context window of 4096", 5000, 4096),
        ("too many tokens: total number of tokens in the prompt exceeds the limit of 4081.", 0, 4081),
        ("Input is too long for requested model.", 0, 0),
        ("the prompt is longer than the context length currently available to the model", 0, 0),
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_tells_how_much_it_reads_and_was_sent(said: str, asked: int, window: int, status: int) -> None:
    told = fault(status, {"error": {"message": said}})
    assert (told.kind, told.asked, told.window) == ("too long", asked, window)


@pytest.mark.parametrize(
    "said",
    [
        "Too many tokens, please wait before trying again.",
        "Request too large on tokens per min (TPM): Limit 30000, Requested 40000.",
    ],
)
def test_a_limit_by_the_minute_is_no_length(said: str) -> None:
    assert fault(429, {"error": {"message": said}}).kind == "busy"


# ------------------------------------------------------------------------------------------------ ratios


def test_more_is_believed_at_once_and_less_by_and_by() -> None:
    ratios = TokenRatios()
    assert ratios.of("m") == 1
    ratios.learn("m", 1000, 1800)
    assert ratios.of("m") == 1.8 and ratios.of("other") == 1
    ratios.learn("m", 1000, 900)
    assert 1.5 < ratios.of("m") < 1.8
    for _ in range(99):
        ratios.learn("m", 1000, 450)
    assert ratios.of("m") == 0.6


@pytest.mark.parametrize(
    ("estimated", "told"), [(1000, 0), (1000, 12), (1000, 399), (100, 300)], ids=["none", "made up", "cached", "short"]
)
def test_a_count_of_something_else_is_not_learnt(estimated: int, told: int) -> None:
    ratios = TokenRatios()
    ratios.learn("m", estimated, told)
    assert ratios.of("m") == 1


def test_what_may_have_been_cut_makes_no_prompt_longer() -> None:
    ratios = TokenRatios()
    ratios.learn("m", 4000, 2050, 4096)
    assert ratios.of("m") == 1


def test_ratios_are_bounded() -> None:
    ratios = TokenRatios()
    for number in range(1000):
        ratios.learn(f"m{number}", 1000, 90_000)
    assert ratios.of("m999") == 4 and ratios.of("m0") == 1


# ------------------------------------------------------------------------------------------------ prompts that were cut


def request(*texts: str, system: str = "Be brief.") -> ModelRequest:
    return ModelRequest(system, tuple(Message("user", text) for text in texts))


LONG = "The meeting ran long and there was no time to cook dinner, so we ordered soup instead. " * 300


@pytest.mark.report("https://github.com/itayinbarr/little-coder/issues/128")
@pytest.mark.parametrize("read", [2050, 1026, 514, 40])
def test_a_count_far_below_what_was_sent_is_noticed(read: int) -> None:
    assert ReadCheck().is_cut(request(LONG), read)


@pytest.mark.parametrize("read", [0, 12, 5000, 9000], ids=["none", "made up", "a good tokenizer", "a poor one"])
def test_a_count_that_may_be_right_is_not(read: int) -> None:
    assert not ReadCheck().is_cut(request(LONG), read)


def test_what_may_be_in_a_cache_is_not_missed() -> None:
    check = ReadCheck()
    assert not check.is_cut(request(LONG), 5000)
    assert not check.is_cut(request(LONG, "And now?"), 60)
    assert check.is_cut(request(LONG, "And " + LONG), 1026)
    assert check.is_cut(request(LONG, "And now?"), 1026, whole=True)


@pytest.mark.parametrize(
    "text", [TABLE, KINDS["Chinese"][0] * 9, KINDS["Thai"][0] * 9, "😀" * 4000, "parseLine " * 999]
)
def test_a_good_tokenizer_is_no_cut(text: str) -> None:
    least = {TABLE: 2460, "😀" * 4000: 4000, "parseLine " * 999: 1998}.get(text, 312 * 9)
    assert not ReadCheck().is_cut(request(text), least)


@pytest.mark.parametrize(("read", "cut"), [(2050, True), (4095, True), (4096, True), (2100, False), (300, False)])
def test_what_ollama_leaves_of_a_prompt_is_known(read: int, cut: bool) -> None:
    assert halved(read, 4096) is cut and not halved(read, 0)


def test_reasoning_gets_room_where_there_is_some() -> None:
    assert with_room(request("hello"), 16_384).max_tokens == 2048 + REASONING
    assert 2048 < with_room(request("hello"), 4096).max_tokens < 4096
    assert with_room(request(LONG), 4096).max_tokens == 2048
