"""Do two remembered lines say the same, or do they differ about the same thing? By whole words, in any language. Pure.

Nothing here knows grammar, so that two lines differ is a question for the person and no judgement: see `differs`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPLIT = re.compile(r"[\s,;]+|(?<=[^\W\d_])/(?=[^\W\d_])")
_EDGES = "".join(char for char in map(chr, range(0x21, 0x3100)) if unicodedata.category(char)[0] in "PS")
_TAIL = _EDGES.translate(dict.fromkeys(map(ord, "+#%°€$£¥")))
_HEAD = _EDGES.translate(dict.fromkeys(map(ord, "+-−#€$£¥@")))
_ELISION = re.compile(r"(?<!\w)(?:[jldnmtscJLDNMTSC]|qu|Qu)'(?=\w)")
_GRADE = re.compile(r"[A-Z]{1,2}[+−-]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er|ère|º|ª)")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts without blanks between words (Thai, Lao, Burmese, Khmer, Japanese, Chinese), and of Korean."""
_PIECE = re.compile(rf"{_UNSPACED.pattern}|(?:(?!{_UNSPACED.pattern}).)+")

_CONTRACTED = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "i'm": "i am",
    "ain't": "is not", "he's": "he is", "she's": "she is", "it's": "it is", "that's": "that is", "who's": "who is",
    "we're": "we are", "they're": "they are", "you're": "you are", "i've": "i have", "we've": "we have", "im": "i am",
    "dont": "do not", "doesnt": "does not", "isnt": "is not", "cant": "can not", "heißt": "heisst",
}  # fmt: skip
_SMALL = _set(
    "my mein meine mon ma mes mi mis mio mia meu minha mijn is are am ist bin est sont es soy è é "
    "now currently actually still always usually jetzt derzeit immer maintenant toujours ahora siempre ora sempre nu"
)
"""Words that say nothing about what a line is about: "Dentist: Dr Ek" is "My dentist is Dr Ek"."""
_NO = _set(
    "not no never none nicht nie niemals kein keine keinen keinem keiner ne n pas jamais aucun aucune nunca jamás "
    "ningún ninguna non não niet geen nooit ikke aldri hate hates dislike dislikes hasse hasst déteste detesto odio "
    "不 没 沒"
)
_BESIDE_NO = _set("do does did longer anymore")
_MANY = _set(
    "like likes love loves enjoy enjoys have has friend friends colleague colleagues mag liebe habe hat freund "
    "freundin aime ai ami amie gusta gustan amo tengo tiene amigo amiga 好 喜 爱 愛"
)
"""Words about what a person has several of: tea and coffee, friends, cats."""
_NUMERALS = _set(
    "zero one two three four five six seven eight nine ten eleven twelve zwei drei vier fünf sechs sieben acht neun "
    "zehn deux trois quatre cinq sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez"
)


@dataclass(frozen=True)
class Word:
    """A word as it is compared, and whether it began with a capital."""

    text: str
    capital: bool = False

    @property
    def number(self) -> bool:
        """Does it count or date something?"""
        return any(map(str.isdigit, self.text)) or self.text in _NUMERALS


def same(first: str, second: str) -> bool:
    """The same words in the same order, whatever the case, the punctuation and the line breaks."""
    mine, theirs = words(first), words(second)
    return mine == theirs if mine or theirs else first.split() == second.split()


def words(text: str) -> list[str]:
    """The words of a line as they are compared: "C++" and "C#" differ, "don't" is "do not", "Ann" is not "Anna"."""
    return _texts(list(_words(text)))


def contains(text: str, wanted: str) -> bool:
    """Do the words of `wanted` stand in `text` one after the other?"""
    mine, theirs = words(text), words(wanted)
    return any(mine[at : at + len(theirs)] == theirs for at in range(len(mine) - len(theirs) + 1)) if theirs else False


def differs(first: str, second: str) -> bool:
    """Do two lines seem to say different things about one subject, so that only one of them holds?

    It rather asks once too often: what follows the same beginning differs, or a number does, or one line says no. It
    does not ask where one line only adds something, or where a person has several such things, as with tea and coffee.
    """
    mine, theirs = (
        [Word(piece, word.capital) for word in _words(text) for piece in _PIECE.findall(word.text)]
        for text in (first, second)
    )
    if _denied(mine) != _denied(theirs) and _only_denied(mine, theirs):
        return True
    mine, theirs = ([word for word in given if word.text not in _SMALL] for given in (mine, theirs))
    begun = _common(_texts(mine), _texts(theirs))
    return begun > 0 and (_other_number(mine, theirs) or _other_value(mine, theirs, begun))


# ------------------------------------------------------------------------------------------------ words


def _words(text: str) -> Iterator[Word]:
    text = unicodedata.normalize("NFC", text).replace("’", "'").replace("ʼ", "'").replace("`", " ")
    for piece in _SPLIT.split(_ELISION.sub(lambda match: match[0][:-1] + " ", text)):
        if _GRADE.fullmatch(piece):
            yield Word(piece.casefold(), True)
            continue
        word = piece.lstrip(_HEAD).rstrip(_TAIL) if len(piece) > 1 else piece.strip(_EDGES)
        if not any(char.isalnum() for char in word):
            continue
        capital = word[:1].isupper()
        folded = word.casefold()
        if expanded := _CONTRACTED.get(folded):
            yield from map(Word, expanded.split())
        elif folded.endswith("n't"):
            yield Word(folded[:-3])
            yield Word("not")
        else:
            ordinal = _ORDINAL.fullmatch(folded)
            yield Word(ordinal[1] if ordinal else folded, capital)


def _texts(given: list[Word]) -> list[str]:
    return [word.text for word in given]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words, or letters of a word, both begin with."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(first), len(second)))


def _apart(mine: list[Word], theirs: list[Word]) -> tuple[list[Word], list[Word]]:
    """What is left of both without the words that they begin and end with."""
    begun = _common(_texts(mine), _texts(theirs))
    mine, theirs = mine[begun:], theirs[begun:]
    ended = _common(_texts(mine[::-1]), _texts(theirs[::-1]))
    return mine[: len(mine) - ended], theirs[: len(theirs) - ended]


# ------------------------------------------------------------------------------------------------ differences


def _denied(given: list[Word]) -> bool:
    return any(word.text in _NO for word in given)


def _only_denied(mine: list[Word], theirs: list[Word]) -> bool:
    """The same words but for the "no", and for one more or in another form: "does not eat", "eats"."""
    drop = _NO | _BESIDE_NO | _SMALL
    kept, others = ([word for word in given if word.text not in drop] for given in (mine, theirs))
    left, right = _apart(kept, others)
    if not kept or not others:
        return False
    return len(left) + len(right) < 2 or (len(left) == len(right) == 1 and _alike(left[0].text, right[0].text))


def _other_number(mine: list[Word], theirs: list[Word]) -> bool:
    """The same words but for numbers, of which each line has its own; one may have further words."""
    counts, others = ({word.text for word in given if word.number} for given in (mine, theirs))
    rest, other_rest = ({word.text for word in given if not word.number} for given in (mine, theirs))
    return not (counts <= others or others <= counts) and (rest <= other_rest or other_rest <= rest)


def _other_value(mine: list[Word], theirs: list[Word], begun: int) -> bool:
    """The same beginning, and behind it another name, another word, or the same word written in another way."""
    if _MANY & set(_texts(mine)) & set(_texts(theirs)):
        return False
    left, right = _apart(mine, theirs)
    if left and right and all(_UNSPACED.fullmatch(word.text) for word in (*left, *right)):
        return max(len(left), len(right)) <= len(mine) - len(left)
    left, right = mine[begun:], theirs[begun:]
    if not left or not right:
        return False
    if len(left) == len(right) == 1 and _alike(left[0].text, right[0].text):
        return True
    kinds = [_kind(left[0], mine), _kind(right[0], theirs)]
    if "" not in kinds and kinds[0] != kinds[1]:
        return False
    return kinds == ["name", "name"] or (len(left) == len(right) == 1 and (begun > 1 or "code" in kinds))


def _kind(value: Word, line: list[Word]) -> str:
    """What a value seems to be; "" if that cannot be told, for the line has no capitals at all."""
    if not value.text.isalpha():
        return "code"
    return "name" if value.capital else "word" if any(word.capital for word in line) else ""


def _alike(first: str, second: str) -> bool:
    """Do two words begin with the same letters, at least half of the shorter one and no fewer than two?"""
    begun = _common(first, second)
    return begun > 1 and 2 * begun >= min(len(first), len(second))
