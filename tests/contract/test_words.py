"""What a note holds is found by what a person types of it, in every script; no word is claimed that it lacks."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.words import fold, guess, index_text, index_words, parts_of_names, split_words, stems
from tests.support.engine import Engine, write

INFLECTIONS = json.loads((Path(__file__).parents[1] / "fixtures" / "inflections.json").read_text(encoding="utf-8"))


@pytest.fixture
def engine(short_tmp: Path) -> Iterator[Engine]:
    with Engine(short_tmp, model=None) as made:
        yield made


def indexed(engine: Engine, **notes: str) -> None:
    for name, text in notes.items():
        write(engine.vault, f"{name}.md", text)
    write(engine.vault, "other.md", "Weather and wood.\n")
    engine.index()


def claims(engine: Engine, query: str) -> dict[str, list[str]]:
    """By note, the words of the query that a search says it holds."""
    said: dict[str, list[str]] = {}
    for hit in engine.search(query):
        words = [reason.removeprefix("words: ").split(", ") for reason in hit.why if reason.startswith("words: ")]
        said.setdefault(hit.path, list(itertools.chain(*words)))
    return said


# ---------------------------------------------------------------------------------------- one fold, on both sides

SAME = [
    ("Ёжик", "ежик"),
    ("Straße", "STRASSE"),
    ("Łódź", "lodz"),
    ("Đặng", "dang"),
    ("Ærø", "aero"),
    ("Œuvre", "oeuvre"),
    ("İstanbul", "istanbul"),
    ("δέντρο", "δεντρο"),
    ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
    ("ᾳ", "α"),
    ("שָׁלוֹם", "שלום"),
    ("كِتَابُ", "كتاب"),
    ("أحمد", "احمد"),
    ("مكتبـــة", "مكتبة"),
    ("إناء", "اناء"),
    ("مسؤول", "مسوول"),
    ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
    ("ＮＨＫ", "nhk"),
    ("２０２６年", "2026年"),
    ("certiﬁcate", "certificate"),
    ("diﬀerent", "different"),
    ("cafe\u0301", "café"),
    ("x²", "x2"),
    ("٢٠٢٦", "2026"),
    ("soft\u00adhyphen", "softhyphen"),
    ("น้\u0e33", "น\u0e4d\u0e49า"),
    ("자전거", "자전거"),
    ("ǅungla", "dzungla"),
    ("ⅷ", "VIII"),
    ("کتاب", "كتاب"),
]
OTHER = [
    ("か", "が"),
    ("は", "ぱ"),
    ("мой", "мои"),
    ("ї", "і"),
    ("กา", "กำ"),
    ("कि", "की"),
    ("12", "1204"),
    ("c++", "c"),
    ("c#", "c"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_words_that_a_reader_takes_for_the_same_are_the_same(one: str, other: str) -> None:
    assert index_words(one) == index_words(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_words_that_mean_something_else_are_kept_apart(one: str, other: str) -> None:
    assert index_words(one) != index_words(other)


# A few words in each script that Unicode recommends for identifiers, beside those above.
SCRIPTS = {
    "Arabic": "ذهبت إلى المدرسة",
    "Armenian": "Գիրքը սեղանի վրա",
    "Bengali": "বইটি টেবিলের উপর",
    "Bopomofo": "ㄅㄆㄇㄈ",
    "Cyrillic": "Їжак під ґанком, ўсё",
    "Devanagari": "किताब मेज़ पर है",
    "Ethiopic": "መጽሐፉ ጠረጴዛ ላይ",
    "Georgian": "წიგნი მაგიდაზე",
    "Greek": "Το βιβλίο είναι εδώ",
    "Gujarati": "પુસ્તક ટેબલ પર",
    "Gurmukhi": "ਕਿਤਾਬ ਮੇਜ਼ ਤੇ",
    "Han": "书在桌子上",
    "Hangul": "책은 책상 위에",
    "Hebrew": "הַסֵּפֶר עַל הַשֻּׁלְחָן",
    "Hiragana": "ほんはつくえのうえ",
    "Kannada": "ಪುಸ್ತಕ ಮೇಜಿನ ಮೇಲೆ",
    "Katakana": "パソコンのデータ",
    "Khmer": "សៀវភៅនៅលើតុ",
    "Lao": "ປຶ້ມຢູ່ເທິງໂຕະ ນ້ຳ",
    "Latin": "Příliš žluťoučký kůň",
    "Malayalam": "പുസ്തകം മേശപ്പുറത്ത്",
    "Myanmar": "စာအုပ်စားပွဲပေါ်မှာ",
    "Oriya": "ବହି ଟେବୁଲ ଉପରେ",
    "Sinhala": "පොත මේසය මත",
    "Tamil": "புத்தகம் மேசை மேல்",
    "Telugu": "పుస్తకం బల్ల మీద",
    "Thaana": "ފޮތް މޭޒުމަތީ",
    "Thai": "หนังสืออยู่บนโต๊ะ น้ำ",
    "Tibetan": "དེབ་ཅོག་ཙེའི་སྟེང་།",
}


def spellings(text: str) -> dict[str, str]:
    """A text as different programs write it."""
    forms = {form: unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    return forms | {"upper": text.upper(), "lower": text.lower(), "title": text.title()}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_a_text_has_the_same_words_however_it_is_encoded(text: str) -> None:
    assert index_words(text)
    assert {spelling: index_words(other) for spelling, other in spellings(text).items()} == {
        spelling: index_words(text) for spelling in spellings(text)
    }


def test_what_a_note_holds_is_found_by_that_very_text(engine: Engine) -> None:
    indexed(engine, **{script: f"{text}\n" for script, text in SCRIPTS.items()})
    missed = {
        (script, spelling, word)
        for script, text in SCRIPTS.items()
        for spelling, other in spellings(text).items()
        for word in (*other.split(), f'"{other}"')
        if f"{script}.md" not in engine.found(word)
    }
    assert missed == set()


@given(st.text(min_size=1, max_size=30))
def test_any_text_shares_its_words_with_its_other_forms(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert index_words(unicodedata.normalize(form, text)) == index_words(text)
    assert split_words(index_text(text)) or not index_words(text)


@given(st.text(max_size=60))
def test_folding_what_is_folded_changes_nothing(text: str) -> None:
    assert index_words(fold(text)) == index_words(text)


# ---------------------------------------------------------------------------------------- found, as reported

FOUND = [
    pytest.param(
        "설탕은 부엌에 있고 밀가루를 창고에 둔다. 주문이 들어오면 재고를 확인한다.",
        "설탕 창고 주문 재고 확인 부엌",
        id="particles",
    ),
    pytest.param("고양이가 물을 마신다", "고양이 고양이는 물", id="other particles"),
    pytest.param("책상에서 도서관까지", "책상 도서관", id="long particles"),
    pytest.param(unicodedata.normalize("NFD", "자전거 수리 방법"), "자전거", id="decomposed Hangul"),
    pytest.param(unicodedata.normalize("NFD", "バナナとパンダが好き"), "バナナ パンダ", id="decomposed kana"),
    pytest.param(unicodedata.normalize("NFD", "Ёжик и йод"), "ёжик йод", id="decomposed Cyrillic"),
    pytest.param("שָׁלוֹם לכולם", "שלום", id="Hebrew points"),
    pytest.param("كِتَابُ الزراعة، إناء، أحمد إلى مكتبـــة", "كتاب اناء احمد الى مكتبة", id="Arabic marks"),
    pytest.param("The certiﬁcate of the ﬂoat was diﬀerent.", "certificate float different", id="ligatures"),
    pytest.param("ﾃﾞｰﾀﾍﾞｰｽのﾊﾞｯｸｱｯﾌﾟは毎晩。ＮＨＫ ２０２６年。", "データベース バックアップ nhk 2026", id="widths"),
    pytest.param("The regatta was 🔥 this year, 👩‍💻 and ❤️ and 👍🏽.", "🔥 👩‍💻 ❤ 👍", id="emoji"),
    pytest.param("It costs 5€ → paid ≥ 3 times at 25°C", "€ → ≥ °", id="symbols"),
    pytest.param(
        "Call `parseHeaderLine()` or tide_table_reader, HTTPServer",
        "header parse tide reader server parseHeaderLine",
        id="names",
    ),
    pytest.param(
        "See the [silver key](https://keys.example/a/b) lies under", '"silver key lies" keys', id="across a link"
    ),
    pytest.param(
        "under the [[Harbour loaf|loaf]] of bread[^1] here",
        '"the loaf of" "bread here" harbour',
        id="across a wiki link",
    ),
    pytest.param("a <b>bold</b> word", '"bold word"', id="across HTML"),
    pytest.param("C++ and C# and F# on .NET with node.js", "c++ C# f# .NET node.js", id="languages of programs"),
]


@pytest.mark.report("https://github.com/garrytan/gbrain/issues/5057")
@pytest.mark.report("https://github.com/zotero/zotero/issues/5051")
@pytest.mark.report("https://github.com/scambier/obsidian-omnisearch/issues/520")
@pytest.mark.report("https://github.com/ShokoAnime/ShokoServer/issues/1338")
@pytest.mark.report("https://github.com/tweetback/tweetback/issues/90")
@pytest.mark.report("https://github.com/oomkapwn/enquire-mcp/issues/577")
@pytest.mark.report("https://github.com/scambier/obsidian-omnisearch/issues/391")
@pytest.mark.parametrize(("text", "queries"), FOUND)
def test_a_note_is_found_by_what_a_reader_reads(engine: Engine, text: str, queries: str) -> None:
    indexed(engine, it=f"{text}\n")
    asked = [
        f'"{part}"' if n % 2 else word
        for n, part in enumerate(queries.split('"'))
        for word in ([part] if n % 2 else part.split())
    ]
    assert {query: engine.found(query)[:1] for query in asked} == {query: ["it.md"] for query in asked}


def test_the_whole_of_a_name_ranks_above_its_parts(engine: Engine) -> None:
    indexed(engine, part="Call parseHeaderLine before the tide.\n", whole="The header of the page before the tide.\n")
    assert engine.found("header") == ["whole.md", "part.md"]
    said = claims(engine, "header")
    assert (said["whole.md"], said["part.md"]) == (["header"], [])
    assert parts_of_names("parseHeaderLine HTTPServer README ordinary") == ["http", "server", "parse", "header", "line"]


# ---------------------------------------------------------------------------------------- claims


@pytest.mark.report("https://github.com/lsfusion/platform/issues/1512")
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("car insurance", "Cargo insurance is renewed in March."),
        ("locker 12", "Locker 1204 is by the door."),
        ("port ship", "The ship has a portrait of a porter."),
        ("locker 12", "Locker 12.5 and 3,12 by the door."),
        ("version C", "The version of C++ and of C#."),
        ("net use", "Use a network."),
        ("мир дома", "Мириада дома."),
        ("rat cage", "The rating of a cage."),
    ],
)
def test_a_word_is_claimed_only_where_the_index_holds_it(engine: Engine, query: str, text: str) -> None:
    wrong, right = query.split() if query.split()[0] not in ("locker", "version") else query.split()[::-1]
    indexed(engine, it=f"{text}\n")
    assert claims(engine, query)["it.md"] == [right], wrong


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("happy", "With happiness."),
        ("kilns", "A kiln."),
        ("filing", "A file."),
        ("12", "Locker 12, by the door."),
        ("c++", "We use C++."),
        (".net", "Made with .NET."),
        ("кислота", "С лимонной кислотой."),
        ("casa", "Le case sono belle e non care."),
        ("Haus", "Die Häuser und das alte Haus sind nicht da."),
        ("2026-03-09", "On 2026-03-09 we went."),
    ],
)
def test_an_inflected_word_is_claimed(engine: Engine, query: str, text: str) -> None:
    indexed(engine, it=f"{text}\n")
    found = claims(engine, query)
    assert found["it.md"]


# ---------------------------------------------------------------------------------------- inflection


@pytest.mark.report("https://github.com/vshulcz/deja-vu/issues/262")
def test_inflected_forms_are_found_the_exact_one_first(engine: Engine) -> None:
    indexed(
        engine,
        a="Кофеварку чищу лимонной кислотой.\n",
        b="Новая кофеварка стоит на полке. Книга про кислоты.\n",
        c="Это о другом, и не о том.\n",
    )
    assert engine.found("кофеварка") == ["b.md", "a.md"]
    assert engine.found("кофеварку") == ["a.md", "b.md"]
    best = engine.search("лимонная кислота")[0]
    assert best.path == "a.md" and best.relevance > 0.5


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("кавоварка", "Чищу кавоварку щомісяця, її куплено торік."),
        ("лимонна кислота", "Її чищу лимонною кислотою."),
        ("зустріч", "Після зустрічі поїхав додому."),
        ("שולחן", "הספר על השולחן"),
        ("ספר", "קראתי ובספר כתוב על כך"),
        ("הספר", "ספר על השולחן"),
    ],
)
def test_words_meet_in_languages_that_have_no_stemmer(engine: Engine, query: str, text: str) -> None:
    indexed(engine, a=f"{text}\n", b="Nothing of the kind.\n")
    assert engine.found(query) == ["a.md"] and claims(engine, query)["a.md"]


@pytest.mark.report("https://github.com/ShokoAnime/ShokoServer/issues/1338")
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("2026", "ＮＨＫ ２０２６年。"),
        ("2026", "第2026号"),
        ("NHK", "最新のNHKの番組"),
        ("docker", "ใช้dockerแล้ว"),
        ("5kg", "쌀 5kg를 샀다"),
        ("python", "用Python写的"),
        ("gpt-4", "新しいGPT-4モデル"),
    ],
)
def test_a_word_ends_where_a_script_without_spaces_begins(engine: Engine, query: str, text: str) -> None:
    indexed(engine, a=f"{text}\n", b="Nothing of the kind.\n")
    assert engine.found(query) == ["a.md"] and claims(engine, query)["a.md"]


@pytest.mark.parametrize(("text", "number"), [("12026年", "2026"), ("1.5万", "5"), ("20261号", "2026")])
def test_a_number_stays_whole_beside_such_a_script(engine: Engine, text: str, number: str) -> None:
    indexed(engine, a=f"{text}\n")
    assert not claims(engine, number).get("a.md")


@pytest.mark.parametrize(("language", "least"), [("ru", 0.9), ("it", 0.9), ("de", 0.95)])
def test_a_noun_meets_its_inflections(language: str, least: float) -> None:
    nouns: dict[str, list[str]] = INFLECTIONS[language]
    assert len(nouns) >= 50
    forms = [(noun, form) for noun, others in nouns.items() for form in (noun, *others)]
    met = sum(fold(noun) == fold(form) or stems([noun], language) == stems([form], language) for noun, form in forms)
    assert met / len(forms) >= least


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Das ist ein Haus und nicht mehr als das", "de"),
        ("We have a note and this is it", "en"),
        ("Кофеварку чищу лимонной кислотой", "ru"),
        ("Їжак і ґанок під хатою", "uk"),
        ("הספר על השולחן", "he"),
        ("Questa è la mia casa e non la tua", "it"),
        ("Το βιβλίο", "el"),
        ("ذهبت إلى المدرسة", "ar"),
        ("او به مدرسه می‌رود چون پدرش گفت", "fa"),
        ("यह किताब है", "hi"),
        ("# Tasks\n- [ ] call", ""),
        ("", ""),
        ("書は机の上", ""),
        ("Bu ev için bir şey ama daha çok", "tr"),
    ],
)
def test_the_language_of_a_note_is_guessed(text: str, language: str) -> None:
    assert guess(text) == language
