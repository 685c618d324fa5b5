"""What of a vault's values is summed, meant, counted or the most: by note, month, week, year or person. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from tarsd.ask.found import AnswerRow, Found, nothing
from tarsd.ask.matching import Matcher
from tarsd.ask.reading import AskedWord
from tarsd.ask.tables import simplified
from tarsd.ask.vocabulary import Key, iter_numbers, reading, scaled, shown, tokens
from tarsd.kinds import currency_of, kind_of, main_currency
from tarsd.parse import Fact

_MONEY = frozenset(("@money", "@cost", "@paid", "@income", "@invoice"))
_MONTHS = {"@weekly": 12 / 52, "@monthly": 1.0, "@quarterly": 3.0, "@yearly": 12.0}
"""By the groups of their words the months after which what costs something costs it again."""
PERIODS = {"whichmonth": "month", "whichweek": "week", "whichyear": "year"}
"""By their marks the periods of which one is asked for."""


class Summing(Matcher):
    """The plans for questions about several values at once."""

    def aggregate(self) -> Found | None:
        """A sum or mean of numbers, or the note with the most or least of something."""
        asked = self.question
        if not asked.wants("much", "many", "mean", "most", "least", "often", "howlong", "howfar") and not asked.ranked:
            return None
        if asked.ranked and (found := self._ranked()):
            return found
        keys = [one for one in asked.properties() if one[0].mostly("number", "duration")] or self._amounts()
        if not keys and asked.wants("much", "mean", "most", "least"):  # the total value, though “value” says little
            named = self.vault.find_keys([word.said for word in asked.words])
            keys = [(key, [asked.words[at] for at in sorted(places)], 3) for key, places, score in named
                    if score > 2 and key.mostly("number", "duration")]  # fmt: skip
        keys = keys or (self.implied("howfar") if asked.wants("howfar") else [])
        keys = keys or (self._done_much() if asked.wants("much") and asked.wants("self") else [])
        if not keys or (asked.wants("many") and self._counts(keys)):
            return None
        best = [one for one in keys if one[2] == keys[0][2] and set(_starts(one[1])) == set(_starts(keys[0][1]))]
        used = [word for one in keys for word in one[1]] if asked.wants("many") else keys[0][1]
        names = {key.key for key, _, _ in best}
        if any(key.groups & {"money", "cost"} or self.in_currency(key) for key, _, _ in best):
            used = [*used, *(word for word in asked.content if self._only_money(word))]
        left = [
            word for word in self.rest(*used)
            if not (self.is_unit(word, names) or self.acts(word) or any(mark.startswith("= ") for mark in word.marks))
        ]  # fmt: skip
        chosen = self._values_of(names, left)
        for others in (self._amounts(), [one for one in keys if one not in best]):  # a word may name one of other notes
            if not chosen and others:
                chosen = self._values_of({key.key for key, _, _ in others}, left)
        paid = [
            key for word in asked.content if "@paid" in word.said and not word.negated
            for key, _, score in asked.properties([word]) if score > 2 and not key.mostly("number")
        ]  # fmt: skip
        if chosen and any(id in key.notes for id, _ in chosen for key in paid):  # how much has she paid so far
            chosen = [row for row in chosen if row[0] in self.positive(paid)]
        if chosen is None or not (chosen or asked.wants("much", "many", "howfar")):
            return None
        if asked.wants("often"):
            rows = [
                AnswerRow(id, fact.line, str(fact.value)) for id, fact in chosen if reading(fact).number is not None
            ]
            return Found("count", tuple(rows), len(rows), about={"what": "×"}) if rows else nothing("zero")
        if asked.ranked and not asked.wants("mean", "many", "much"):
            return self._best(chosen, asked.ranked.split()[0])
        summed = asked.wants("mean", "many", "much") and not asked.wants("purpose")
        extreme = asked.wants("most", "least") and not summed
        if not extreme and asked.wants("each") and (found := self._recurring(chosen)):
            return found
        return self._best(chosen, "max" if asked.wants("most") else "min") if extreme else self._total(chosen)

    def _recurring(self, chosen: Sequence[tuple[int, Fact]]) -> Found | None:
        """What is paid again and again, by the month or year, where notes say how often: without what has ended."""
        ids = frozenset(id for id, _ in chosen)
        ids = self.running(ids) or ids
        asked = [word for word in self.question.words if "each" in word.marks]
        period = "peryear" if any(word.said & {"@year", "@yearly"} for word in asked) else "permonth"
        rows: list[tuple[AnswerRow, float | None]] = []
        for (id, fact), (_, number, lasts) in zip(chosen, _numbers([fact for _, fact in chosen]), strict=True):
            if id in ids and not lasts:
                months = self._months(id, fact)
                paid = number / months if months and number is not None else None
                rows.append((AnswerRow(id, fact.line, str(fact.value)), paid))
        good = [(row, number) for row, number in rows if number is not None]
        if not good:
            return None
        total = sum(number for _, number in good) * (12 if period == "peryear" else 1)
        units = [reading(fact).unit for _, fact in chosen]
        unit = main_currency(units) or max(dict.fromkeys(units), key=units.count, default="")
        bad = tuple(row for row, number in rows if number is None)
        shown_rows = tuple(row for row, _ in good)
        return Found("sum", shown_rows, total, unit, of=len(good), skipped=bad, about={"per": period})

    def _months(self, id: int, fact: Fact) -> float | None:
        """The months after which a price is paid again, by its name, by its unit, or by another value of its note."""
        sheet = self.vault.sheets[id]
        texts = [fact.name, *(shown(read) for one in sheet.facts if (read := reading(one)).kind in ("text", "link"))]
        said = [self.vault.meanings(" ".join(tokens(text))) for text in texts]
        said += [self.vault.meanings(word) for word in tokens(fact.name)]
        return next((_MONTHS[group] for one in said for group in sorted(one & _MONTHS.keys())), None)

    def compared(self) -> Found | None:
        """The month, week or year, or with “who” the person, that has the most or least of something."""
        asked = self.question
        periods = [size for mark, size in PERIODS.items() if asked.wants(mark)]
        if not asked.wants("most", "least") or asked.ranked:
            return None
        if not periods and not asked.wants("who"):
            return self._value_compared()
        skipped = {*PERIODS, "notes", "happened", "mention"}
        words = [word for word in self.rest() if not word.marks & skipped and not self.acts(word)]
        if not periods:
            return self._person_compared(words)
        keys = [one for one in asked.properties() if one[0].mostly("number", "duration") and one[2] > 1]
        keys = keys or self._amounts()
        names, used = {key.key for key, _, _ in keys}, {word.start for _, at, _ in keys for word in at}
        if not keys:  # in which month did I run the most: as far as it is known, else as often
            kinds, _ = self.chosen(words)
            names = {
                key.key for key, _, _ in self.implied("howfar") if kinds and 2 * len(kinds & key.notes) > len(kinds)
            }
            if kinds and not names:
                days = [(id, self.main_day(id, kinds)) for id in kinds]
                return self._most({id: (day, 1.0, AnswerRow(id, day=day)) for id, day in days if day}.values(), periods)
        rows = self._values_of(names, [word for word in words if word.start not in used]) if names else None
        if not rows:
            return None
        numbers = [number or 0.0 for _, number, _ in _numbers([fact for _, fact in rows])]
        dated = [
            (self.day_of(self.vault.sheets[id]), number, AnswerRow(id, fact.line, str(fact.value)))
            for (id, fact), number in zip(rows, numbers, strict=True)
        ]
        units = [reading(fact).unit for _, fact in rows if reading(fact).kind == "number"]
        unit = main_currency(units) or max(dict.fromkeys(units), key=units.count, default="min")
        return self._most([one for one in dated if one[0] and one[1]], periods, unit)

    def _most(
        self, dated: Iterable[tuple[str, float, AnswerRow]], periods: Sequence[str], unit: str = ""
    ) -> Found | None:
        totals: dict[str, tuple[float, list[AnswerRow]]] = {}
        for day, number, row in sorted(dated, key=lambda one: one[0]):
            if day > self.today and not self.question.spans:  # what is planned has not been
                continue
            year, week, _ = date.fromisoformat(day).isocalendar()
            period = {"month": day[:7], "week": f"{year}-W{week:02}", "year": day[:4]}[periods[0]]
            total, rows = totals.get(period, (0.0, []))
            totals[period] = (total + number, [*rows, row])
        if not totals:
            return nothing()
        sign = -1 if self.question.wants("least") and not self.question.wants("most") else 1
        best = max(totals, key=lambda period: sign * totals[period][0])
        total, rows = totals[best]
        return Found("most", tuple(rows), total, unit, of=len(rows), about={"period": best})

    def _value_compared(self) -> Found | None:
        """The shop, category … that has the most or least money: by a property of notes with an amount."""
        amounts = {key.key for key, _, _ in self._amounts()}
        money = [word for word in self.question.content if self.is_money(word)]
        named = [one for one in self.question.properties() if one[2] > 1 and one[0].mostly("text", "link")]
        if not named and self.question.wants("purpose"):
            kinds = [key for key in self.vault.keys.values() if "kind" in key.groups and key.mostly("text", "link")]
            having = frozenset(id for name in amounts for id in self.vault.keys[name].notes)
            named = [(key, [], 2) for key in kinds if 2 * len(key.notes & having) > len(having)]
        if not amounts or not named:
            return None
        key, at, _ = named[0]
        words = [word for word in self.rest(*at, *money) if not word.marks & {"most", "least"} and not self.acts(word)]
        rows = [(id, fact) for id, fact in self._values_of(amounts, words) or () if id in key.notes]
        totals: dict[str, tuple[float, list[AnswerRow]]] = {}
        for (id, fact), (_, number, _) in zip(rows, _numbers([fact for _, fact in rows]), strict=True):
            name = shown(reading(self.vault.sheets[id].values([key.key])[0]))
            total, own = totals.get(name, (0.0, []))
            totals[name] = (total + (number or 0.0), [*own, AnswerRow(id, fact.line, str(fact.value))])
        if not totals:
            return None
        sign = 1 if self.question.wants("most") else -1
        best = max(totals, key=lambda name: sign * totals[name][0])
        units = [reading(fact).unit for _, fact in rows]
        unit = main_currency(units) or max(dict.fromkeys(units), key=units.count)
        total, own = totals[best]
        return Found("most", tuple(own), total, unit, of=len(own), about={"name": best})

    def _person_compared(self, words: Sequence[AskedWord]) -> Found | None:
        """The person to whom most of the dated notes link that the words and the time choose."""
        people = self.vault.kind_of_note(frozenset({"@person"}))
        asked = self.question
        if not people or not asked.wants("mention"):
            return None
        dated = self.dated_within(()) - people
        notes = frozenset(id for id in dated if asked.spans or self.vault.sheets[id].day <= self.today)
        for word in words:
            kind = self.vault.kind_of_note(word.said)
            if not kind:
                return None
            notes &= kind
        held = {id: [note for note in notes if id in self.vault.sheets[note].links] for id in people}
        held = {id: found for id, found in held.items() if found}
        if not held:
            return nothing()
        sign = -1 if asked.wants("least") and not asked.wants("most") else 1
        best = max(sorted(held), key=lambda id: sign * len(held[id]))
        rows = sorted((AnswerRow(id, day=self.vault.sheets[id].day) for id in held[best]), key=lambda row: row.day)
        return Found("most", tuple(rows), len(rows), about={"name": self.vault.sheets[best].note.title})

    def _amounts(self) -> list[tuple[Key, list[AskedWord], int]]:
        """The values in a currency, if the question asks for money by a word that names none of them."""
        words = [word for word in self.question.words if (word.said | word.bare) & _MONEY and not word.name]
        keys = [key for key in self.vault.keys.values() if words and key.mostly("number")]
        keys = [key for key in keys if self.in_currency(key)] or [key for key in keys if key.groups & {"money", "cost"}]
        return [(key, list(filter(self._only_money, words)), 2) for key in keys]

    def _done_much(self) -> list[tuple[Key, list[AskedWord], int]]:
        """How far or how long the person did something that notes of a kind are of: “how much did I run”."""
        kinds, _ = self.chosen([word for word in self.rest() if not self.is_money(word)])
        for wish in ("howfar", "howlong"):
            keys = [one for one in self.implied(wish) if kinds and 2 * len(kinds & one[0].notes) > len(kinds)]
            if keys:
                return keys
        return []

    def _only_money(self, word: AskedWord) -> bool:
        """Whether a word says that money is asked for, and not which notes."""
        return self.is_money(word) and not word.negated and not self.vault.kind_of_note(word.said)

    @staticmethod
    def is_money(word: AskedWord) -> bool:
        return bool(word.said & _MONEY)

    def _counts(self, keys: Sequence[tuple[Key, list[AskedWord], int]]) -> bool:
        """Whether “how many” asks for a number of notes: the word behind it names a kind of them."""
        counting = [word.stop for word in self.question.words if "many" in word.marks][-1:] or [0]
        first = next((word for word in self.question.content if word.start >= counting[0]), None)
        if self.question.wants("much") and any(self.is_money(word) for word in self.question.content):
            return False  # in some languages “how many” is “how much”
        return (
            first is not None
            and bool(self.vault.kind_of_note(first.said))
            and not any(first.start in _starts(at) and score > 1 for _, at, score in keys)
        )

    def _values_of(self, keys: set[str], words: Sequence[AskedWord]) -> list[tuple[int, Fact]] | None:
        """The values of these names in the question's time, and of what its other words and names say."""
        asked = self.question
        ordered = sorted(self.vault.sheets.items(), key=lambda one: (self.day_of(one[1]), one[1].note.path))
        rows = [
            (id, fact) for id, sheet in ordered for fact in sheet.values(keys)
            if not asked.spans or self.in_time(self.day_of(sheet))
        ]  # fmt: skip
        phrases = self.phrases()
        for own, ids in phrases:
            rows = [(id, fact) for id, fact in rows if id in ids]
            words = [word for word in words if word not in own]
        for called, ids in asked.subjects:
            linking = self.vault.mentioning(ids) | ids
            plain = simplified(called)
            rows = [row for row in rows if row[0] in linking or self.item_says(*row, frozenset((plain,)))]
        for word in words:
            kept = [row for row in rows if self.item_says(*row, word.said)]
            if not kept and not any(fact.item for _, fact in rows):
                condition = self.condition(word, frozenset(id for id, _ in rows))
                chosen = self.notes_of(word) if condition is None else condition
                if not chosen:
                    return None
                kept = [row for row in rows if row[0] in chosen]
                if not kept and any(row[0] in self.having(word) for row in rows):
                    kept = rows  # the clients of invoices, which have notes of their own
            rows = kept
        return rows

    def _total(self, chosen: Sequence[tuple[int, Fact]]) -> Found | None:
        if not chosen:
            return nothing("zero")
        numbers = _numbers([fact for _, fact in chosen])
        rows = [AnswerRow(id, fact.line, str(fact.value)) for id, fact in chosen]
        good = [(row, number) for row, (_, number, _) in zip(rows, numbers, strict=True) if number is not None]
        bad = tuple(row for row, (_, number, _) in zip(rows, numbers, strict=True) if number is None)
        total = sum(number for _, number in good)
        if not good:
            return None
        mean = self.question.wants("mean")
        units = [reading(fact).unit for fact, number, lasts in numbers if number is not None and not lasts]
        unit = main_currency(units) or max(dict.fromkeys(units), key=units.count, default="")
        if any(lasts for _, _, lasts in numbers):  # in the unit of all, if they have one
            units = list({reading(fact).unit for fact, number, lasts in numbers if lasts})
            unit = units[0] if len(units) == 1 and units[0] else "min"
            total /= kind_of(f"1 {unit}").minutes or 1
        value = total / len(good) if mean else total
        shown_rows = tuple(row for row, _ in good)
        return Found("mean" if mean else "sum", shown_rows, value, unit, of=len(good), skipped=bad)

    def _best(self, chosen: Sequence[tuple[int, Fact]], which: str) -> Found | None:
        sign = 1 if which == "max" else -1
        best: tuple[float, int, Fact] | None = None
        for (id, _), (fact, number, _) in zip(chosen, iter_numbers(fact for _, fact in chosen), strict=True):
            day = reading(fact).day
            value = scaled(fact, number) if number is not None else float(day.replace("-", "")) if day else None
            if value is not None and (best is None or sign * value > sign * best[0]):
                best = (value, id, fact)
        if best is None:
            return nothing()
        sheet = self.vault.sheets[best[1]]
        return Found("best", (AnswerRow(best[1], best[2].line, shown(reading(best[2])), sheet.day),))

    def _ranked(self) -> Found | None:
        """The longest, cheapest, best … of a kind of notes."""
        which, *wanted = self.question.ranked.split()
        words = [word for word in self.rest() if not any(mark.startswith("= ") for mark in word.marks)]
        keys = [key for group in wanted for key in self.vault.keys.values() if group in key.groups]
        chosen, used = self.chosen(words)
        if chosen is None or not used:
            return None
        for group in wanted:
            own = {key.key for key in keys if group in key.groups}
            rows = [(id, fact) for id in sorted(chosen) for fact in self.vault.sheets[id].values(own)]
            if any(number is not None for _, number, _ in iter_numbers(fact for _, fact in rows)):
                return self._best(rows, which)
        return None


def _numbers(facts: Sequence[Fact]) -> list[tuple[Fact, float | None, bool]]:
    """As `iter_numbers`; an amount in another currency than most have has no number: it cannot be added to them."""
    currency = main_currency(reading(fact).unit for fact in facts)
    return [
        (fact, number if currency_of(reading(fact).unit) in ("", currency) else None, lasts)
        for fact, number, lasts in iter_numbers(facts)
    ]


def _starts(words: Iterable[AskedWord]) -> Iterator[int]:
    return (word.start for word in words)
