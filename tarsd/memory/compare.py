"""Do two remembered lines say the same, or contradict each other? By whole words, never by prefixes. Pure.

It rather misses a contradiction than finds one where there is none: a person likes tea and coffee.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Relation = Literal["same", "contradicts", ""]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPLIT = re.compile(r"[\s,;]+|(?<=[^\W\d_])/(?=[^\W\d_])")
_EDGES = "".join(char for char in map(chr, range(0x21, 0x3100)) if unicodedata.category(char)[0] in "PS")
_TAIL = _EDGES.translate(dict.fromkeys(map(ord, "+#%°€$£¥")))
_HEAD = _EDGES.translate(dict.fromkeys(map(ord, "+-−#€$£¥@")))
_LABEL = re.compile(r"([^:.!?\[\]]{1,60}?)\s*(?::|\s[–—-])\s+(\S.*)")
_ELISION = re.compile(r"(?<!\w)(?:[jldnmtscJLDNMTSC]|qu|Qu)'(?=\w)")
_GRADE = re.compile(r"[A-Z]{1,2}[+−-]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er|ère|º|ª)")
_NUMBER = re.compile(r"[+-]?\d[\d.,:/-]*[%€$£°]?|[€$£]\d[\d.,]*")

_CONTRACTED = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "i'm": "i am",
    "ain't": "is not", "he's": "he is", "she's": "she is", "it's": "it is", "that's": "that is", "who's": "who is",
    "we're": "we are", "they're": "they are", "you're": "you are", "i've": "i have", "we've": "we have", "im": "i am",
    "dont": "do not", "doesnt": "does not", "isnt": "is not", "cant": "can not", "heißt": "heisst",
}  # fmt: skip
_ARTICLES = _set(
    "a an the any some der die das den dem ein eine einen einem einer le la les l un une du de des d el los las una "
    "unos unas del il lo gli i' o os as het een"
)
_FILLERS = _set(
    "now currently actually really still also always usually jetzt derzeit aktuell auch immer maintenant actuellement "
    "toujours aussi ahora actualmente siempre también ora adesso sempre nu altijd"
)
_NEGATORS = _set(
    "not no never none nicht nie niemals kein keine keinen keinem keiner keines ne n pas jamais aucun aucune nunca "
    "jamás ningún ninguna non não niet geen nooit ikke aldri"
)
_AFTER_NEGATION = _set("longer anymore more mehr plus ya más do does did más meer")
_OPPOSITES = {
    "dislike": "like", "dislikes": "likes", "hate": "like", "hates": "likes", "detest": "like", "detests": "likes",
    "hasse": "mag", "hasst": "mag", "déteste": "aime", "detesto": "amo", "odio": "amo", "avoid": "use",
}  # fmt: skip
_ALIKE = {"love": "like", "loves": "likes", "enjoy": "like", "enjoys": "likes", "liebe": "mag", "liebt": "mag"}

_BE = _set(
    "is are am ist sind bin seid est sont suis sommes es son soy está están estoy eres è sono sei é são sou is zijn "
    "ben er är lautet"
)
_BE_SURE = _BE - _set("es son er sei sono é e")
"""The forms that are not another common word in another of the languages ("my son", "er", "es")."""
_HELPERS = _BE | _set("was were wurde me se s m")
_SUBJECTLESS = {"answer", "live", "work", "called", "have", "weigh", "take"}
"""What a rule begins with, or a sentence in Spanish."""
_VERBS = {
    "live": _set(
        "live lives reside resides wohne wohnt wohnen lebe lebt leben habite habites habitons habitent vis vit vivons "
        "vivo vive vivimos viven abito abita moro mora woon woont bor"
    ),
    "work": _set(
        "work works arbeite arbeitet arbeiten travaille travaillent travaillons trabajo trabaja trabajan lavoro lavora "
        "trabalho trabalha werk werkt jobber jobbar"
    ),
    "born": _set("born geboren né née nací nació nato nata nasci nasceu født"),
    "called": _set("called named heisse heisst heissen appelle appellent llamo llama llaman chiamo chiama chamo heet"),
    "weigh": _set("weigh weighs wiege wiegt pèse peso pesa"),
    "have": _set("have has habe hat haben ai avons tengo tiene tenemos ho ha tenho tem heb heeft har"),
    "take": _set("take takes need needs earn earns pay pays nehme nimmt brauche braucht prends prend tomo toma"),
    "answer": _set(
        "answer reply respond write speak antworte antworten schreibe schreib réponds répondre répondez réponse "
        "responde contesta rispondi responda antwoord svar"
    ),
}
_ONE_VALUE = {"live", "work", "born", "called", "answer"}
_PLACES = _set("in at on im am an auf bei à au aux en dans chez a sur em no na op te i på for as für als como pour")
_TITLES = _set("dr doctor mr mrs ms miss prof professor herr frau doktor m mme mlle sr sra srta don doña dott sig")
_MINE = _set(
    "my our mein meine meinen meinem meiner unser unsere mon ma mes notre nos mi mis nuestro nuestra mio mia meu minha "
    "mijn ons onze min mitt vår"
)
_OTHERS_OWN = _set("your his her their its dein deine sein seine ihr ihre ton ta tes son sa ses leur tu tus su sus")
_MANY = _set(
    "friend colleague neighbour neighbor cousin hobby pet book film movie song freund freundin kollege kollegin "
    "nachbar nachbarin hobby haustier ami amie collègue voisin voisine amigo amiga colega vecino vecina mascota goal "
    "ziel plan idea like dislike interest"
)
_ONE = _set(
    "name birthday age address phone number mobile email mail job employer height weight size password pin code "
    "timezone colour color blood passport nationality hometown language favourite favorite preferred geburtstag "
    "adresse telefonnummer nummer handynummer beruf arbeitgeber grösse gewicht alter wohnort vorname nachname "
    "lieblingsfarbe lieblingsessen muttersprache anniversaire âge adresse téléphone numéro taille poids préféré "
    "préférée langue prénom nom nombre cumpleaños edad dirección teléfono número trabajo altura talla favorito "
    "favorita apellido idioma compleanno età indirizzo preferito preferita aniversário idade endereço "
    "verjaardag leeftijd"
)
_TIME = _set(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday januar februar märz mai juni juli "
    "oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag janvier février mars avril juin "
    "juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche enero "
    "febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles jueves "
    "viernes sábado domingo"
)
_NUMERALS = _set(
    "zero one two three four five six seven eight nine ten eleven twelve zwei drei vier fünf sechs sieben acht neun "
    "zehn deux trois quatre cinq sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez"
)


@dataclass(frozen=True)
class Word:
    """A word as it is compared, and whether it began with a capital."""

    text: str
    capital: bool = False


@dataclass(frozen=True)
class Claim:
    """What a line says: the `value` that `verb` gives to `subject`; `one` if there can be but one such value."""

    subject: tuple[str, ...]
    verb: str
    value: tuple[Word, ...]
    negated: bool
    owned: bool
    one: bool
    bare: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the value."""
        return tuple(word.text for word in self.value)


def same(one: str, other: str) -> bool:
    """The same words in the same order, whatever the case, the punctuation and the line breaks."""
    mine, theirs = words(one), words(other)
    return mine == theirs if mine or theirs else one.split() == other.split()


def words(text: str) -> list[str]:
    """The words of a line as they are compared: "C++" and "C#" differ, "don't" is "do not", "Ann" is not "Anna"."""
    return [word.text for word in _words(text)]


def contains(text: str, wanted: str) -> bool:
    """Do the words of `wanted` stand in `text` one after the other?"""
    mine, theirs = words(text), words(wanted)
    return any(mine[at : at + len(theirs)] == theirs for at in range(len(mine) - len(theirs) + 1)) if theirs else False


def compare(known: str, new: str) -> Relation:
    """How a new line stands to a known one; "" if both may be true, or if one only says more than the other."""
    if same(known, new):
        return "same"
    first, second = _claim(known), _claim(new)
    if _opposite(first, second) or _opposite(second, first):
        return "contradicts"
    return "contradicts" if _other_value(first, second) else ""


# ------------------------------------------------------------------------------------------------ words


def _words(text: str) -> list[Word]:
    return list(_each_word(text))


def _each_word(text: str) -> Iterator[Word]:
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
            for part in expanded.split():
                yield Word(part)
        elif folded.endswith("n't"):
            yield Word(folded[:-3])
            yield Word("not")
        else:
            ordinal = _ORDINAL.fullmatch(folded)
            yield Word(ordinal[1] if ordinal else folded, capital)


def _claim(text: str) -> Claim:
    label = _LABEL.fullmatch(text.strip())
    if label and not _verb_at(_words(label[1])):
        subject, _ = _unowned(_words(label[1]))
        negated, value = _without_negation(_words(label[2]))
        head = subject[-1].text if subject else ""
        one = not (head.endswith("s") and not head.endswith("ss")) and not _many(subject)
        value = _plain(value)
        return Claim(_texts(subject), "be", tuple(value), negated, True, one, _texts([*subject, *value]))
    found = [Word(_ALIKE.get(word.text, word.text), word.capital) for word in _words(text)]
    negated, found = _without_negation(found)
    bare = tuple(word.text for word in found if word.text not in _ARTICLES and word.text not in _FILLERS)
    found = [word for word in found if word.text not in _FILLERS]
    at = _verb_at(found)
    if at is None:
        return Claim((), "", tuple(found), negated, False, False, bare)
    index, verb = at
    subject, owned = _unowned(found[:index])
    one = verb in _ONE_VALUE or bool(set(_texts(subject)) & _ONE)
    if verb in ("called", "born"):
        subject = [word for word in subject if word.text not in _HELPERS]
    given = tuple(_plain(found[index + 1 :]))
    return Claim(_texts(subject), verb, given, negated, owned and not _many(subject), one, bare)


def _texts(found: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in found)


def _many(subject: Sequence[Word]) -> bool:
    return bool(subject) and (subject[-1].text in _MANY or subject[-1].text.removesuffix("s") in _MANY)


def _unowned(subject: Sequence[Word]) -> tuple[list[Word], bool]:
    """The subject without articles and the speaker's own "my"; and whether it is somebody's, as a sister is."""
    texts = _texts(subject)
    owned = any(text in _MINE or text in _OTHERS_OWN or text.endswith(("'s", "s'")) for text in texts)
    return [word for word in subject if word.text not in _MINE and word.text not in _ARTICLES], owned


def _plain(value: Sequence[Word]) -> list[Word]:
    """A value without the articles and titles before and in it."""
    while value and value[-1].text in _FILLERS:
        value = value[:-1]
    return [word for word in value if word.text not in _ARTICLES and word.text not in _TITLES and word.text != "of"]


def _without_negation(found: Sequence[Word]) -> tuple[bool, list[Word]]:
    negations = sum(word.text in _NEGATORS for word in found)
    kept: list[Word] = []
    if negations:
        third = any(word.text == "does" for word in found)
        small = _NEGATORS | _AFTER_NEGATION
        for position, word in enumerate(found):
            if word.text in small:
                continue
            before = [one.text for one in found[max(0, position - 2) : position]]
            if third and "does" in before and before[-1] in _NEGATORS:
                word = Word(_third_person(word.text), word.capital)
            kept.append(word)
        negations = 1  # "je ne … pas", "no … nunca": two words, one negation
    else:
        kept = list(found)
    for position, word in enumerate(kept):
        if opposite := _OPPOSITES.get(word.text):
            kept[position] = Word(opposite, word.capital)
            negations += 1
    return negations % 2 == 1, kept


def _third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def _verb_at(found: Sequence[Word]) -> tuple[int, str] | None:
    """Where the verb stands that ties a subject to a value, and which it is."""
    texts = _texts(found)
    for verb, forms in _VERBS.items():
        for index, text in enumerate(texts[:8]):
            if text not in forms or not (index or verb in _SUBJECTLESS):
                continue
            noun = texts[index + 1 : index + 2] and texts[index + 1] in _BE_SURE  # "my work is", "the answer is"
            if verb in ("called", "born") or not (noun or _BE_SURE & set(texts[:index])):
                return index, verb
    for forms in (_BE_SURE, _BE):
        for index, text in enumerate(texts):
            if index > 0 and text in forms:
                return index, "be"
    return None


# ------------------------------------------------------------------------------------------------ contradictions


def _opposite(first: Claim, second: Claim) -> bool:
    """The same words, one of them with a "not"."""
    return first.negated and not second.negated and len(first.bare) > 0 and first.bare == second.bare


def _other_value(first: Claim, second: Claim) -> bool:
    if not first.verb or first.verb != second.verb or first.negated or second.negated:
        return False
    if first.subject != second.subject or not first.value or not second.value:
        return False
    if _says_more(first, second):
        return False
    verb, mine, theirs = first.verb, first.words, second.words
    if verb in ("have", "take", "weigh"):
        return _only_amounts(mine, theirs)
    if verb == "answer":
        return len(mine) == len(theirs) == 2 and mine[0] == theirs[0] and mine[0] in _PLACES
    if verb in ("live", "work", "born"):
        alike = mine[0] == theirs[0] and mine[0] in _PLACES and len(mine) > 1 < len(theirs)
        return alike and (verb == "live" or _kind(first.value[1:]) == _kind(second.value[1:]))
    if first.one and second.one:
        return True
    kinds = {_kind(first.value), _kind(second.value)}
    if len(kinds) > 1:
        return False
    kind = kinds.pop()
    if kind == "amount":
        return True
    if kind == "place":
        return mine[0] == theirs[0] and _kind(first.value[1:]) == _kind(second.value[1:]) == "name"
    if not (first.owned and second.owned):
        return False
    return kind == "name" or (len(mine) == len(theirs) == 1 and _spelt_alike(mine[0], theirs[0]))


def _says_more(first: Claim, second: Claim) -> bool:
    """Is one value the beginning of the other, or the same date or amount in other words?"""
    short, long = sorted((first.words, second.words), key=len)
    if long[: len(short)] == short:
        return True
    drop = _PLACES | {"years", "year", "old", "jahre", "alt", "ans", "años"}
    mine, theirs = (set(claim.words) - drop for claim in (first, second))
    if "amount" in (_kind(first.value), _kind(second.value)):
        return mine <= theirs or theirs <= mine
    return mine == theirs


def _kind(value: Sequence[Word]) -> str:
    """What sort of thing a value is: an amount or date, a place, a name, or something else."""
    texts = _texts(value)
    if any(_NUMBER.fullmatch(text) or text in _NUMERALS for text in texts[:4]) or (texts and texts[-1] in _TIME):
        return "amount"
    if len(texts) > 1 and texts[0] in _PLACES:
        return "place"
    return "name" if value and value[0].capital else ""


def _only_amounts(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """The same words but for numbers, and no dates: two cats are not three, two meetings may be."""
    if len(mine) != len(theirs) or set(mine) & _TIME or set(theirs) & _TIME:
        return False
    pairs = [(one, other) for one, other in zip(mine, theirs, strict=True) if one != other]
    return bool(pairs) and all(all(_NUMBER.fullmatch(text) or text in _NUMERALS for text in pair) for pair in pairs)


def _spelt_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one) or difflib.SequenceMatcher(None, one, other).ratio() >= 0.75
