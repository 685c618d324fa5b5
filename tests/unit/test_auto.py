"""`embedding.model = "auto"`: which model a vault gets by its languages, when that changes, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tarsd.config import EmbeddingSettings
from tarsd.doctor import embedding
from tarsd.embed import auto, e5_files, make
from tarsd.embed.auto import Auto, choice
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import EmbedError
from tarsd.words import is_english, share_not_english
from tests.support.engine import Engine, write

EN = "In the evening there was soup, and after that I read another chapter of the book about the sea."
DE = "Am Abend gab es Suppe, und danach habe ich noch ein Kapitel in dem Buch über die Nordsee gelesen."
RU = "Вечером был суп, а потом я прочитал ещё одну главу книги о Северном море и написал письмо сестре."
ZH = "晚上喝了汤，之后我又读了一章关于北海的书，然后给妹妹写了一封信。"
KO = "저녁에는 수프를 먹고 나서 북해에 관한 책을 한 장 더 읽고 여동생에게 편지를 썼다."
TH = "ตอนเย็นมีซุป หลังจากนั้นฉันอ่านหนังสือเกี่ยวกับทะเลเหนืออีกบทหนึ่ง"
HE = "בערב היה מרק, ואחר כך קראתי עוד פרק בספר על הים הצפוני וכתבתי מכתב לאחותי."
VI = "Buổi tối có món súp, sau đó tôi đọc thêm một chương của cuốn sách về Biển Bắc rồi viết thư cho em gái."
SHORT_ZH = "用 Python 写的 list 和 dict 的例子，以及它们的区别"
NO_ROOM = EmbedError("e5 needs 86 MB in /x, where 3 MB are free.", "Free some space.")
Made = Callable[..., tuple[Engine, Auto]]


@pytest.mark.parametrize("text", [DE, RU, ZH, KO, TH, HE, VI, SHORT_ZH, f"---\n{DE}"])
def test_what_is_not_in_english_is_told(text: str) -> None:
    assert is_english(text) is False


@pytest.mark.parametrize("text", [EN, f"{EN} He said “{ZH[:9]}” to me.", f"{EN} https://example.com/ação/de/pt-br/que"])
def test_english_with_a_few_foreign_words_stays_english(text: str) -> None:
    assert is_english(text) is True


@pytest.mark.parametrize(
    "text", ["", "12 × 34", "x = f(y)", "https://de.example.com/der/die/das", "α β γ δ: x, y, z, aa, bb"]
)
def test_numbers_code_and_addresses_are_of_no_language(text: str) -> None:
    assert is_english(text) is None


def test_the_share_is_of_texts_whose_language_is_told() -> None:
    assert share_not_english([EN, DE, RU, ZH, "12"]) == (0.75, 4)
    assert share_not_english(["12"]) == (0.0, 0)


@pytest.mark.parametrize(
    ("before", "share", "told", "model"),
    [
        ("", 0.0, 0, "minilm"),
        ("", 0.09, 100, "minilm"),
        ("", 0.5, 2, "e5"),
        ("minilm", 0.09, 100, "minilm"),
        ("minilm", 0.10, 100, "e5"),
        ("minilm", 0.90, 9, "minilm"),
        ("e5", 0.04, 100, "e5"),
        ("e5", 0.03, 100, "minilm"),
        ("e5", 0.0, 9, "e5"),
        ("e5", 0.0, 0, "e5"),
    ],
)
def test_the_model_changes_on_a_clear_share_alone(before: str, share: float, told: int, model: str) -> None:
    assert choice(before, share, told) == model


def test_a_vault_around_a_bound_does_not_go_to_and_fro() -> None:
    model, changes = "minilm", 0
    for share in [0.09, 0.11, 0.09, 0.10, 0.08, 0.11, 0.05, 0.04, 0.11]:
        model, before = choice(model, share, 200), model
        changes += model != before
    assert (model, changes) == ("e5", 1)


def test_make_gives_it_and_loads_nothing() -> None:
    made = make(EmbeddingSettings(model="auto"))
    assert isinstance(made, Auto) and (made.name, made.chosen, made.dim) == ("minilm", "", 384)
    assert EmbeddingSettings().model == "auto"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """An engine on a vault of these texts, whose model is chosen among two stand-ins; `there`: whether e5 is."""

    def start(texts: Sequence[str], *, there: bool = True, trouble: EmbedError | None = None) -> tuple[Engine, Auto]:
        def ready() -> None:
            if trouble is not None:
                raise trouble

        monkeypatch.setattr(auto, "is_there", lambda: there)
        monkeypatch.setattr("tarsd.app.indexing.is_there", lambda: there)
        model = Auto({"minilm": FakeEmbedder(8, name="minilm-fake"), "e5": FakeEmbedder(16, name="e5-fake")}, ready)
        engine = Engine(tmp_path, model=model, processes=1)
        fill(engine, texts)
        return engine, model

    return start


def fill(engine: Engine, texts: Sequence[str]) -> None:
    for number, text in enumerate(texts):
        write(engine.vault, f"{number}.md", f"{text} {number}")


def passed(engine: Engine) -> None:
    """A pass over everything, as the index thread does it."""
    engine.watch()
    engine.quiet()


def test_an_english_vault_has_minilm(made: Made) -> None:
    engine, model = made([EN] * 20)
    with engine:
        passed(engine)
        about = engine.status()
    assert model.chosen == "minilm" and about["embedding"]["model"] == "minilm-fake"
    assert about["embedding"]["auto"] == "Chosen by itself: 0% of the passages are not in English."
    assert about["advice"] == []


def test_any_other_vault_has_e5(made: Made) -> None:
    engine, model = made([EN] * 10 + [ZH] * 5 + [VI] * 5)
    with engine:
        passed(engine)
        engine.embed()
        about = engine.status()
        assert engine.app.hello()["embedding_model"] == "e5-fake"
    assert model.chosen == "e5"
    assert about["embedding"]["model"] == "e5-fake" and "50%" in about["embedding"]["auto"]
    assert about["embedding"]["state"] == "complete" and about["advice"] == []


def test_without_the_extra_everything_is_as_it_was_and_what_helps_is_told(made: Made) -> None:
    engine, model = made([DE] * 12, there=False)
    with engine:
        assert model.chosen == "minilm", "nothing waits for a look at the languages"
        passed(engine)
        about = engine.status()
    assert model.chosen == "minilm" and "auto" not in about["embedding"]
    (helps,) = auto.advice("minilm", *engine.indexing.history.languages)
    assert "100% of the passages are not in English" in helps and helps.endswith("tarsd model use e5")


def test_where_e5_cannot_be_made_minilm_goes_on_and_the_reason_is_told(made: Made) -> None:
    engine, model = made([RU] * 12, trouble=NO_ROOM)
    with engine:
        passed(engine)
        assert engine.status()["embedding"]["model"] == "minilm-fake"
    (helps,) = auto.advice("minilm", *engine.indexing.history.languages, model.trouble)
    assert "3 MB are free. Free some space." in helps and "model use" not in helps


def test_a_change_builds_beside_the_old_vectors_and_switches_when_complete(made: Made) -> None:
    engine, model = made([EN] * 30)
    with engine:
        passed(engine)
        engine.embed()
        serving = engine.searcher.spaces._embedders[0][1]
        assert serving.name == "minilm-fake"
        fill(engine, [EN] * 20 + [DE] * 10)
        engine.reconcile()
        engine.indexing.history.passed(engine.vaults, engine.store.notes, whole=True)
        assert model.decide("", *engine.indexing.history.languages) and model.name == "e5-fake"
        space = engine.indexer.background._ensure(model)
        first = engine.store.vectors.missing(space.id, 3, local=True)
        texts = [job.passage.text for job in first]
        engine.store.vectors.put(space.id, [job.passage.hash for job in first], model.embed(texts, "document"))
        assert serving.name == "minilm-fake", "the old vectors serve while the new ones are few"
        engine.embed()
        assert serving.name == "e5-fake"
        assert [one.name for one in engine.store.vectors.spaces() if one.role == "model"] == ["e5-fake"]
        assert [one.name for one in engine.searcher.spaces.query_vectors("Suppe am Abend")[0]] == ["e5-fake"]


def test_a_change_in_the_middle_of_a_batch_is_no_fault(made: Made) -> None:
    engine, model = made([EN] * 12)
    with engine:
        model.decide("", 0.0, 12)
        engine.reconcile()
        batch = engine.indexer.background._next(model)
        model.decide("", 1.0, 12)
        engine.indexer.background._embed(model, batch)
        assert [space.vectors for space in engine.store.vectors.spaces() if space.role == "model"] == [0]
        engine.embed()
        about = engine.status()
    assert about["problems"] == [] and (about["embedding"]["model"], about["embedding"]["done"]) == ("e5-fake", 12)


def test_the_first_look_says_in_one_line_what_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "is_there", lambda: False)
    for number, text in enumerate([EN] * 15 + [VI] * 5):
        write(tmp_path, f"{number}.md", f"---\ntitle: the name of the note\nlang: what it is in\n---\n{text}\n")
    (helps,) = embedding.advice_for(tmp_path)
    assert helps.startswith("25% of the passages are not in English") and helps.endswith("tarsd model use e5")
    monkeypatch.setattr(embedding, "is_there", lambda: True)
    monkeypatch.setattr(e5_files, "is_made", lambda: True)
    assert embedding.advice_for(tmp_path) == [], "auto takes e5 by itself"
    assert embedding.said_of_languages("minilm", 0.25, 20)[1] == [helps], "a model that is named stays"
    monkeypatch.setattr(e5_files, "is_made", lambda: False)
    monkeypatch.setattr(e5_files, "LEAST_MEMORY", 1 << 60)
    (helps,) = embedding.advice_for(tmp_path)
    assert "needs more memory" in helps and '"minilm"' in helps, "a small machine is told what to use"
    assert embedding.advice_for(tmp_path / "nowhere") == []
