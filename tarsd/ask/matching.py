"""Which notes and values of a vault a question's words, names, numbers and times choose. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tarsd.ask.reading import AskedWord, Comparison, Question
from tarsd.ask.tables import simplified
from tarsd.ask.times import TimeSpan
from tarsd.ask.vocabulary import Ids, Key, Sheet, Vocabulary, iter_numbers, reading, shown, tokens
from tarsd.kinds import currency_of, kind_of
from tarsd.parse import Fact

IMPLIED = {
    "attended": ("attendees",),
    "howlong": ("duration", "length"), "howold": ("birthday", "age"), "howexpensive": ("cost",),
    "howfar": ("distance",),
}  # fmt: skip
"""By wishes the groups of synonyms whose properties these ask for without a word."""
_NO = frozenset(("@no", "@none", "false", "no", ""))
_SETTLES = frozenset(("done", "paid", "read", "watched", "sold"))
_SETTLED = ("@done", "@abandoned", "@paid", "@read", "@watched")
"""By groups of synonyms what is over: the properties that say when, and the values that say so."""
_ENDS = frozenset(("end", "warranty", "due"))
_YEAR = re.compile(r"(?:19|20)\d\d")
_RUNNING = ("@active", "@reading", "@watching")
Holding = Callable[[str], set[int]]
"""The ids of the notes in whose text or names all words of a text are."""


@dataclass
class Matcher:
    """A question beside a vault."""

    question: Question
    vault: Vocabulary
    holding: Holding

    @property
    def today(self) -> str:
        return self.question.today.isoformat()

    def in_time(self, day: str) -> bool:
        """Whether a day is within every time of the question."""
        return all(_within(day, span) for span in self.question.spans)

    def rest(self, *used: AskedWord) -> list[AskedWord]:
        """The content words that are not used and do not tell what kind of note a name is of."""
        beside = {word.start for called, _ in self.question.subjects for word in self.question.beside(called)}
        beside.update(word.start for word in used)
        return [word for word in self.question.content if word.start not in beside]

    def notes_of(self, word: AskedWord) -> Ids:
        """The notes of a kind, with a tag, or with a value that a word names."""
        kind = self.vault.kind_of_note(word.said)
        tagged = self.vault.tagged(word.text.lstrip("#"), word.said)
        return kind | tagged | self.valued_notes(word)

    def valued_notes(self, word: AskedWord) -> Ids:
        """The notes with a value that is the word, else one that means the same or has the word in it."""
        plain = simplified(word.text)
        exact = self.vault.values.get((plain,))
        if exact:
            return self.vault.valued(exact)
        whole = self.valued_by(word.said)
        return whole or self.vault.valued({held for form in word.said for held in self.vault.by_part.get(form, ())})

    def valued_literally(self, word: AskedWord) -> Ids:
        """The notes with a value that is the word itself, inflected or not."""
        return self.valued_by(word.literal)

    def valued_by(self, forms: Iterable[str]) -> Ids:
        """The notes with a value that is, as a whole, one of these forms or of these groups of synonyms."""
        return self.vault.valued({held for form in forms for held in self.vault.by_form.get(form, ())})

    def linked(self, called: str, ids: Ids) -> Ids:
        """The notes that link to a name, or have it as a value."""
        bare = called.removesuffix("'s").removesuffix("’s")
        return self.vault.mentioning(ids) | self.vault.valued(self.vault.values.get(tokens(bare), ()))

    def acts(self, word: AskedWord) -> bool:
        """Whether a word that is nowhere in the vault is what the person did: the one right behind “I” or “we”."""
        before = [one for one in self.question.words if one.stop <= word.start][-1:]
        told = any("self" in one.marks for one in before) and not word.text[:1].isupper()
        return told and not self.notes_of(word) and not self.holding(word.text)

    def implied(self, *wishes: str) -> list[tuple[Key, list[AskedWord], int]]:
        """The properties that wishes ask for without naming them."""
        groups = [group for wish in wishes for group in IMPLIED[wish]]
        return [(key, [], 2) for group in groups for key in self.vault.keys.values() if group in key.groups]

    def phrases(self) -> list[tuple[list[AskedWord], Ids]]:
        """Several words in a row that are one value, with the notes that have it.

        “Kestrel & Moor”, or a value beside the name of its property: “main course”.
        """
        words = [word for word in self.question.words if not word.time]
        found: list[tuple[list[AskedWord], Ids]] = []
        at = 0
        while at < len(words):
            for size in range(min(6, len(words) - at), 1, -1):
                own = words[at : at + size]
                said = tuple(simplified(word.text) for word in own)
                held = self.vault.values.get(said) or self.vault.values.get((*said[:-1], said[-1].removesuffix("'s")))
                held = held or (self._named_value(own) if size == 2 else None)
                if held and any(word.content for word in own):
                    found.append((own, self.vault.valued(held)))
                    at += size - 1
                    break
            at += 1
        return found

    def _named_value(self, pair: Sequence[AskedWord]) -> set[tuple[str, str]]:
        """The values that one of two content words is, of the property that the other one names."""
        if not all(word.content for word in pair):
            return set()
        return {
            held
            for value, named in (pair, pair[::-1])
            for held in self.vault.values.get((simplified(value.text),), ())
            if held[0] in self.vault.keys and any(part & named.literal for part in self.vault.keys[held[0]].words)
        }

    def chosen(self, words: Sequence[AskedWord]) -> tuple[Ids | None, list[AskedWord]]:
        """The notes for which holds what these words, the names and the times say; None for what is not understood.

        With them the words that name a kind of notes; “who” with a value is one, too.
        """
        asked = self.question
        phrased = self.phrases()
        in_phrases = [word for own, _ in phrased for word in own]
        base, kinds, left = self._of_kinds(phrased, [word for word in words if word not in in_phrases])
        chosen, confirmed, timed = base, bool(phrased), not asked.spans
        for called, ids in asked.subjects:
            if not any(word in in_phrases for word in asked.named if word.called == called):
                chosen, confirmed = chosen & self.linked(called, ids), True
        compared, verbs = list(asked.numbers), list[AskedWord]()
        for word in left:
            condition = self.condition(word, base)
            if condition is not None:
                chosen, confirmed = chosen & condition, True
                verbs += [word] if asked.wants("expired", "valid") else []
                continue
            keys = [one for one in asked.properties([word]) if base & one[0].notes] or [
                (key, [word], 1) for key in self._also(word) if base & key.notes
            ]
            values = self.valued_notes(word) & base
            dates = [key for key, _, _ in keys if key.mostly("date", "datetime")]
            if dates and not timed:
                chosen &= self.dated_within(dates)
                timed = confirmed = True
                verbs.append(word)
            elif compared and any(key.mostly("number", "duration") for key, _, _ in keys):
                chosen &= self.comparing([key for key, _, _ in keys], compared.pop(0))
                confirmed = True
                verbs.append(word)
            elif values:
                chosen, confirmed = chosen & values, True
                verbs += [word] if word.said & {*_RUNNING} else []
            elif keys and (compared or word.marks & {"more", "less"}):
                continue
            elif dates:
                chosen &= frozenset().union(*(key.notes for key in dates))
                verbs.append(word)
            elif keys:
                continue
            elif instead := self.valued_by(word.also) & base:
                chosen, confirmed = chosen & instead, True
            elif not self._unknown(word):
                return None, []
            else:
                chosen = frozenset()
        for one in compared:
            if not kinds:
                return None, []
            chosen &= self.comparing(self._measures(one, base), one)
        if not timed:
            of_days = any(self.vault.sheets[id].day for id in base)
            chosen &= self.dated_within(()) if of_days else self._main_dates(base)
            confirmed = confirmed or bool(kinds)
        if asked.wants("current") and kinds and not verbs:
            chosen = self.running(chosen) or chosen
        return chosen, kinds or self._instead_of_kinds(words, verbs, confirmed)

    def _of_kinds(
        self, phrased: Iterable[tuple[list[AskedWord], Ids]], words: Sequence[AskedWord]
    ) -> tuple[Ids, list[AskedWord], list[AskedWord]]:
        """The notes of the kinds that words name, these words, and the words that are left."""
        chosen, kinds, left = frozenset(self.vault.sheets), list[AskedWord](), list[AskedWord]()
        for own, ids in phrased:
            chosen &= ids
            kinds += [word for word in own if word.content and self.question.properties([word])][:1]
        literal = list[tuple[AskedWord, Ids]]()
        for word in words:
            kind = self.vault.kind_of_note(word.said)
            kind = kind or (self.vault.kind_of_note(word.also) if not self.having(word) else kind)
            going = self.question.wants("self", "current", "now")
            running = word.said & {*_RUNNING} if going else frozenset[str]()
            valued = self.valued_by(running) or self.valued_literally(word)
            # novels are books, but also values of a genre
            if valued and (running or not self.vault.kind_of_note(word.literal)):
                literal.append((word, valued))
            elif kind and not word.negated and not ((kinds or literal) and self.valued_notes(word)):
                chosen &= kind | self.vault.tagged(word.text.lstrip("#"), word.said)
                kinds.append(word)
            else:
                left.append(word)
        for word, valued in literal:
            if word.negated or (kinds and not valued & chosen):  # active clients, of which `active` is a check box
                left.append(word)
            else:
                chosen &= valued
                kinds.append(word)
        return chosen, kinds, left

    def _instead_of_kinds(
        self, words: Sequence[AskedWord], verbs: Sequence[AskedWord], confirmed: bool
    ) -> list[AskedWord]:
        """The words that say which notes are asked for where none names a kind of them."""
        asked = self.question
        if any(word.exact for word in asked.named) and asked.wants("links", "mention"):
            return [word for word in asked.words if word.marks & {"notes", "links"}]
        of_names, of_times = asked.subjects and asked.wants("mention"), asked.spans and asked.wants("many")
        if asked.wants("notes") and (of_names or of_times):
            return [word for word in asked.words if "notes" in word.marks]
        if verbs and asked.wants("which", "many") and (asked.wants("self") or verbs[:1] == asked.content[:1]):
            return [*verbs[:1]]  # what have I planted, by the date `planted`
        if asked.wants("who") and confirmed:
            return [word for word in asked.words if "who" in word.marks][:1] or list(words[:1])
        return []

    def running(self, base: Ids) -> Ids | None:
        """The notes of what is going on now, by their status or the date at which they end; None if none tells that."""
        if active := self.valued_by(_RUNNING) & base:
            return active
        ends = [key for key in self.vault.keys.values() if "end" in key.groups and key.notes & base]
        over = {id for id in base if any(day < self.today for day in self._days(id, ends))}
        over |= self.valued_by(("@abandoned",)) & base
        return base - over if ends or over else None

    def condition(self, word: AskedWord, base: Ids) -> Ids | None:
        """The notes among `base` for which holds what a word says or denies of them; None where it is no condition.

        “Hardy” plants, “unpaid” invoices, books “not read”, projects still “open”, bills that are “overdue”.
        """
        settled = self._settled(base) if word.marks & {"open", "overdue"} and not word.negated else None
        if settled is not None and "overdue" in word.marks:
            due = [key for key in self.vault.keys.values() if "due" in key.groups and key.notes & base]
            return frozenset(id for id in base - settled if any(day < self.today for day in self._days(id, due)))
        if settled is not None:
            return base - settled
        if self.question.wants("expired", "valid") and (lasting := self._lasting(word, base)) is not None:
            return lasting
        denied = word.negated or (bool(word.bare) and not self.having(word))
        forms = word.bare if word.bare and denied and not word.negated else word.said
        found = [(key, score) for key, _, score in self.vault.find_keys([forms]) if key.notes & base]
        keys = [key for key, score in found if score == found[0][1]]
        if word.negated and not keys:
            keys = [key for key in self._also(word) if key.notes & base]
        if denied:
            keys = [key for key in keys if not key.mostly("number")] or keys  # unpaid bills have an amount
            held = self.valued_by(forms) & base
            folders = {self._folder(id) for key in keys for id in key.notes}
            base = frozenset(id for id in base if not keys or self._folder(id) in folders)
            return base - held - self.positive(keys) if keys or held else None
        boxes = [key for key in keys if key.mostly("checkbox")]
        if not boxes and "@active" in word.said and self.question.wants("now", "current"):
            return self.running(base)
        return base & self.positive(boxes) if boxes else None

    def _lasting(self, word: AskedWord, base: Ids) -> Ids | None:
        """The notes among `base` of which the date that a word names is not over, or is, as asked."""
        until = [key for key, _, _ in self.vault.find_keys([word.said]) if key.mostly("date", "datetime")]
        if not until and word.marks & {"expired", "valid"}:
            until = [key for key in self.vault.keys.values() if key.groups & _ENDS]
        over = {id for id in base if any(day < self.today for day in self._days(id, until))}
        dated = {id for id in base if self._days(id, until)}
        return frozenset(over if self.question.wants("expired") else dated - over) if dated else None

    def _folder(self, id: int) -> str:
        return self.vault.sheets[id].note.path.rpartition("/")[0]

    def positive(self, keys: Iterable[Key]) -> Ids:
        """The notes of which one of these values says more than “no”."""
        names = {key.key for key in keys}
        return frozenset(
            id for id, sheet in self.vault.sheets.items()
            for fact in sheet.values(names)
            if not self.vault.meanings(shown(reading(fact))) & _NO
        )  # fmt: skip

    def _settled(self, base: Ids) -> Ids | None:
        """The notes among `base` that are done, paid or given up; None where nothing tells that of any."""
        own = [key for key in self.vault.keys.values() if key.notes & base]
        keys = [key for key in own if key.groups & _SETTLES]
        settled = (self.positive(keys) | self.valued_by(_SETTLED)) & base
        return settled if keys or settled or any("status" in key.groups for key in own) else None

    def _days(self, id: int, keys: Iterable[Key]) -> list[str]:
        """The days that these values of a note are."""
        return [day for fact in self.vault.sheets[id].values(key.key for key in keys) if (day := reading(fact).day)]

    def _also(self, word: AskedWord) -> list[Key]:
        return [key for key in self.vault.keys.values() if word.also & {f"@{group}" for group in key.groups}]

    def _unknown(self, word: AskedWord) -> bool:
        """Whether a word is written like a name and is nowhere in the vault: of that it holds nothing."""
        return word.text[:1].isupper() and not self.holding(word.text)

    def dated_within(self, keys: Iterable[Key]) -> Ids:
        """The notes with one of these dates in the question's time; without any, those whose own day is in it."""
        names = {key.key for key in keys}
        if not names:
            return frozenset(id for id, sheet in self.vault.sheets.items() if sheet.day and self.in_time(sheet.day))
        said = [self.question.text[span.start : span.stop] for span in self.question.spans]
        yearly = not any(map(_YEAR.search, said)) and any("birthday" in self.vault.keys[name].groups for name in names)
        return frozenset(
            id
            for id, sheet in self.vault.sheets.items()
            for fact in sheet.values(names)
            if (day := reading(fact).day) and (all(_within(day, span, yearly) for span in self.question.spans))
        )

    def _main_dates(self, base: Ids) -> Ids:
        """The notes of which the date that most of these have is in the question's time."""
        return self.dated_within(key) if (key := self._main_key(base)) else frozenset()

    def _main_key(self, base: Ids) -> list[Key]:
        dates = [key for key in self.vault.keys.values() if key.mostly("date", "datetime") and base & key.notes]
        told = [key for key in dates if key.groups & {"done", "read", "watched", "visited", "start", "date"}] or dates
        return sorted(told, key=lambda key: -len(base & key.notes))[:1]

    def main_day(self, id: int, base: Ids) -> str:
        """The own day of a note, or else the date that most of these notes have."""
        sheet = self.vault.sheets[id]
        facts = sheet.values(key.key for key in self._main_key(base))
        return sheet.day or next((day for fact in facts if (day := reading(fact).day)), "")

    def comparing(self, keys: Iterable[Key], one: Comparison) -> Ids:
        names = {key.key for key in keys}
        minutes = kind_of(f"{one.number:g} {one.unit}").minutes if one.unit else None
        found = set()
        for id, sheet in self.vault.sheets.items():
            for _, number, lasts in iter_numbers(sheet.values(names)):
                if number is None:
                    continue
                bound = minutes if minutes is not None and lasts else one.number
                if _compare(number, one.op, bound):
                    found.add(id)
        return frozenset(found)

    def _measures(self, one: Comparison, base: Ids) -> list[Key]:
        """The properties of notes that a bare number with a unit can be about."""
        unit = one.unit
        lasts = bool(unit) and kind_of(f"1 {unit}").minutes is not None
        wanted = ("duration",) if lasts else ("number",)
        keys = [key for key in self.vault.keys.values() if key.mostly(*wanted) and base & key.notes]
        said = set(self.question.ranked.split())
        return [key for key in keys if key.groups & said] or keys

    def item_says(self, id: int, fact: Fact, word: frozenset[str]) -> bool:
        """Whether the list item of a value says a word in its text or in another field."""
        if not fact.item:
            return False
        sheet = self.vault.sheets[id]
        texts = [item.text for item in sheet.items if item.line == fact.item]
        texts += [str(other.value) for other in sheet.facts if other.item == fact.item and other is not fact]
        return self.vault.with_words(texts, word)

    def in_currency(self, key: Key) -> bool:
        """Whether values of this name are amounts of money."""
        facts = (fact for id in key.notes for fact in self.vault.sheets[id].values([key.key]))
        return any(currency_of(reading(fact).unit) for fact in facts)

    def day_of(self, sheet: Sheet) -> str:
        """The day of a note, or else the first one among its values."""
        return sheet.day or next((day for fact in sheet.facts if (day := reading(fact).day)), "")

    def having(self, word: AskedWord) -> Ids:
        """The notes that have a property which the word names."""
        return frozenset().union(
            *(key.notes for key, _, score in self.question.properties([word]) if score > 1), frozenset()
        )

    def alike(self, id: int, key: Key) -> bool:
        """Whether notes of the same folder or with the same tag have a property."""
        if id not in self.vault.sheets:
            return False
        note = self.vault.sheets[id].note
        folder = note.path.rpartition("/")[0]
        return any(
            (folder and other.path.rpartition("/")[0] == folder) or set(other.tags) & set(note.tags)
            for other in (self.vault.sheets[one].note for one in key.notes)
        )

    def is_unit(self, word: AskedWord, names: set[str]) -> bool:
        """Whether a word is the unit of values: kilometres of `5 km`."""
        ids = frozenset().union(*(self.vault.keys[key].notes for key in names))
        facts = (fact for id in ids for fact in self.vault.sheets[id].values(names))
        units = {reading(fact).unit for fact in facts}
        return any(word.said & self.vault.meanings(unit) for unit in units if unit)


def _within(day: str, span: TimeSpan, yearly: bool = False) -> bool:
    """Whether an ISO day is in a time, or with `yearly` whether it is in any year's."""
    first, last = span.iso
    if not yearly or (span.last - span.first).days > 365:
        return first <= day <= last
    days = ((span.first + timedelta(days=n)).isoformat()[5:] for n in range((span.last - span.first).days + 1))
    return day[5:] in set(days)


def _compare(number: float, op: str, bound: float) -> bool:
    return {
        "=": abs(number - bound) < 1e-9, "<": number < bound, "<=": number <= bound, ">": number > bound,
        ">=": number >= bound,
    }[op]  # fmt: skip
