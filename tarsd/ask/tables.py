"""The tables of questions: what is known of each language, and the forms in which words are compared. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from tarsd.store import stem
from tarsd.words import is_spaceless, stems
from tarsd.words.languages import ENGLISH, OTHERS

SPACED = ("en", "de", "es", "fr", "pt", "it", "nl", "ru", "any")
LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "nl", "ru", "ja", "zh")
"""The languages that have a table."""

_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")


@cache
def load(name: str) -> dict[str, Any]:
    """The table of this name."""
    loaded: dict[str, Any] = json.loads((files("tarsd") / "data" / "ask" / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def simplified(text: str) -> str:
    """Lower case without accents, each character in its place, so that places in it are places in the text."""
    return text.lower() if text.isascii() else "".join(map(_simple, text))


@lru_cache(maxsize=10_000)
def _simple(char: str) -> str:
    wide = unicodedata.normalize("NFKC", char)
    low = (wide if len(wide) == 1 else char).lower()[0]
    if "LATIN" in unicodedata.name(low, "") or low == "ё":
        low = unicodedata.normalize("NFD", low)[0]
    return {"’": "'", "‘": "'", "–": "-", "—": "-", "〜": "~", "～": "~"}.get(low, low)


# ------------------------------------------------------------------------------------------------ languages


def languages_of(text: str) -> list[str]:
    """The languages that a question may be in, the likeliest first; those that share its words as often are all there.

    English where nothing tells.
    """
    if _KANA.search(text):
        return ["ja"]
    if _HAN.search(text):
        return ["zh", "ja"]
    if _CYRILLIC.search(text):
        return ["ru"]
    said = re.findall(r"[^\W\d_]+", simplified(text))
    counts = {language: sum(word in _function_words(language) for word in said) for language in SPACED[:-2]}
    most = max(counts.values(), default=0)
    likely = [language for language, count in counts.items() if count == most]
    if len(likely) > 1:  # “Tarefas atrasadas” has no such word, “Attività in ritardo” one of many languages
        known = {language: sum(word in _content_words(language) for word in said) for language in likely}
        best = max(known.values())
        likely = [language for language in likely if known[language] == best] if best or most else ["en"]
    return likely


@cache
def _function_words(language: str) -> frozenset[str]:
    words = load(language)["words"]
    asked = (word for name in ("noise", "when", "who", "which") for word in re.findall(r"[^\W\d_]+", words[name]))
    return frozenset(map(simplified, (*asked, *(ENGLISH if language == "en" else OTHERS.get(language, ())))))


@cache
def _content_words(language: str) -> frozenset[str]:
    words = load(language)["words"]
    asked = (word for name in ("task", "open", "overdue") for word in re.findall(r"[^\W\d_]{3,}", words[name]))
    return frozenset((*map(simplified, asked), *_synonyms(language)[0]))


@cache
def noise(language: str) -> frozenset[str]:
    """Words that say nothing of what is asked for."""
    listed = load(language)["words"]["noise"].split("|")
    stops: Sequence[str] = [*ENGLISH] if language == "en" else [*OTHERS.get(language, ())]
    return frozenset(map(simplified, (*listed, *stops)))


@cache
def marks(language: str) -> Mapping[str, re.Pattern[str]]:
    """By name the expressions for words that say what is wished for, in simplified text."""
    edges = (r"(?<!\w)(?:", r")(?!\w)") if language in SPACED else ("(?:", ")")
    others = ("noise", "superlatives", "unprefix")
    words = {name: said for name, said in load(language)["words"].items() if name not in others}
    for ranked, said in load(language)["words"]["superlatives"].items():
        words[f"= {ranked}"] = said
    return {
        name: re.compile(simplified(edges[0] + said.replace(" ", r"\s+") + edges[1])) for name, said in words.items()
    }


def sentence(language: str, name: str, /, **values: object) -> str:
    """A sentence in a language, in English where that has none."""
    own = load(language)["sentences"]
    return str(own.get(name) or load("en")["sentences"][name]).format(**values)


# ------------------------------------------------------------------------------------------------ words


@lru_cache(maxsize=100_000)
def forms(word: str, languages: tuple[str, ...]) -> frozenset[str]:
    """The forms in which a word meets its inflections: itself, simplified, and its stems in these languages."""
    plain = simplified(word)
    if is_spaceless(plain) or not plain.isalpha():
        return frozenset((plain,))
    found = {plain}
    if "en" in languages and plain.isascii() and len(plain) > 2:
        found.update(f"en {stem(verb)}" for verb in (plain, *_irregular().get(plain, ())) if len(verb) > 2)
    for language in languages:
        found.update(stems([word], language) if len(plain) > 3 else ())
    return frozenset(found)


@cache
def _irregular() -> Mapping[str, frozenset[str]]:
    """The irregular forms of English verbs, each with the others of its verb."""
    verbs = [verb.split() for verb in load("en")["irregular"].split("|")]
    return {form: frozenset(verb) for verb in verbs for form in verb}


@cache
def _synonyms(language: str) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """By word, and by form, the groups of words that mean the same in which it is."""
    words: dict[str, set[str]] = {}
    inflected: dict[str, set[str]] = {}
    for group, row in load("synonyms").items():
        for said in row[language].split():
            phrase = simplified(said.replace("_", " "))
            words.setdefault(phrase, set()).add(group)
            for form in () if " " in phrase else forms(phrase, (language,)):
                inflected.setdefault(form, set()).add(group)
    return _frozen(words), _frozen(inflected)


def _frozen(found: Mapping[str, set[str]]) -> Mapping[str, frozenset[str]]:
    return {form: frozenset(held) for form, held in found.items()}


@cache
def phrases(language: str) -> re.Pattern[str]:
    """An expression for the synonyms of several words, such as “gave up on”, in simplified text."""
    several = {said for said in _synonyms(language)[0] if " " in said}
    longest = sorted(several, key=lambda said: (-len(said), said))
    listed = "|".join(re.escape(said).replace("\\ ", "[ -]") for said in longest)
    return re.compile(rf"(?<!\w)(?:{listed or '(?!)'})(?!\w)")


@lru_cache(maxsize=50_000)
def groups(word: str, languages: tuple[str, ...]) -> frozenset[str]:
    """The groups of synonyms that hold a word or phrase of these languages.

    Of all languages at once it must be the very word: stems of some are words of others.
    """
    found: set[str] = set()
    for language in languages:
        words, inflected = _synonyms(language)
        found |= words.get(simplified(word), frozenset())
        if languages != LANGUAGES and not found:
            for form in forms(word, (language,)):
                found |= inflected.get(form, frozenset())
    return frozenset(found)


def main_language(words: Iterable[str]) -> str:
    """The language in whose tables most of these words are, the first of several."""
    listed = [simplified(word) for word in words]
    return max(LANGUAGES, key=lambda language: sum(word in _synonyms(language)[0] for word in listed))


@lru_cache(maxsize=1_000)
def related(group: str) -> tuple[str, ...]:
    """The groups that stand in for one, best first."""
    return tuple(load("synonyms")[group].get("also", "").split())
