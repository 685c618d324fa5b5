"""Do two remembered lines say the same, or do they differ about the same thing? By whole words, in any language. Pure.

Nothing here knows grammar, so that two lines differ is a question for the person and no judgement: see `differs`.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
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
    "now currently actually still always usually jetzt derzeit immer maintenant toujours ahora siempre ora sempre nu "
    "current aktuell aktuelle aktueller actuel actuelle huidige nuvarande nåværende сейчас теперь мой моя моё мои"
)
"""Words that say nothing about what a line is about: "Dentist: Dr Ek" is "My dentist is Dr Ek"."""
_IS = _set(
    "is are am ist bin sind est sont suis es soy son è sono é sou são er är is zijn jest są je on olen είναι это הוא"
)
_ASSIGNS = re.compile(r"\w\s*(?:[:=：＝]|\s[—–-])\s*\S")
"""How a line gives something a value without a verb: "Car: red", "Моя машина — красная"."""
_NO = _set(
    "not no never none nicht nie niemals kein keine keinen keinem keiner ne n pas jamais aucun aucune nunca jamás "
    "ningún ninguna non não niet geen nooit ikke aldri aldrig inte ej ei ingen inga nem soha nie nigdy nikdy není "
    "nejsem nejím nemám nu niciodată değil hayır yok asla tidak bukan jangan không chưa hindi walang "
    "не нет никогда нельзя ні ніколи няма δεν μην ποτέ όχι لا ليس لست لم لن لا לא אין אף नहीं मत नही না নয় இல்லை "
    "hate hates dislike dislikes hasse hasst déteste detesto odio ненавижу 不 没 沒 無 未 别 別 非 안 못"
)
_BESIDE_NO = _set("do does did longer anymore more mehr plus más più больше")
_MANY = _set(
    "like likes love loves enjoy enjoys have has friend friends colleague colleagues mag liebe habe hat freund "
    "freundin aime ai ami amie gusta gustan amo tengo tiene amigo amiga люблю друг подруга gosto lubię gillar "
    "好 喜 爱 愛"
)
"""Words about what a person has several of: tea and coffee, friends, cats."""
_ALSO = _set("also too auch ebenfalls aussi également también tambien anche também ook också også też тоже также 也 も")
_SAID_SO = {
    ("moved", "to"): ("live", "in"), ("relocated", "to"): ("live", "in"), ("reside", "in"): ("live", "in"),
    ("resides", "in"): ("lives", "in"), ("works", "for"): ("works", "at"), ("work", "for"): ("work", "at"),
    ("is", "called"): ("is",), ("is", "named"): ("is",), ("are", "called"): ("are",), ("e-mail", "address"): ("email",),
    ("email", "address"): ("email",), ("mail", "address"): ("email",), ("phone", "number"): ("phone",),
}  # fmt: skip
"""Two words that say what others do."""
_RENAMED = {"e-mail": "email", "mail": "email", "favorite": "favourite", "color": "colour", "telephone": "phone"}
_COUNTED = {
    word: str(number)
    for number, words in enumerate(
        (
            "zero null zéro cero nol ноль нуль μηδέν صفر אפס शून्य",
            "one eins uno jeden jedna один одна одно ένα واحد אחת אחד एक",
            "two zwei deux dos dois duas twee två dwa dwie два две δύο اثنان שתיים שני दो",
            "three drei trois tres três drie tre trzy три τρία ثلاثة ثلاث שלוש שלושה तीन",
            "four vier quatre cuatro quatro quattro fyra fire cztery четыре чотири τέσσερα أربعة أربع ארבע ארבעה चार",
            "five fünf cinq cinco cinque vijf fem pięć пять п'ять πέντε خمسة خمس חמש חמישה पांच पाँच",
            "six sechs seis zes seks sześć шесть шість έξι ستة ست שש שישה छह छः",
            "seven sieben sept siete sete sette zeven sju syv siedem семь сім επτά εφτά سبعة سبع שבע שבעה सात",
            "eight acht huit ocho oito åtta åtte otte osiem восемь вісім οκτώ οχτώ ثمانية ثماني שמונה आठ",
            "nine neun neuf nueve nove negen nio dziewięć девять дев'ять εννέα εννιά تسعة تسع תשע תשעה नौ",
            "ten zehn dix diez dez dieci tien tio dziesięć десять δέκα عشرة عشر עשר עשרה दस",
            "eleven elf onze undici elva elleve jedenaście одиннадцать έντεκα ग्यारह",
            "twelve zwölf douze doce doze dodici twaalf tolv dwanaście двенадцать δώδεκα बारह",
            "thirteen dreizehn treize trece treze tredici dertien тринадцать",
            "fourteen vierzehn quatorze catorce veertien четырнадцать",
            "fifteen fünfzehn quinze quince quindici vijftien пятнадцать",
            "sixteen sechzehn seize dieciséis zestien шестнадцать",
            "seventeen siebzehn diecisiete zeventien семнадцать",
            "eighteen achtzehn dieciocho achttien восемнадцать",
            "nineteen neunzehn diecinueve negentien девятнадцать",
            "twenty zwanzig vingt veinte vinte venti twintig tjugo dwadzieścia двадцать είκοσι बीस",
        )
    )
    for word in words.split()
}


def _numbered(words: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: number for number, word in zip(itertools.count(first, step), words.split(), strict=False)}


_TENS = _numbered("thirty forty fifty sixty seventy eighty ninety", 30, 10)
_UNSPACED_COUNTED = _numbered("หนึ่ง สอง สาม สี่ ห้า หก เจ็ด แปด เก้า สิบ", 1) | _numbered("다섯 여섯 일곱 여덟 아홉", 5)
_UNSPACED_NO = {"ไม่": " not ", "មិន": " not ", "ບໍ່": " not ", "ません": "ます not ", "ない": "る not "}
_IN_UNSPACED = re.compile("|".join([*_UNSPACED_COUNTED, *_UNSPACED_NO]))
_CHINESE = "〇一二三四五六七八九"
_CHINESE_NUMBER = re.compile("[〇零一二两兩三四五六七八九]?十[一二三四五六七八九]?|[〇零一二两兩三四五六七八九]")


@dataclass(frozen=True)
class Word:
    """A word as it is compared, and whether it began with a capital."""

    text: str
    capital: bool = False

    @property
    def number(self) -> bool:
        """Does it count or date something?"""
        return any(map(str.isdigit, self.text))


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

    It rather asks once too often: what follows the same beginning differs, or stands between the same words, or a
    number does, or one line says no. It does not ask where one line only adds something, or where a person has several
    such things, as with tea and coffee.
    """
    if same(first, second):
        return False
    assigned = all(_assigns(text) for text in (first, second))
    mine, theirs = (
        [Word(piece, word.capital) for word in _words(text) for piece in _PIECE.findall(word.text)]
        for text in (first, second)
    )
    if _denied(mine) != _denied(theirs) and _only_denied(mine, theirs):
        return True
    mine, theirs = ([word for word in given if word.text not in _SMALL] for given in (mine, theirs))
    if _ALSO & ({word.text for word in mine} ^ {word.text for word in theirs}):
        return False
    begun = _common(_texts(mine), _texts(theirs))
    if _same_end(mine, theirs) or _value_of_more(mine, theirs) or _value_of_more(theirs, mine):
        return True
    return begun > 0 and (_other_number(mine, theirs) or _other_value(mine, theirs, begun, assigned))


# ------------------------------------------------------------------------------------------------ words


def _words(text: str) -> Iterator[Word]:
    return _said(_pieces(text))


def _pieces(text: str) -> Iterator[Word]:
    text = unicodedata.normalize("NFC", text).replace("’", "'").replace("ʼ", "'").replace("`", " ")
    text = _plain_numbers(text)
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
            folded = ordinal[1] if ordinal else folded
            yield Word(_counted(folded) or _RENAMED.get(folded, folded), capital)


def _counted(word: str) -> str:
    """A numeral in digits, "" for another word: eight, twenty, thirty-one."""
    tens, hyphen, ones = word.partition("-")
    if tens == "twenty" and hyphen and _COUNTED.get(ones, "0") in "123456789":
        return str(20 + int(_COUNTED[ones])) if ones in _COUNTED else ""
    if tens in _TENS and (not hyphen or ones in _COUNTED):
        return str(_TENS[tens] + int(_COUNTED.get(ones, 0)))
    return _COUNTED.get(word, "")


def _plain_numbers(text: str) -> str:
    """Digits of every script as ours, the numerals of scripts without blanks in digits, and their "no" as a word."""
    if text.isascii():
        return text
    text = "".join(str(unicodedata.digit(char)) if char.isdecimal() else char for char in text)
    text = _CHINESE_NUMBER.sub(_chinese, text)
    return _IN_UNSPACED.sub(lambda found: _UNSPACED_NO.get(found[0]) or str(_UNSPACED_COUNTED[found[0]]), text)


def _chinese(found: re.Match[str]) -> str:
    numeral = found[0].replace("零", "〇").replace("两", "二").replace("兩", "二")
    tens, ten, ones = numeral.partition("十")
    if not ten:
        return str(_CHINESE.index(numeral))
    return str(10 * (_CHINESE.index(tens) if tens else 1) + (_CHINESE.index(ones) if ones else 0))


def _said(given: Iterable[Word]) -> Iterator[Word]:
    """The words, those that say the same as others in their place."""
    before: Word | None = None
    for word in given:
        if before is not None and (other := _SAID_SO.get((before.text, word.text))):
            *first, last = (Word(text) for text in other)
            yield from first
            before = last
            continue
        if before is not None:
            yield before
        before = word
    if before is not None:
        yield before


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


def _assigns(text: str) -> bool:
    """Whether a line says what something is."""
    return bool(_ASSIGNS.search(text)) or not _IS.isdisjoint(text.casefold().split())


def _same_end(mine: list[Word], theirs: list[Word]) -> bool:
    """A line of a script without blanks that only ends as the other: the verb and what it is about stand there."""
    if _MANY & set(_texts(mine)) & set(_texts(theirs)) or not mine or not theirs:
        return False
    left, right = _apart(mine, theirs)
    ended = len(mine) - len(left) - _common(_texts(mine), _texts(theirs))
    unspaced = all(_UNSPACED.fullmatch(word.text) for word in (*left, *right, mine[-1]))
    return bool(left and right) and unspaced and ended >= max(3, len(left), len(right))


def _value_of_more(mine: list[Word], theirs: list[Word]) -> bool:
    """The same attribute with one more word to it: "email", "email address"; "player", "favourite player"."""
    if len(mine) < 2 or len(theirs) != len(mine) + 1 or mine[-1].text == theirs[-1].text:
        return False
    head, longer = _texts(mine[:-1]), _texts(theirs[:-1])
    if mine[-1].text in longer or _MANY & set(head):
        return False
    kinds = _kind(mine[-1], mine), _kind(theirs[-1], theirs)
    if kinds[0] != kinds[1] or not kinds[0]:
        return False
    return longer[1:] == head or (kinds[0] == "code" and longer[:-1] == head)


def _other_value(mine: list[Word], theirs: list[Word], begun: int, assigned: bool) -> bool:
    """The same beginning, and behind it another name, another word, or the same word written in another way."""
    if _MANY & set(_texts(mine)) & set(_texts(theirs)):
        return False
    left, right = _apart(mine, theirs)
    if left and right and all(_UNSPACED.fullmatch(word.text) for word in (*left, *right)):
        return max(len(left), len(right)) <= len(mine) - len(left)
    if 0 < len(left) == len(right) < 3 and len(mine) - len(left) > begun:  # the same words before and behind it
        return True
    left, right = mine[begun:], theirs[begun:]
    if not left or not right:
        return False
    if len(left) == len(right) == 1 and _alike(left[0].text, right[0].text):
        return True
    kinds = [_kind(left[0], mine), _kind(right[0], theirs)]
    if "" not in kinds and kinds[0] != kinds[1]:
        return False
    return kinds == ["name", "name"] or (
        len(left) == len(right) == 1 and (begun > 1 or (assigned and kinds[0] == kinds[1]) or "code" in kinds)
    )


def _kind(value: Word, line: list[Word]) -> str:
    """What a value seems to be; "" if that cannot be told, for the line has no capitals at all."""
    if not value.text.isalpha():
        return "code"
    return "name" if value.capital else "word" if any(word.capital for word in line) else ""


def _alike(first: str, second: str) -> bool:
    """Do two words begin with the same letters, at least half of the shorter one and no fewer than two?"""
    begun = _common(first, second)
    return begun > 1 and 2 * begun >= min(len(first), len(second))
