"""Words: how they are folded, and which of them carry no meaning."""

from __future__ import annotations

import re
import unicodedata

from tarsd.passage import Passage

_ACCENTS = re.compile("[\u0300-\u036f]+")

# Closed-class words only; what is also a common noun or verb elsewhere ("will", "may") stays in English alone.
_ENGLISH = (
    "a about am an and any are as at be been being but by can could did do does doing for from had has have having he "
    "her here hers him his how i if in into is it its itself me might must my no nor not of on or our ours shall she "
    "should so some such than that the their theirs them then there these they this those to too us very was we were "
    "what when where which while who whom whose why will with would you your yours d ll m re s t ve don doesn didn isn "
    "aren wasn weren hasn haven hadn won wouldn couldn shouldn"
)
_OTHERS = {
    "de": "der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war waren wird werden wie "
    "was wer wo wann warum ich du er sie es wir ihr mein meine dein deine sein seine zu zum zur mit von vom bei für "
    "auf aus in im an am als auch noch nur so wenn dass man hat haben kann über unter nach vor",
    "fr": "le la les un une des du de d l et ou mais ne pas est sont était je tu il elle on nous vous ils elles mon ma "
    "mes ton ta tes son sa ses ce cette ces que qui quoi quand où comment pourquoi dans sur sous avec pour par en au "
    "aux à a ont plus",
    "es": "el la los las un una unos unas y o pero no es son era yo tú él ella nosotros mi mis tu tus su sus que qué "
    "quién cuándo dónde cómo por para con de del en a al se lo le como más hay",
    "it": "il lo la i gli le un uno una e o ma non è sono era io tu lui lei noi voi loro mio mia suo sua che chi "
    "quando dove come perché di del della dei da in con su per tra fra al alla si ho ha",
    "pt": "o a os as um uma e ou mas não é são era eu tu ele ela nós meu minha seu sua que quem quando onde como por "
    "para com de do da dos das em no na nos nas se ao",
    "nl": "de het een en of maar niet is zijn was waren ik jij je hij zij we wij mijn jouw wat wie waar wanneer hoe "
    "waarom met van voor op in uit aan bij naar te om dat die deze dit ook nog er",
    "ru": "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее мне есть был была было "
    "где когда почему кто чем из от для о об мы мой моя мои это этот эта эти ли между",
}
_BOTH = "bin come die dove era es fast hat hay ha ho la lo man men met mi mon no of on per plus son sous tu um van war"
ENGLISH = frozenset(_ENGLISH.split())
_AMBIGUOUS = ENGLISH | frozenset(_BOTH.split())
OTHERS = {name: frozenset(words.split()) for name, words in _OTHERS.items()}


def fold(text: str) -> str:
    """Lower case, without the accents of alphabets that have them; for comparing text with query words."""
    text = text.lower()
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def searched_text(passage: Passage) -> str:
    """All that a passage can be found by but links and properties, folded for comparing with query words."""
    note = passage.note
    return fold("\n".join((passage.text, *passage.trail, note.title, *note.aliases, *note.tags, note.path)))


def is_stop(words: list[str]) -> list[bool]:
    """Which of a query's words (lower case) say nothing by themselves.

    English ones always; those of another language where the query holds two different ones of it and one of them
    is no English word, so that "die" and "war" stay words in an English query.
    """
    present = set(words)
    spoken = [
        listed
        for listed in OTHERS.values()
        if len(present & listed) >= 2 and any(len(word) > 1 for word in (present & listed) - _AMBIGUOUS)
    ]
    return [word in ENGLISH or any(word in listed for listed in spoken) for word in words]


def begins_word(text: str, start: str, extra: int) -> bool:
    """Whether a word of the text begins with `start` and has at most `extra` letters more."""
    at = text.find(start)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():
            end = at + len(start)
            after = text[end : end + extra + 1]
            if len(after) <= extra or not after.isalnum():
                return True
        at = text.find(start, at + 1)
    return False


def has_literal(text: str, literal: str) -> bool:
    """Whether the text holds exactly this, symbols and all, and not as part of a longer word."""
    at = text.find(literal)
    while at >= 0:
        end = at + len(literal)
        inside = at > 0 and literal[:1].isalnum() and text[at - 1].isalnum()
        if not inside and not (literal[-1:].isalnum() and text[end : end + 1].isalnum()):
            return True
        at = text.find(literal, at + 1)
    return False
