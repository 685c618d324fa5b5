"""The memory notes: what is read of them, what is added and taken out, and what contradicts what."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.errors import BadRequest, Conflict, NotFound, Refused
from tarsd.memory import Contradiction, Memory, holds_private, lines
from tarsd.memory.compare import differs, same
from tarsd.parse import parse
from tarsd.vault import Vault, content_hash
from tarsd.writing.changes import Change
from tarsd.writing.notes import Notebook

NOW = datetime(2026, 11, 28, 14, 3, 0)


class Desk:
    """A memory in a vault, with somebody who performs what it plans."""

    def __init__(self, root: Path, *, enabled: bool = True) -> None:
        self.root = root
        self.vault = Vault(root)
        self.memory = Memory(Notebook(self.vault), "tars", enabled=enabled, today=lambda: NOW)

    def put(self, text: str | bytes, name: str = "Memory.md") -> None:
        path = self.root / "tars" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def text(self, name: str = "Memory.md") -> str:
        return (self.root / "tars" / name).read_bytes().decode()

    def perform(self, change: Change | None) -> None:
        assert change is not None
        if change.before is None:
            self.vault.create(change.path, change.after)
        else:
            self.vault.replace(change.path, change.after, content_hash(change.before))

    def remember(self, text: str, **more: str) -> None:
        self.perform(self.memory.remember(text, **more))  # type: ignore[arg-type]

    def facts(self) -> list[str]:
        found = self.memory.listing()["facts"]
        assert isinstance(found, list)
        return [line["line"] for line in found]


@pytest.fixture
def desk(vault: Path) -> Desk:
    return Desk(vault)


# ------------------------------------------------------------------------------------------------ remembering


def test_the_first_fact_makes_the_note(desk: Desk) -> None:
    desk.remember("Otto the cat is diabetic", session="c-3f2a91")
    assert desk.text() == (
        "---\ntars: memory\n---\n\n# Memory\n\n## Facts\n\n- Otto the cat is diabetic %% 2026-11-28 · c-3f2a91 %%\n"
    )
    assert parse(desk.text(), "tars/Memory.md").memory_type == "semantic"
    assert desk.memory.facts(local=False) == "## Facts\n\n- Otto the cat is diabetic"
    assert desk.memory.listing()["facts"] == [
        {
            "line": "Otto the cat is diabetic", "section": "Facts", "date": "2026-11-28", "session": "c-3f2a91",
            "private": False,
        }
    ]  # fmt: skip


def test_a_rule_goes_to_its_own_note(desk: Desk) -> None:
    desk.remember("Answer in metric units", kind="procedural")
    assert desk.text("Procedural.md") == (
        "---\ntars: rules\n---\n\n# Rules\n\n- Answer in metric units %% 2026-11-28 %%\n"
    )
    assert parse(desk.text("Procedural.md"), "tars/Procedural.md").memory_type == "procedural"
    assert desk.memory.rules(local=False) == "- Answer in metric units"
    assert desk.memory.facts(local=True) == ""


def test_facts_follow_each_other_and_sections_are_made_when_named(desk: Desk) -> None:
    desk.remember("I live in Bergen")
    desk.remember("I like tea")
    desk.remember("Ada is my sister", section="People")
    desk.remember("I like coffee")
    assert desk.memory.facts(local=True) == (
        "## Facts\n\n- I live in Bergen\n- I like tea\n- I like coffee\n\n## People\n\n- Ada is my sister"
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("- - I like\n  tea", "I like tea"),
        ("# I like tea", "I like tea"),
        ("> [ ] I like tea", "I like tea"),
        ("I like tea %% 2020-01-01 · x %%", "I like tea % % 2020-01-01 · x % %"),
        ("I like <!-- tea", "I like <! -- tea"),
        ("```tea", "tea"),
        ("I like ![tea](https://e.org/x.png)", "I like [tea](https://e.org/x.png)"),
        ("I like <img src='https://e.org/x'> <% tea %>", "I like [https://e.org/x](https://e.org/x) &lt;% tea %>"),
        ("I like `$= tea`", "I like `\\$= tea`"),
        ("I like \u200btea\u202e", "I like tea"),
        ("I like\x00\x1b tea\u2028now", "I like tea now"),
        ("I like %\u200b% tea", "I like % % tea"),
        ("1. I like tea", "I like tea"),
        ("-5 degrees is cold", "-5 degrees is cold"),
    ],
)
def test_a_text_becomes_one_line_that_opens_nothing(desk: Desk, given: str, kept: str) -> None:
    desk.remember(given)
    desk.remember("Bergen is rainy")
    assert desk.facts() == [kept, "Bergen is rainy"]


@pytest.mark.parametrize("text", ["", " \n", "- ", "---", "%%", "!?", "a" * 501])
def test_a_text_that_is_none_or_too_long_is_refused(desk: Desk, text: str) -> None:
    with pytest.raises(BadRequest):
        desk.memory.remember(text)


def test_of_a_session_only_harmless_characters_stay(desk: Desk) -> None:
    desk.remember("I like tea", session="../x %% private · 2026" + "y" * 80)
    mark = lines.read(desk.text()).lines[0].mark
    assert mark.date == "2026-11-28" and not mark.private
    assert len(mark.session) <= 40 and set(mark.session) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_a_session_of_the_name_private_makes_nothing_private(desk: Desk) -> None:
    desk.remember("I like tea", session="private")
    assert "I like tea" in desk.memory.facts(local=False)


def test_a_full_memory_says_so(desk: Desk) -> None:
    desk.put("# Memory\n\n## Facts\n" + "".join(f"- fact {number}\n" for number in range(95)))
    desk.remember("I like tea")
    with pytest.raises(Refused, match="full"):
        desk.memory.remember("I like coffee")
    desk.perform(desk.memory.forget("fact 7"))
    desk.remember("I like coffee")


def test_when_memory_is_off_nothing_is_remembered_and_nothing_shown(vault: Path) -> None:
    Desk(vault).remember("I like tea")
    off = Desk(vault, enabled=False)
    assert off.memory.facts(local=True) == off.memory.rules(local=True) == ""
    assert off.memory.listing()["enabled"] is False and off.facts() == ["I like tea"]
    assert off.memory.notice(["I like coffee"]) is None
    with pytest.raises(Refused):
        off.memory.remember("I like coffee")
    off.perform(off.memory.forget("I like tea"))
    assert off.facts() == []


# ------------------------------------------------------------------------------------------------ edited by hand


def test_line_ends_markers_and_own_comments_stay(desk: Desk) -> None:
    before = "---\r\ntags: [me]\r\n---\r\n\r\n# Memory\r\n### Facts:\r\n\r\n"
    before += "* I live in Bergen %% since May %%\r\n* I like tea"
    desk.put(before)
    desk.remember("My dentist is Dr Ek")
    assert desk.text() == before + "\r\n* My dentist is Dr Ek %% 2026-11-28 %%\r\n"
    desk.remember("I live in Oslo", replace="I live in Bergen")
    assert "* I live in Oslo %% since May %% %% 2026-11-28 %%\r\n* I like tea\r\n" in desk.text()
    desk.perform(desk.memory.forget("my dentist is dr ek."))
    assert "\n" not in desk.text().replace("\r\n", "") and "Ek" not in desk.text()
    assert desk.text().startswith(before[:50])


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe"])
def test_a_byte_order_mark_and_another_encoding_stay(desk: Desk, mark: bytes) -> None:
    codec = "utf-8" if len(mark) == 3 else "utf-16-le"
    desk.put(mark + "## Facts\n- Ich wohne in Köln\n".encode(codec))
    desk.remember("Ich mag Tee")
    raw = (desk.root / "tars" / "Memory.md").read_bytes()
    expected = "## Facts\n- Ich wohne in Köln\n- Ich mag Tee %% 2026-11-28 %%\n"
    assert raw == mark + expected.encode(codec)


def test_mixed_line_ends_stay_as_they_are(desk: Desk) -> None:
    desk.put("## Facts\r\n- I like tea\n- I like coffee\r\n\r\nmore\rand more\n")
    desk.perform(desk.memory.forget("I like coffee"))
    assert desk.text() == "## Facts\r\n- I like tea\n\r\nmore\rand more\n"


def test_a_note_with_stray_bytes_is_read_and_never_written(desk: Desk) -> None:
    desk.put(b"- I like tea\n- I like caf\xe9\n")
    assert "I like tea" in desk.memory.facts(local=True)
    with pytest.raises(Refused):
        desk.memory.remember("I live in Oslo")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "---\ntars: memory\n---\n\n# Memory\n\n## Facts\n\nNEW\n"),
        ("- I like tea\n", "- I like tea\nNEW\n"),
        ("I like tea.\n", "I like tea.\n\nNEW\n"),
        ("# Memory\n\n+ I like tea\n\n\n", "# Memory\n\n+ I like tea\n+NEW\n\n\n"),
        ("# Memory\n## Allergies\n- nuts\n", "# Memory\n## Allergies\n- nuts\n\n## Facts\n\nNEW\n"),
        ("## Allergies\n- nuts\n", "## Allergies\n- nuts\n\n## Facts\n\nNEW\n"),
        ("## Facts\n## Other\n- x y\n", "## Facts\n\nNEW\n## Other\n- x y\n"),
        ("## Facts\n\n## Other\n- x y\n", "## Facts\n\nNEW\n\n## Other\n- x y\n"),
        ("## facts\n- a b\n\n## Facts\n- c d\n", "## facts\n- a b\nNEW\n\n## Facts\n- c d\n"),
        ("## Facts\n- a b\n  - c d\n\nSee [[People]].\n", "## Facts\n- a b\n  - c d\nNEW\n\nSee [[People]].\n"),
        ("## Facts\n- a b\nlazily on\n- c d\nand on\n", "## Facts\n- a b\nlazily on\n- c d\nand on\nNEW\n"),
        ("## Facts\n- a b\n\n  and more\n", "## Facts\n- a b\n\n  and more\nNEW\n"),
        ("## Facts\n1. a b\n2. c d\n", "## Facts\n1. a b\n2. c d\nNEW\n"),
        ("## Facts\n```\n- code\n```\n", "## Facts\n```\n- code\n```\n\nNEW\n"),
        ("## Facts\n- [ ] a b\n", "## Facts\n- [ ] a b\nNEW\n"),
        ("Facts\n---\n- a b\n", "Facts\n---\n- a b\nNEW\n"),
        ("---\ntags: x\n---\n", "---\ntags: x\n---\n\n## Facts\n\nNEW\n"),
        ("> [!note] Mine\n> - a b\n", "> [!note] Mine\n> - a b\n\nNEW\n"),
    ],
)
def test_a_line_finds_its_place_in_any_shape_of_note(desk: Desk, before: str, after: str) -> None:
    desk.put(before)
    desk.remember("New words here")
    line = "- New words here %% 2026-11-28 %%"
    assert desk.text() == after.replace("+NEW", "+" + line[1:]).replace("NEW", line)


@pytest.mark.parametrize("before", ["## Facts\n%% not closed\n", "## Facts\n```\n- a\n", "x\n\n<!-- open\n## Facts\n"])
def test_a_line_that_nobody_would_see_is_refused(desk: Desk, before: str) -> None:
    desk.put(before)
    with pytest.raises(Refused):
        desk.memory.remember("I like tea")
    assert desk.text() == before


def test_a_file_of_nearly_the_same_name_is_not_written_beside(desk: Desk) -> None:
    desk.put("- I like tea\n", "memory.md")
    if (desk.root / "tars" / "Memory.md").exists():
        pytest.skip("this disk takes both for one name")
    with pytest.raises(Refused, match="almost the same name"):
        desk.memory.remember("I like coffee")
    assert "almost the same name" in desk.memory.problem()


# ------------------------------------------------------------------------------------------------ known already


SAME = [
    ("I like tea", "i like TEA."),
    ("I like tea", "I  like tea!"),
    ("I don't eat meat", "I don’t eat meat"),
    ("I don't eat meat", "I do not eat meat."),
    ("I'm vegetarian", "I am vegetarian"),
    ("My dentist is Dr. Ek", "my dentist is dr Ek"),
    ("**Otto** is a cat", "Otto is a cat"),
    ("[[Otto]] is a cat", "Otto is a cat"),
    ("Meine Straße ist laut", "meine strasse ist laut"),
    ("J’habite à Lyon", "j'habite à Lyon !"),
    ("Vivo en Madrid", "vivo en Madrid."),
    ("私は猫が好き。", "私は猫が好き"),
    ("Caf\u00e9 Ek is nice", "Cafe\u0301 Ek is nice"),
]
OPPOSED = [
    ("I live in Bergen", "I live in Oslo"),
    ("i live in bergen", "I live in Oslo"),
    ("I live in Bergen", "I now live in Oslo"),
    ("I live in York", "I live in New York"),
    ("Ada and Otto live in Bergen", "Ada and Otto live in Oslo"),
    ("I no longer live in Bergen", "I live in Bergen"),
    ("My dentist is Dr Ek", "My dentist is Dr Ekberg"),
    ("My dentist is Dr Ek", "Dentist: Dr Ekberg"),
    ("Dentist: Dr Ek", "Dentist: Dr Ekberg"),
    ("My sister is Ann", "My sister is Anna"),
    ("my sister is ann", "my sister is anna"),
    ("My name is Ada", "My name is Eva"),
    ("My son is Otto", "My son is Ole"),
    ("My son is 3", "My son is 4 years old"),
    ("My cat is called Otto", "My cat is called Ole"),
    ("My son's teacher is Mr Ek", "My son's teacher is Mr Berg"),
    ("Ada's birthday is 3 May", "Ada's birthday is 4 May"),
    ("My birthday is 1980-05-03", "My birthday is 1980-05-04"),
    ("My favourite colour is blue", "My favourite colour is green"),
    ("My blood type is A+", "My blood type is A-"),
    ("My email is a@b.no", "Email: a@c.no"),
    ("I have two cats", "I have three cats"),
    ("I take 5 mg of warfarin", "I take 10 mg of warfarin"),
    ("I weigh 80 kg", "I weigh 82 kg"),
    ("I work at Equinor", "I work at Telenor"),
    ("I was born in 1980", "I was born in 1981"),
    ("I don't eat meat", "I eat meat"),
    ("I never eat meat", "I eat meat"),
    ("Ada doesn't eat meat", "Ada eats meat"),
    ("Ada does not have children", "Ada has children"),
    ("I can swim", "I can't swim"),
    ("I love tea", "I hate tea"),
    ("Peanuts: allergic", "Peanuts: not allergic"),
    ("Use emojis", "Don't use emojis"),
    ("Always answer in German", "Never answer in German"),
    ("Answer in German", "Answer in English"),
    ("Ich wohne in Köln", "Ich wohne in Bonn"),
    ("Ich esse kein Fleisch", "Ich esse Fleisch"),
    ("Mein Zahnarzt ist Dr. Ek", "Mein Zahnarzt ist Dr. Ekberg"),
    ("Meine Schwester heißt Anna", "Meine Schwester heißt Ann"),
    ("Mein Geburtstag ist am 3. Mai", "Mein Geburtstag ist am 4. Mai"),
    ("Ich habe zwei Kinder", "Ich habe drei Kinder"),
    ("J'habite à Lyon", "J'habite à Paris"),
    ("Je ne mange pas de viande", "Je mange de la viande"),
    ("Ma sœur s'appelle Anne", "Ma sœur s'appelle Anna"),
    ("Mon anniversaire est le 3 mai", "Mon anniversaire est le 4 mai"),
    ("Vivo en Madrid", "Vivo en Sevilla"),
    ("No como carne", "Como carne"),
    ("Mi hermana es Ana", "Mi hermana es Anabel"),
    ("Mi hermana se llama Ana", "Mi hermana se llama Eva"),
]
APART = [
    ("I like tea", "I like coffee"),
    ("I like tea", "I like green tea"),
    ("I like C++", "I like C#"),
    ("I like tea", "I hate coffee"),
    ("I don't like tea", "I don't like coffee"),
    ("Likes: tea", "Likes: coffee"),
    ("Otto is a cat", "Otto is a cat from Bergen"),
    ("Otto is a cat", "Otto is diabetic"),
    ("Ada's birthday is 3 May", "Otto's birthday is 3 May"),
    ("Ada’s birthday is 3 May", "Ada's birthday is on May 3rd"),
    ("My birthday is 3 May", "My birthday is 3 May 1980"),
    ("My son is 3", "My son is 3 years old"),
    ("My name is Ada", "My name is Ada Berg"),
    ("My dentist is Dr Ek", "My dentist is very nice"),
    ("My dentist is Dr Ek", "My doctor is Dr Ek"),
    ("My sister is Ann", "My brother is Ann"),
    ("My sister is Ann", "My sister is diabetic"),
    ("My wife is Ada", "My wife is in Oslo"),
    ("My friend is Ann", "My friend is Otto"),
    ("My sister lives in Bergen", "My brother lives in Oslo"),
    ("I live in Bergen", "I live with Ada"),
    ("I live in Bergen", "I live in Bergen with Ada"),
    ("I lived in Bergen", "I live in Oslo"),
    ("I don't live in Bergen", "I live in Oslo"),
    ("I have two cats", "I have two dogs"),
    ("I work in Bergen", "I work in finance"),
    ("I was born in Bergen", "I was born in 1981"),
    ("Reply in short sentences", "Reply in German"),
    ("Keep replies under 5 lines", "Keep tables under 10 lines"),
    ("Ich mag Tee", "Ich mag Kaffee"),
    ("J'aime le thé", "J'aime le café"),
    ("Me gusta el té", "Me gusta el café"),
    ("私は猫が好き", "私は犬が好き"),
    ("10 is much", "-10 is much"),
    ("我喜欢茶", "我喜欢咖啡"),
    ("我住在北京", "我住在北京市"),
    ("I speak German", "I also speak French"),
    ("Answer briefly", "Answer politely"),
    ("My desk is broad", "My desk is broad and oak"),
]
ASKED = [  # both may be true: it is a question, and no judgement
    ("Ada is Norwegian", "Ada is Catholic"),
    ("I have a meeting on 3 May", "I have a meeting on 4 May"),
    ("I take aspirin", "I take warfarin"),
    ("I own a boat", "I own a car"),
    ("我住在北京", "我住在上海"),
    ("我吃肉", "我不吃肉"),
    ("我住在北京", "我住在不来梅"),
    ("私は京都に住んでいます", "私は東京に住んでいます"),
    ("私は肉を食べます", "私は肉を食べません"),
    ("私は30歳です", "私は31歳です"),
    ("ฉันอาศัยอยู่ในกรุงเทพ", "ฉันอาศัยอยู่ในเชียงใหม่"),
    ("나는 베르겐에 산다", "나는 오슬로에 산다"),
]


@pytest.mark.parametrize(("known", "new"), SAME)
def test_the_same_words_are_the_same_fact(known: str, new: str) -> None:
    assert same(known, new) and same(new, known)
    assert not differs(known, new) and not differs(new, known)


@pytest.mark.parametrize(("known", "new"), OPPOSED + ASKED)
def test_another_value_is_asked_about_whichever_came_first(known: str, new: str) -> None:
    assert differs(known, new) and differs(new, known)
    assert not same(known, new) and not same(new, known)


@pytest.mark.parametrize(("known", "new"), APART)
def test_two_things_that_may_both_be_true_are_left_alone(known: str, new: str) -> None:
    assert not differs(known, new) and not differs(new, known)
    assert not same(known, new) and not same(new, known)


@given(st.text(max_size=80), st.text(max_size=80))
def test_comparing_takes_any_text(one: str, other: str) -> None:
    assert same(one, one) and not differs(one, one)
    assert same(one, other) == same(other, one)
    assert differs(one, other) == differs(other, one)


def test_what_is_known_is_not_remembered_twice(desk: Desk) -> None:
    desk.put("## People\n- My sister is Ann %% 2026-01-01 %%\n")
    with pytest.raises(Conflict, match="Already remembered: My sister is Ann") as fault:
        desk.memory.remember("my sister is ann.")
    assert not isinstance(fault.value, Contradiction)


def test_a_contradiction_shows_the_line_and_gives_way_only_when_told(desk: Desk) -> None:
    desk.put("# Memory\n\n- My sister is Ann\n- I like tea\n")
    with pytest.raises(Contradiction, match="My sister is Ann") as fault:
        desk.memory.remember("My sister is Anna")
    assert fault.value.as_json()["line"] == fault.value.line == "My sister is Ann"
    desk.remember("My sister is Anna", replace=fault.value.line)
    assert desk.text() == "# Memory\n\n- My sister is Anna %% 2026-11-28 %%\n- I like tea\n"


def test_a_line_to_replace_must_be_there(desk: Desk) -> None:
    desk.remember("My sister is Ann")
    with pytest.raises(NotFound):
        desk.memory.remember("My sister is Anna", replace="My sister is An")
    with pytest.raises(Contradiction):  # what is replaced is another line than the one that contradicts
        desk.remember("I like tea")
        desk.memory.remember("My sister is Anna", replace="I like tea")


def test_a_line_without_a_bullet_is_compared_too(desk: Desk) -> None:
    desk.put("I live in Bergen.\nMy dentist is Dr Ek.\n")
    with pytest.raises(Contradiction):
        desk.memory.remember("My dentist is Dr Ekberg")
    desk.remember("My dentist is Dr Ekberg", replace="My dentist is Dr Ek.")
    assert desk.text() == "I live in Bergen.\nMy dentist is Dr Ekberg %% 2026-11-28 %%\n"


# ------------------------------------------------------------------------------------------------ forgetting


def test_a_line_is_forgotten_by_itself_its_words_or_its_source(desk: Desk) -> None:
    before = "# Memory\n\n- Ann is my sister %% 2026-01-01 · c-1 %%\n- Anna is my aunt\n- I like tea\n"
    for asked in (
        "Ann is my sister",
        "- Ann is my sister %% 2026-01-01 · c-1 %%",
        "ann",
        "sister Ann",
        "  ANN is\nmy ",
    ):
        desk.put(before)
        if asked.strip().startswith("ANN"):
            asked += "sister"
        desk.perform(desk.memory.forget(asked))
        assert desk.text() == "# Memory\n\n- Anna is my aunt\n- I like tea\n", asked


def test_several_lines_with_the_words_are_listed(desk: Desk) -> None:
    desk.put("- I like tea\n- I like green tea\n")
    desk.put("- Offer tea\n", "Procedural.md")
    with pytest.raises(Conflict) as fault:
        desk.memory.forget("tea")
    assert fault.value.message.splitlines()[1:] == ["- I like tea", "- I like green tea", "- Offer tea"]
    assert desk.memory.forget("I like tea").path == "tars/Memory.md"
    assert desk.memory.forget("offer").path == "tars/Procedural.md"


@pytest.mark.parametrize("asked", ["coffee", "te", "I like", "## Facts", "code", "hidden"])
def test_what_is_no_line_is_not_forgotten(desk: Desk, asked: str) -> None:
    desk.put("## Facts\n- My cat is Otto\n```\n- code\n```\n%% hidden %%\n")
    with pytest.raises(NotFound):
        desk.memory.forget(asked)


def test_nothing_is_no_line(desk: Desk) -> None:
    with pytest.raises(BadRequest):
        desk.memory.forget("  ")


def test_a_line_that_was_written_twice_goes_at_once(desk: Desk) -> None:
    desk.put("- I like tea\n- x y\n- I like tea.\n")
    desk.perform(desk.memory.forget("I like tea"))
    desk.put("- I like tea\n- x y\n- I like tea\n")
    desk.perform(desk.memory.forget("I like tea"))
    assert desk.text() == "- x y\n"


def test_a_line_of_several_rows_goes_as_a_whole(desk: Desk) -> None:
    desk.put("- Otto is diabetic and\n  needs insulin\n\n  twice a day\n- I like tea\n")
    assert desk.facts()[0] == "Otto is diabetic and needs insulin twice a day"
    desk.perform(desk.memory.forget("insulin"))
    assert desk.text() == "- I like tea\n"


def test_a_line_with_others_under_it_is_left_to_the_person(desk: Desk) -> None:
    desk.put("- Ada\n  - sister\n  - lives in Oslo\n- Otto\n")
    with pytest.raises(Conflict, match="under this one"):
        desk.memory.forget("Ada")
    desk.perform(desk.memory.forget("lives in Oslo"))
    desk.perform(desk.memory.forget("sister"))
    desk.perform(desk.memory.forget("Ada"))
    assert desk.text() == "- Otto\n"


def test_a_line_that_holds_others_together_is_not_torn_out(desk: Desk) -> None:
    before = "- I like tea %% a long\nstory of mine %%\n- I like coffee\n"
    desk.put(before)
    with pytest.raises(Refused):
        desk.memory.forget("I like tea")
    assert desk.text() == before


# ------------------------------------------------------------------------------------------------ private


PRIVATE = (
    "---\ntars: memory\n---\n# Memory\n\n## Facts\n- I like tea\n- I am ill %% 2026-11-28 · c-1 · private %%\n"
    "  - since May\n- Ada is well %% Private %%\n\n## Health %% private %%\n- Pills\n"
    "\n### Doses\n- two\n\n## Other\n- last\n"
    "\n| a | b |\n|---|---|\n| secret | x | %% private %%\n"
)


def test_private_lines_reach_no_model_elsewhere(desk: Desk) -> None:
    desk.put(PRIVATE)
    assert desk.memory.facts(local=False) == "## Facts\n- I like tea\n\n## Other\n- last"
    assert "I am ill" in desk.memory.facts(local=True) and "two" in desk.memory.facts(local=True)
    assert desk.memory.withheld() == 5
    assert "private" not in desk.memory.facts(local=True)
    with pytest.raises(NotFound):
        desk.memory.forget("I am ill", local=False)
    with pytest.raises(NotFound):
        desk.memory.forget("since May", local=False)


def test_a_private_line_is_not_quoted_to_a_model_elsewhere(desk: Desk) -> None:
    desk.perform(desk.memory.remember("My doctor is Dr Ek", private=True, session="c-1"))
    assert "%% 2026-11-28 · c-1 · private %%" in desk.text()
    with pytest.raises(Contradiction) as fault:
        desk.memory.remember("My doctor is Dr Berg", local=False)
    assert "Ek" not in str(fault.value.as_json())
    with pytest.raises(Contradiction, match="Ek"):
        desk.memory.remember("My doctor is Dr Berg")


@pytest.mark.parametrize(
    "mark",
    [
        "%% private · 2026-11-28 · c-1 %%", "%% 2026-11-28 · PRIVATE · c-1 %%", "<!-- c-1, private -->",
        "%%Private: ask first%%", "%%\n  private %%", "\n  %% private %%",
    ],
)  # fmt: skip
def test_a_line_is_private_wherever_its_comment_says_so(desk: Desk, mark: str) -> None:
    desk.put(f"# Memory\n\n- I like tea\n- I am ill {mark}\n")
    assert desk.memory.facts(local=False) == "- I like tea"
    assert desk.memory.withheld() == 1


def test_what_takes_the_place_of_a_private_line_is_private(desk: Desk) -> None:
    desk.put("# Memory\n\n- My doctor is Dr Ek %% private, from c-9 %%\n\n## Health %% private %%\n- I take pills\n")
    desk.remember("My doctor is Dr Berg", replace="My doctor is Dr Ek")
    desk.remember("I take drops", replace="I take pills")
    assert desk.memory.facts(local=False) == ""
    assert desk.text().count("%% 2026-11-28 · private %%") == 2
    assert "%% private, from c-9 %%" in desk.text()


def test_a_mark_in_another_order_gives_way_to_the_new_one(desk: Desk) -> None:
    desk.put("- My doctor is Dr Ek %% private · 2026-01-01 · c-9 %%\n")
    desk.remember("My doctor is Dr Berg", replace="My doctor is Dr Ek", session="c-1")
    assert desk.text() == "- My doctor is Dr Berg %% 2026-11-28 · c-1 · private %%\n"


def test_a_note_that_is_closed_as_a_whole_stays_here(desk: Desk) -> None:
    desk.put("---\nlocal_only: true\n---\n- I like tea\n")
    assert desk.memory.facts(local=False) == ""
    assert desk.memory.facts(local=True) == "- I like tea"
    assert holds_private(desk.text())


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("- a\n", False),
        ("- my private life\n", False),
        ("- a %% 2026-11-28 · c-1 · private %%\n", True),
        ("## x\n\n%% 2026-11-28 · private %%\n\n> y\n", True),
        ("- a %% private %%", True),
        ("- a <!-- private -->", True),
        ("- a %% Private · c-1 · 2026-11-28 %%", True),
        ("- a %% from c-1, PRIVATE %%", True),
        ("- a %%\nprivate\n%%", True),
        ("---\nlocal-only: 'yes'\n---\n- a", True),
        ("---\nlocal_only: no\n---\n- a", False),
        ("- a %% 2026-11-28 · my-private-chat %%", False),
        ("- a %% 1 %% private %% 2 %%", False),
    ],
)
def test_it_can_be_asked_whether_a_note_holds_anything_private(text: str, private: bool) -> None:
    assert holds_private(text) is private


# ------------------------------------------------------------------------------------------------ for the prompt


def test_the_prompt_gets_what_a_reader_sees(desk: Desk) -> None:
    desk.put(
        "---\nx: y\n---\n# Memory\nIntro.\n\n\n## Empty\n%% note %%\n## Facts\n- a <!-- b --> c ^id\n\n\n- d\n# Z\n"
    )
    assert desk.memory.facts(local=True) == "Intro.\n\n## Facts\n- a  c\n\n- d"


def test_a_note_without_anything_gives_nothing(desk: Desk) -> None:
    assert desk.memory.facts(local=True) == desk.memory.rules(local=True) == ""
    assert desk.memory.listing() == {"enabled": True, "facts": [], "rules": [], "noticed": [], "problem": ""}
    desk.put("---\ntars: memory\n---\n\n# Memory\n\n## Facts\n")
    assert desk.memory.facts(local=True) == ""


@pytest.mark.parametrize("text", ["- word\n" * 300, "- " + "word " * 5000, "x\n" * 100_000])
def test_a_huge_note_is_cut_and_said_to_be(desk: Desk, text: str) -> None:
    desk.put(text)
    shown = desk.memory.facts(local=True)
    assert 0 < len(shown) <= 8000 and shown.count("\n") < 100
    assert "too long" in desk.memory.problem()


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"\x00" * 50, b"---\n{{{\n---\n%% open", b"\x80" * 1000])
def test_a_broken_note_breaks_nothing(desk: Desk, raw: bytes) -> None:
    desk.put(raw)
    desk.memory.facts(local=False)
    desk.memory.rules(local=True)
    assert isinstance(desk.memory.listing()["problem"], str)


def test_a_folder_in_the_place_of_the_note_is_a_problem_and_no_fault(desk: Desk) -> None:
    (desk.root / "tars" / "Memory.md").mkdir(parents=True)
    assert desk.memory.facts(local=True) == ""
    assert "cannot be read" in desk.memory.problem()


def test_an_unclosed_comment_is_told(desk: Desk) -> None:
    desk.put("- I like tea\n%% open\n- I like coffee\n")
    assert desk.memory.facts(local=True) == "- I like tea"
    assert "Memory.md, line 2" in desk.memory.problem()


def test_a_note_that_changed_is_read_again(desk: Desk) -> None:
    desk.put("- I like tea\n")
    assert desk.memory.facts(local=True) == "- I like tea"
    desk.put("- I like coffee\n")
    assert desk.memory.facts(local=True) == "- I like coffee"


# ------------------------------------------------------------------------------------------------ noticed


def test_what_was_noticed_waits_apart(desk: Desk) -> None:
    desk.remember("I like tea")
    desk.perform(
        desk.memory.notice(["i like tea.", "I row on Sundays", "", "I row on Sundays!"], session="c-9", private=True)
    )
    noticed = desk.memory.listing()["noticed"]
    assert noticed == [
        {"line": "I row on Sundays", "section": "Noticed", "date": "2026-11-28", "session": "c-9", "private": True}
    ]
    assert "row" not in desk.memory.facts(local=True) + desk.memory.rules(local=True)
    assert parse(desk.text("Noticed.md"), "tars/Noticed.md").memory_type is None
    assert desk.memory.notice(["I row on Sundays", "I like tea", "---"]) is None
    desk.perform(desk.memory.forget("I row on Sundays"))
    assert desk.memory.listing()["noticed"] == []


def test_the_list_of_what_was_noticed_never_grows_without_end(desk: Desk) -> None:
    desk.perform(desk.memory.notice(f"fact number {number}" for number in range(500)))
    assert len(desk.text("Noticed.md").splitlines()) < 100
    assert desk.memory.notice(["one more"]) is None


# ------------------------------------------------------------------------------------------------ any note at all


PIECES = st.sampled_from(
    ["- a b", "* c d", "  - e f", "## Facts", "# X", "", "text on", "> q r", "> - s", "```", "%% c %%", "%%", "<!--",
     "-->", "| a | b |", "|---|---|", "---", "1. n", "- g %% 2026-01-01 · c-1 %%", "- h %% private %%", "    code",
     "\t- tab", "===", "- [ ] task", "$$", "- x ^id", "tars: memory"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_whatever_the_note_looks_like_only_the_one_line_changes(parts: list[str], end: str, ended: bool) -> None:
    text = end.join(parts) + (end if ended else "")
    before = lines.read(text)
    seen = [line.text for line in before.lines]
    attempts: list[tuple[Callable[[], str], list[str]]] = [
        (lambda: lines.insert(text, "New words", "", "%% 2026-11-28 %%", "Facts"), [*seen, "New words"])
    ]
    for line in before.lines:
        rest = [one.text for one in before.lines if one is not line]
        attempts.append((lambda line=line: lines.remove(text, [line]), rest))  # type: ignore[misc]
        attempts.append((lambda line=line: lines.swap(text, line, "New words", "%% x %%"), [*rest, "New words"]))  # type: ignore[misc]
    for attempt, expected in attempts:
        try:
            changed = attempt()
        except Refused:
            continue
        after = lines.read(changed)
        assert sorted(line.text for line in after.lines) == sorted(expected)
        assert set(parse(text, "x.md").properties) == set(parse(changed, "x.md").properties)
        kept = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        now = changed.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert not [row for row in now if "New words" not in row and row not in kept and row not in ("", "## Facts")]
