"""Questions about a small vault: what is answered from its data, how, and what is left to ordinary search."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tarsd.ask import Answer, narrowed
from tarsd.ask.answers import day_in_words
from tarsd.ask.tables import LANGUAGES, languages_of, load
from tarsd.ask.vocabulary import inflected, tokens
from tarsd.config.settings import PrivacySettings
from tarsd.notes import Reader
from tests.support.engine import Engine, write

FIXTURE = Path(__file__).parents[2] / "fixtures" / "asked"
ROWS = [json.loads(line) for line in (FIXTURE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
TODAY = date(2026, 11, 28)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("asked"), model=None)
    shutil.copytree(FIXTURE / "vault", engine.vault, dirs_exist_ok=True)
    with engine:
        engine.index()
        yield engine


def answer(engine: Engine, question: str, *, local: bool = True) -> Answer | None:
    return Reader(engine.library, model_is_local=local).answer(question, TODAY)


def said(engine: Engine, question: str) -> str:
    """The answer without what it quotes."""
    found = answer(engine, question)
    assert found is not None
    return "\n".join(line for line in found.text.split("\n") if not line.lstrip().startswith(">"))


def cited(found: Answer) -> set[str]:
    return {passage.path for passage in found.passages}


@pytest.mark.parametrize("row", ROWS, ids=[row["q"] for row in ROWS])
def test_a_question_is_answered_exactly_or_left_to_search(engine: Engine, row: dict[str, Any]) -> None:
    found = answer(engine, row["q"])
    if row.get("search"):
        assert found is None
        return
    assert found is not None
    if row.get("nothing"):
        assert found.passages == ()
    if "paths" in row:
        assert cited(found) - set(row.get("allowed", ())) == set(row["paths"])
    if "items" in row:
        shown = re.sub(r"\[\[([^\]]*)\]\]", r"\1", found.text)
        assert [item for item in row["items"] if item not in shown] == []
        assert len(found.passages) == len(row["items"])
    first, language = found.text.split("\n")[0], languages_of(row["q"])[0]
    for value in row.get("says", ()):
        words = f"{value:g}" if isinstance(value, int | float) else value
        if re.fullmatch(r"\d{4}-\d\d-\d\d", words):
            words = day_in_words(words, language)
        assert words in first or words.replace(".", ",") in first
    assert set(row.get("cites", ())) <= cited(found)


def test_every_row_stands_in_the_file_at_its_line(engine: Engine) -> None:
    for row in ROWS:
        found = answer(engine, row["q"])
        for passage in found.passages if found else ():
            lines = (engine.vault / passage.path).read_text(encoding="utf-8").split("\n")
            assert passage.text == lines[passage.start_line - 1].rstrip()
            assert found is not None and f"[{passage.number}]" in found.text


@pytest.mark.parametrize(
    "question",
    [
        "How do I write a task with a due date?",
        "Why did we cancel the lamp?",
        "Where does Marlene keep the maps?",
        "What are my steampunk films?",
        "install film plugins",
        "repeat a task every Monday automatically",
        "When was the first film ever shown?",
        "What was Marlene doing on 12 March 2026?",
        "How many lamps does the landlord own?",
        "Who is allergic to penicillin?",
        "When should the waffle iron be hot?",
        "Wie oft rührt man den Teig?",
        "Warum ist die Leitung tot?",
        "¿Cómo se limpia el hervidor?",
        "なぜルーターのライトは赤いですか？",
        "怎么清洗水壶？",
        "Films",
        "Jule",
        "?",
        "",
    ],
)
def test_a_question_about_what_is_told_in_words_goes_to_search(engine: Engine, question: str) -> None:
    assert answer(engine, question) is None


@pytest.mark.parametrize(
    ("question", "starts"),
    [
        ("Which films have at least 4 stars?", "3 notes:"),
        ("Which films don't have any stars?", "3 notes:"),
        ("films under 100 minutes", "3 notes:"),
        ("Which dramas did I watch in 2026?", "3 notes:"),
        ("How often did I ride in March?", "2"),
        ("What is the average runtime of my films?", "111.38 min (1.86 h) on average, from 8 values."),
        ("What does Emir's lesson cost per hour?", ""),
        ("What links to Henrik Falk?", "2 notes:"),
        ("high priority tasks", "1 task:"),
        ("Wie lang ist Nebelgrenze?", "Nebelgrenze, runtime: 98 min."),
        ("¿Cuántas películas vi en 2026?", "4 películas."),
        ("今日が期限のタスクは？", "2件のタスク:"),
        ("哪些任务逾期了？", "4个任务："),
        ("Какие задачи просрочены?", "Задач: 4"),
        ("Welke taken zijn te laat?", "4 taken:"),
    ],
)
def test_a_question_may_be_put_in_many_ways(engine: Engine, question: str, starts: str) -> None:
    found = answer(engine, question)
    assert (found.text if found else "").startswith(starts)


def test_the_month_week_year_or_person_with_the_most_is_told(tmp_path: Path) -> None:
    runs = {"2026-03-04": "5 km", "2026-03-25": "4,5 km", "2026-04-01": "9 km", "2027-01-03": "40 km"}
    with Engine(tmp_path, model=None) as own:
        for day, distance in runs.items():
            write(own.vault, f"Training/{day} jog.md", f"---\ndistance: {distance}\n---\nWith [[Ida]]. #sport/run\n")
        write(own.vault, "Log/2026-05-02.md", "- Tea [paid:: 3 €]\n- Tent [paid:: 90 €]\n\nMet [[Otto]].\n")
        write(own.vault, "Log/2026-04-02.md", "- Rope [paid:: 20 €]\n")
        for name in ("Ida", "Otto"):
            write(own.vault, f"People/{name}.md", "Tall.\n")
        own.index()
        assert said(own, "In which month did I run the most?").startswith("March 2026: 9.5 km.")
        assert said(own, "Which week of 2026 did I run the most?").startswith("2026-W14: 9 km.")
        assert said(own, "In welchem Monat bin ich am meisten gelaufen?").startswith("März 2026: 9,5 km.")
        assert said(own, "In which month did I spend the most?").startswith("May 2026: 93.00 €.")
        assert said(own, "¿En qué mes gasté más?").startswith("mayo de 2026: 93,00 €.")
        assert said(own, "Who did I meet most often?").startswith("Ida: 3.")
        assert said(own, "How far did I run in March 2026?").startswith("9.5 km in total, from 2 values.")
        assert said(own, "How far did I run in April 2026?").startswith("9 km in total, from 1 value.")


def test_words_that_mean_one_thing_together_are_read_as_one(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        for name, state, lead in (
            ("Kite", "in progress", "Ida"),
            ("Fog", "abandoned", "Otto"),
            ("Salt", "done", "Ida"),
        ):
            write(own.vault, f"Books/{name}.md", f"---\nstate: {state}\nlead: {lead}\n---\nX.\n")
        own.index()
        for question in ("Which books did I give up on?", "Welche Bücher habe ich nicht zu Ende gelesen?",
                         "Какие книги я не дочитал?"):  # fmt: skip
            assert cited(found := answer(own, question) or Answer("")) == {"Books/Fog.md"}, found.text
        for question in ("What books am I reading?", "Quels livres suis-je en train de lire ?",
                         "Welke boeken ben ik aan het lezen?"):  # fmt: skip
            assert cited(found := answer(own, question) or Answer("")) == {"Books/Kite.md"}, found.text
        for question in ("Who is in charge of Fog?", "¿Quién está a cargo de Fog?", "Chi è a capo di Fog?"):
            assert "Otto" in said(own, question)


def test_what_someone_did_is_a_verb_that_the_vault_need_not_know(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        for day, cups in ((1, 2), (2, 6), (3, 1)):
            write(own.vault, f"Log/2026-04-0{day}.md", f"Rain. (coffee:: {cups})\n")
        own.index()
        assert "2 April 2026" in said(own, "On which day in April did I drink the most coffee?")
        assert said(own, "How much coffee did I drink in April 2026?").startswith("9 in total")
        assert "2 April 2026" in said(own, "On which day did we brew the most coffee?")


def test_names_are_known_in_their_cases_and_contractions_in_questions(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        write(own.vault, "Люди/Олег Сидоров.md", "---\nдень рождения: 1985-05-12\nтелефон: 55 01\n---\nX.\n")
        write(own.vault, "Люди/Анна.md", "---\nдень рождения: 1990-02-03\n---\nX.\n")
        write(own.vault, "Leute/李梅.md", "---\n电话: 031 77\n---\nX.\n")
        write(own.vault, "Meetings/Roof plan.md", "---\ndate: 2026-12-09\nabout: Roof\n---\nX.\n")
        own.index()
        assert "1985" in said(own, "Когда день рождения у Олега?")
        assert "55 01" in said(own, "Какой телефон у Олега?")
        assert "1990" in said(own, "Когда родилась Анна?") and "1990" in said(own, "Когда день рождения Анны?")
        assert "031 77" in said(own, "李梅的电话号码是多少？")
        assert "9 December 2026" in said(own, "When's the next roof meeting?")


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("Иванов", "Иванова Иванову Ивановым Иванове"), ("Медведев", "Медведева Медведевым"), ("Киев", "Киева Киеве"),
        ("Олег Соколов", "Олега Соколова|Олегом Соколовым"), ("Олег", "Олега Олегу"), ("Пушкин", "Пушкина Пушкиным"),
    ],
)  # fmt: skip
def test_the_cases_of_a_russian_name_meet(name: str, cases: str) -> None:
    for case in cases.split("|") if "|" in cases else cases.split():
        assert inflected(tokens(case)) == inflected(tokens(name)) != ()


def test_a_sum_names_its_values_and_those_that_it_leaves_out(engine: Engine, tmp_path: Path) -> None:
    notes = {"a": "km:: 5 km", "b": "km:: 7,5 km", "c": "km:: tired"}
    with Engine(tmp_path, model=None) as own:
        for day, (name, text) in enumerate(notes.items(), 1):
            write(own.vault, f"Log/2026-03-0{day} {name}.md", f"Out.\n\n{text}\n")
        own.index()
        found = answer(own, "How many km in March 2026 in total?")
    assert found is not None
    assert found.text.startswith("12.5 km in total, from 2 values. 1 left out: “tired”.")


def test_amounts_of_other_currencies_are_left_out_of_a_sum(tmp_path: Path) -> None:
    prices = ["12,90 €", "EUR 7", "$1,234.50", "¥500", "3"]
    with Engine(tmp_path, model=None) as own:
        for day, price in enumerate(prices, 1):
            write(own.vault, f"Log/2026-03-0{day}.md", f"- Rope [price:: {price}]\n")
        own.index()
        found = answer(own, "What is the sum of price in March 2026?")
        assert found is not None
        assert found.text.startswith("22.90 € in total, from 3 values. 2 left out: “$1,234.50”, “¥500”.")
        assert said(own, "In which month did I spend the most?").startswith("March 2026: 22.90 €.")


@pytest.mark.parametrize(
    "question",
    [
        "What did I pay for the violin in March 2026, all told?",
        "How much did the violin cost me in March 2026?",
        "Wie viel habe ich im März 2026 für violin ausgegeben?",
    ],
)
def test_money_is_found_by_its_currency_whatever_its_field_is_called(tmp_path: Path, question: str) -> None:
    with Engine(tmp_path, model=None) as own:
        for day, amount in ((3, "9,90 €"), (9, "20 €")):
            items = f"- Strings (handed_over:: {amount}) (what:: violin)\n- Tea (handed_over:: 3 €) (what:: food)\n"
            write(own.vault, f"Log/2026-03-0{day}.md", f"Rain.\n\n{items}")
        own.index()
        found = answer(own, question)
    assert found is not None
    assert "29" in found.text.split("\n")[0] and len(found.passages) == 2


def test_names_without_a_note_and_types_that_are_links_are_known(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        for name, seen, minutes in (("Tin Sky", "2026-02-03", "1h 40m"), ("Grey Noon", "", "80 min")):
            write(own.vault, f"{name}.md", f'---\ntype: "[[Movie]]"\nseen on: {seen}\nruntime: {minutes}\n---\nX.\n')
        write(own.vault, "log/2026-11-02.md", "Lunch with [[Teodor]].\n")
        write(own.vault, "standup.md", "---\ntype: meeting\ndate: 2026-11-17\nwith: [Maja, Teodor]\n---\nTalk.\n")
        own.index()
        assert said(own, "How many movies have I watched?").startswith("1 movies.")
        assert said(own, "What is the longest movie?").startswith("Tin Sky: 1h 40m.")
        assert said(own, "When did I last see Teodor?").startswith("17 November 2026: standup.")
        assert "2026-11-02" in said(own, "Which notes mention Teodor?")


def test_weights_and_ways_in_other_units_are_compared(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        for name, weight in (("Pip", "40 g"), ("Rufus", "22 kg")):
            write(own.vault, f"Pets/{name}.md", f"---\nweight: {weight}\n---\nX.\n")
        own.index()
        assert said(own, "Which pet is the heaviest?").startswith("Rufus: 22 kg.")


def test_nothing_in_a_time_names_the_nearest_days(engine: Engine) -> None:
    assert said(engine, "What did I do on 4 March 2026?") == (
        "There are no notes of that time. The nearest are of 2 March 2026 / 9 March 2026."
    )


def test_templates_are_no_evidence_for_an_answer(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as own:
        write(own.vault, ".obsidian/templates.json", '{"folder": "Forms/Empty"}')
        for number in range(5):
            write(own.vault, f"Forms/Empty/Visit {number}.md", f"Which vaccine did the vet give, and when? {number}\n")
        write(own.vault, "Log/Visit.md", "The vet gave the rabies vaccine.\n")
        own.index()
        found = Reader(own.library).retrieve("Which vaccine did the vet give?", 3).passages
    assert [passage.path for passage in found] == ["Log/Visit.md"]


def test_private_notes_are_in_no_row_and_no_number_for_a_model_elsewhere(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None, privacy=PrivacySettings(("#secret",))) as engine:
        for number in range(3):
            write(engine.vault, f"Films/F{number}.md", f"---\nwatched: 2026-05-0{number + 1}\n---\nX.\n")
        hidden = "---\nstars: 5\nwatched: 2026-05-09\ntags: [secret]\ndirector: Zoe Quill\n---\nX.\n"
        write(engine.vault, "Films/Hidden.md", hidden + "[[Nobody Knows]]\n")
        engine.index()
        for local, count in ((True, 4), (False, 3)):
            found = answer(engine, "How many films did I watch in 2026?", local=local)
            assert found is not None
            assert found.text.startswith(f"{count} films.")
            assert ("Films/Hidden.md" in cited(found)) is local
        for question in ("Which films by Zoe Quill?", "notes tagged secret", "Which notes mention Nobody Knows?"):
            assert "Hidden" in str(answer(engine, question))
            assert "Hidden" not in str(answer(engine, question, local=False))


@pytest.mark.parametrize(
    ("question", "languages"),
    [
        ("What did I do last week?", "en"),
        ("Was habe ich letzte Woche gemacht?", "de"),
        ("¿Qué hice la semana pasada?", "es"),
        ("Qu'est-ce que j'ai fait la semaine dernière ?", "fr"),
        ("O que eu fiz na semana passada?", "pt"),
        ("Che cosa ho fatto la settimana scorsa?", "it"),
        ("Wat heb ik vorige week gedaan?", "nl"),
        ("Что я делал на прошлой неделе?", "ru"),
        ("先週は何をしましたか？", "ja"),
        ("我上周做了什么？", "zh"),
        ("Ada Lindqvist", "en"),
    ],
)
def test_the_language_of_a_question_is_told(question: str, languages: str) -> None:
    assert languages_of(question)[0] == languages


def test_every_table_has_the_words_and_every_group_a_word_of_each_language() -> None:
    english = load("en")["words"]
    for language in LANGUAGES:
        words = load(language)["words"]
        assert set(english) - set(words) <= {"did"}
        assert set(load(language)["sentences"]) <= set(load("en")["sentences"])
    for group, row in load("synonyms").items():
        assert [language for language in LANGUAGES if not row[language].split()] == [], group
        assert set(row.get("also", "").split()) <= set(load("synonyms")), group


def test_a_time_beside_other_words_narrows_the_search_to_it() -> None:
    assert narrowed("What did the doctor say on 4 November?", TODAY) == (
        "after:2026-11-03 before:2026-11-05 What did the doctor say on ?"
    )
    assert narrowed("Rezepte seit Ostern", TODAY) == "after:2026-04-02 Rezepte"
    assert narrowed("What did the doctor say?", TODAY) == narrowed("yesterday", TODAY) == ""
