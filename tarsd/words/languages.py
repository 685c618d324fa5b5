"""Languages: words that carry no meaning, which language a note is in, and the stems of its words (Snowball)."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import Stemmer

from tarsd.words.fold import fold

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
OTHERS = {name: frozenset(listed.split()) for name, listed in _OTHERS.items()}
_FOLDED = {name: frozenset(map(fold, listed)) for name, listed in OTHERS.items()}

# Of languages that have no list above: frequent words that tell them from the others.
_TELLING = {
    "ca": "els les amb és una per què aquest aquesta molt també però són més dels",
    "cs": "je se na že jsem jsou byl ale jako když který které jeho nebo aby tak už při",
    "da": "og det er ikke jeg til på med som af den har blev efter hvor også kan skal",
    "eo": "kaj la estas ne mi vi li ĝi kun por sed ankaŭ tiu kiu pri",
    "et": "ja on ei see et ma oli kui ka mis aga ning või kes oma veel",
    "eu": "eta da ez dira bat egin izan zen duen baina gara nire zuen ere",
    "fi": "ja on ei että se oli hän mutta kun myös niin kuin joka sitä ovat tai ole minä",
    "ga": "agus an na tá bhí sé ar go is le seo sin ach níl",
    "hu": "és a az nem hogy is egy volt van meg de ha ez csak már mint",
    "id": "dan yang di ini itu dengan untuk tidak dari pada saya akan adalah ke juga",
    "lt": "ir yra tai kad ne buvo su bet kaip iš į aš jis arba dar",
    "no": "og det er ikke jeg til på med som av en har ble etter hvor også kan skal",
    "pl": "i w nie się na jest że z do to jak ale co był była są tak przez od po",
    "ro": "și în nu este cu pe la de un o care din mai sunt pentru ce dar fost",
    "sv": "och det är inte jag till på med som av den har ett efter hur också kan ska",
    "tr": "ve bir bu da de için ile çok ama gibi daha ne var değil olarak sonra ben kadar",
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _name, _listed in ({name: listed.split() for name, listed in _TELLING.items()} | OTHERS | {"en": ENGLISH}).items():
    for _word in _listed:
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _name)
_SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "eo": "esperanto",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "uk": "russian",
}  # fmt: skip
"""Algorithms by ISO 639-1; English has its own in the keyword index, and Ukrainian is read as Russian is."""

_AS_RUSSIAN = str.maketrans("іїєґ", "ийег")
# Words that Hebrew writes together with the next one: and, the, in, as, to, from, that, when.
_HEBREW_PREFIX = re.compile(r"\A(?:ו?(?:כשה|לכש|שה|מה|כש|[הבכלמש])|ו)(?=[א-ת]{3})")
_STEMMED = (*_SNOWBALL, "he")
_MARKS = {language: chr(0xE100 + number) for number, language in enumerate(sorted(_STEMMED))}
_LOOKED_AT = 1_000
_WORD = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0900-\u0dff]+[^\W\d_]*)*")
_ASCII_WORD = re.compile("[a-z]+")  # the same in lower case, found in half the time
_SCRIPTS = {
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "cyrillic": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0600-\u06ff\ufb50-\ufdff\ufe70-\ufefc]"), "armenian": re.compile("[\u0530-\u058f]"),
    "devanagari": re.compile("[\u0900-\u097f]"), "tamil": re.compile("[\u0b80-\u0bff]"),
    "hebrew": re.compile("[\u05d0-\u05ea]"),
}  # fmt: skip
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_OTHER_SCRIPT = re.compile(
    "[\u0370-\u1dff\u1f00-\u1fff\u2c80-\u2dff\u3040-\ud7ff\uf900-\ufdff\ufe70-\ufefc\U00020000-\U0003ffff]{2,}"
)
_ADDRESS = re.compile(r"\w+://\S+")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_FEW = 4  # letters of a script that make no text in it
_SHORT = 12  # words of a text that one frequent word may tell
_ACCENTED = 0.05  # share of the letters that no English text has beyond ASCII
_TELLS = 0.04  # share of the words that a language's frequent ones must have
_RUSSIAN, _NOT_RUSSIAN = re.compile("[ыэё]"), re.compile("[іїєґўђјљњћџѓќѕ]")
_SERBIAN, _UKRAINIAN, _PERSIAN = re.compile("[ђјљњћџ]"), re.compile("[іїєґ]"), re.compile("[پچژگی]")


def guess(text: str) -> str:
    """The language that most of a text is in, as ISO 639-1 ("en", "ru"), "" where that cannot be told.

    By its script, and in scripts of several languages by letters or by frequent words of each.
    """
    text = unicodedata.normalize("NFC", text[:_LOOKED_AT]).lower()
    if text.isascii():
        return _by_words(text)
    beyond = "".join(_BEYOND_ASCII.findall(text))
    counts = {script: len(letters.findall(beyond)) for script, letters in _SCRIPTS.items()}
    if not any(counts.values()):
        return _by_words(text)
    counts["latin"] = len(_LATIN.findall(text))
    script = max(counts, key=lambda name: counts[name])
    if counts[script] < _FEW:
        return ""
    match script:
        case "latin":
            return _by_words(text)
        case "cyrillic":
            return _cyrillic(text)
        case "arabic":
            return "fa" if len(_PERSIAN.findall(text)) > counts["arabic"] / 50 else "ar"
        case "devanagari":
            return "ne" if len(re.findall("छ|को |मा ", text)) > len(re.findall("है|हैं|का |की |के |में", text)) else "hi"
    return {"greek": "el", "armenian": "hy", "tamil": "ta", "hebrew": "he"}[script]


def is_english(text: str) -> bool | None:
    """Whether most of a text is in English; None where that cannot be told, as of code, numbers and lists of names."""
    text = _ADDRESS.sub(" ", unicodedata.normalize("NFC", text[:_LOOKED_AT]))
    latin = _LATIN.findall(text)
    if sum(map(len, _OTHER_SCRIPT.findall(text))) >= max(_FEW, len(latin) / 2):  # a character may be a word
        return False
    if sum(len(word) > 1 for word in _WORD.findall(text)) < _FEW:
        return None
    language = guess(text)
    if not language and sum(letter > "\x7f" for letter in latin) >= max(_FEW, _ACCENTED * len(latin)):
        return False  # of a language that has no list, such as Vietnamese
    return {"": None, "en": True}.get(language, False)


def share_not_english(texts: Iterable[str]) -> tuple[float, int]:
    """The share of the texts that are in another language than English, and of how many texts the language is told."""
    said = [english for text in texts if (english := is_english(text)) is not None]
    return (said.count(False) / len(said) if said else 0.0), len(said)


def _cyrillic(text: str) -> str:
    foreign = len(_NOT_RUSSIAN.findall(text))
    if foreign > len(_RUSSIAN.findall(text)):
        own = {"sr": len(_SERBIAN.findall(text)), "uk": len(_UKRAINIAN.findall(text))}
        return next((language for language, letters in own.items() if 2 * letters > foreign), "")
    return "ru"


def _by_words(text: str) -> str:
    said = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)
    if not said:
        return ""
    counts = Counter(chain.from_iterable(filter(None, map(_LANGUAGES_OF.get, said))))
    if not counts:
        return ""
    (best, most), *others = counts.most_common(2)
    alone = not others or others[0][1] < most
    if most < max(1 if alone and len(said) < _SHORT else 2, _TELLS * len(said)):
        return ""
    return "en" if counts["en"] == most else best


_stemmers: dict[str, Stemmer.Stemmer] = {}
_lock = threading.Lock()


def stems(said: Iterable[str], language: str) -> list[str]:
    """The stem of each word, folded, with its language's mark before it: two words meet if they inflect the same word.

    Of a Hebrew word, itself and what stands after a prefix. Empty for English, and for languages that have no stemmer.
    """
    if language not in _STEMMED:
        return []
    mark = _MARKS[language]
    if language == "he":
        whole = list(map(fold, said))
        return [f"{mark}{form}" for word in whole for form in dict.fromkeys((word, _HEBREW_PREFIX.sub("", word, 1)))]
    if language == "uk":
        said = [unicodedata.normalize("NFC", word.lower()).translate(_AS_RUSSIAN) for word in said]
    with _lock:  # a stemmer serves one thread at a time
        stemmer = _stemmers.get(language)
        if stemmer is None:
            stemmer = _stemmers[language] = Stemmer.Stemmer(_SNOWBALL[language])
        found = stemmer.stemWords([unicodedata.normalize("NFC", word.lower()) for word in said])
    return [f"{mark}{folded}" for stem in found if (folded := fold(stem)) and " " not in folded]


def stems_of_text(text: str, language: str) -> list[str]:
    """The stems of all words of a text, each once."""
    return list(dict.fromkeys(stems(dict.fromkeys(_WORD.findall(text)), language))) if language in _STEMMED else []


def marks() -> dict[str, str]:
    """The mark that stems of each language begin with."""
    return _MARKS


def is_stop(words: Sequence[str]) -> list[bool]:
    """Which of a query's words (folded) say nothing by themselves.

    English ones always; those of another language where the query holds two different ones of it and one of them
    is no English word, so that "die" and "war" stay words in an English query.
    """
    present = set(words)
    spoken = [
        listed
        for listed in _FOLDED.values()
        if len(present & listed) >= 2 and any(len(word) > 1 for word in (present & listed) - _AMBIGUOUS)
    ]
    return [word in ENGLISH or any(word in listed for listed in spoken) for word in words]
