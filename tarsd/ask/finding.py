"""What a question asks for, found in the vault's data: a list of plans, of which each knows one kind of question.

A plan answers only what it understands whole: a content word that neither the vault nor a table explains leaves the
question to ordinary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from tarsd.ask.found import AnswerRow, Found, nothing
from tarsd.ask.matching import IMPLIED
from tarsd.ask.reading import AskedWord
from tarsd.ask.summing import Summing
from tarsd.ask.tables import simplified
from tarsd.ask.vocabulary import Ids, Key, reading, shown
from tarsd.kinds import kind_of
from tarsd.parse import Task

_FEW_DAYS = 5


class Finder(Summing):
    """The plans for one question; each is None where the question is not of its kind."""

    def find(self) -> Found | None:
        """The first plan's answer."""
        plans = [
            self.agenda, self.tasks, self.tagged, self.recalled, self.left_over, self.valued, self.coming, self.when,
            self.measured, self.compared, self.aggregate, self.listed, self.dated,
        ]  # fmt: skip
        told = [word for word in self.question.words if "howto" in word.marks and not word.marks & {"notes", "purpose"}]
        if told:  # how something is done, or why, is told in words
            plans = [self.valued]
        return next((found for plan in plans if (found := plan()) is not None), None)

    # -------------------------------------------------------------------------------------------- plans

    def agenda(self) -> Found | None:
        """What is on for a day to come: the tasks due or scheduled then, and the notes of that day."""
        asked = self.question
        if not asked.wants("agenda") or not asked.spans or asked.named or asked.spans[0].iso[1] < self.today:
            return None
        if any(not word.marks & {"agenda", "task", "open", "due", "which"} for word in self.rest()):
            return None
        tasks = [
            AnswerRow(id, task.line, task.text, day, task=True)
            for id, sheet in self.vault.sheets.items() for task in sheet.tasks
            if task.is_open and (day := next(filter(self.in_time, filter(None, (task.due, task.scheduled))), ""))
        ]  # fmt: skip
        notes = [AnswerRow(id, day=self.vault.sheets[id].day) for id in self.dated_within(())]
        rows = sorted((*tasks, *notes), key=lambda row: (row.day, self.vault.sheets[row.id].note.path, row.line))
        if not notes:
            return Found("tasks", tuple(rows), number=len(rows)) if rows else nothing("notasks")
        return Found("notes", tuple(rows), len(rows))

    def tasks(self) -> Found | None:
        """Tasks by what is said of them: open, done, due, overdue, cancelled, their priority, their note."""
        asked = self.question
        wants = asked.wants
        said = {
            "task",
            "open",
            "done",
            "did",
            "due",
            "overdue",
            "cancelled",
            "scheduled",
            "highest",
            "high",
            "medium",
            "low",
        }
        about = {"mention"} if asked.named else set()  # which tasks mention Ada
        undated = [word for word in asked.words if word.negated and word.said & {"@date", "@due"}]
        left = [word for word in self.rest(*undated) if not word.marks & (said | about) or self._tags_tasks(word)]
        tags = [word for word in left if self._tags_tasks(word)]
        told = wants("due", "open", "done", "cancelled") and not wants("when")
        if not (tags or told or wants("task", "overdue")) or wants("recall") or (wants("when") and not wants("task")):
            return None
        kinds = [word for word in left if self.vault.kind_of_note(word.said)]
        if wants("deadline") and not (wants("task", "open", "overdue") or asked.spans) and self._of_subjects("due"):
            return None
        if not wants("task"):
            narrowed = wants("overdue", "due", "open") or asked.spans or asked.named
            if len(left) > len(tags) or (wants("done") and not narrowed):
                return None
            own = [word for word in asked.content if word.marks & said and self.valued_notes(word)]
            if wants("many", "much", "mean") or (own and kinds):
                return None
        chosen = [(id, task) for id, sheet in self.vault.sheets.items() for task in sheet.tasks]
        for called, ids in asked.subjects:
            chosen = self._of_subject(chosen, called, ids)
        for word in left:
            chosen = self._of_word(chosen, word)
        chosen = [(id, task) for id, task in chosen if self._is_wanted(task)]
        if undated:
            chosen = [(id, task) for id, task in chosen if not task.due]
        chosen.sort(key=lambda one: (one[1].due or "9", self.vault.sheets[one[0]].note.path, one[1].line))
        if not chosen:
            return None if left else nothing("notasks")
        rows = tuple(AnswerRow(id, task.line, task.text, task.due, task=True) for id, task in chosen)
        return Found("count" if wants("many") else "tasks", rows, number=len(rows), about={"what": "tasks"})

    def _tags_tasks(self, word: AskedWord) -> bool:
        """Whether a word for tasks is a tag of some: “errands”."""
        if not ("task" in word.marks or self.question.wants("due")):
            return False
        tags = {tag for sheet in self.vault.sheets.values() for task in sheet.tasks for tag in task.tags}
        return any(self._means(word, tag) for tag in tags)

    def _is_wanted(self, task: Task) -> bool:
        wants, spans = self.question.wants, self.question.spans
        priorities = [name for name in ("highest", "high", "medium", "low") if wants(name)]
        if priorities and task.priority not in (*priorities, *(("highest",) if "high" in priorities else ())):
            return False
        if wants("cancelled") and not wants("open"):
            return task.is_cancelled and (not spans or self.in_time(task.cancelled))
        if wants("overdue"):
            return task.is_open and "" < task.due < self.today and (not spans or self.in_time(task.due))
        if wants("done", "did") and not wants("due", "open"):
            return task.is_done and (not spans or self.in_time(task.done))
        dates = (task.scheduled, task.start) if wants("scheduled") else (task.due,)
        return task.is_open and (not spans or any(day and self.in_time(day) for day in dates))

    def _of_subject(self, chosen: list[tuple[int, Task]], called: str, ids: Ids) -> list[tuple[int, Task]]:
        """The tasks in a named note, or if it has none, those that name it or stand in notes that link to it."""
        own = [(id, task) for id, task in chosen if id in ids]
        if own:
            return own
        linking = self.vault.mentioning(ids)
        plain = simplified(called)
        return [(id, task) for id, task in chosen if id in linking or plain in simplified(task.text)]

    def _of_word(self, chosen: list[tuple[int, Task]], word: AskedWord) -> list[tuple[int, Task]]:
        """The tasks with a tag, in the notes, or with the word in their text, that a word names; or those begun."""
        begun = [(id, task) for id, task in chosen if task.status == "/"]
        if "@active" in word.said and begun:
            return begun
        plain = simplified(word.text.lstrip("#"))
        tagged = [
            (id, task) for id, task in chosen
            if any(plain in simplified(tag).split("/") or self._means(word, tag) for tag in task.tags)
        ]  # fmt: skip
        if tagged:
            return tagged
        ids = self.notes_of(word)
        return [(id, task) for id, task in chosen if id in ids or self.vault.with_words([task.text], word.said)]

    def _means(self, word: AskedWord, tag: str) -> bool:
        return bool(word.said & self.vault.meanings(tag.rpartition("/")[2]))

    def tagged(self) -> Found | None:
        """Notes with a tag that is named as one."""
        asked = self.question
        untagged = [word for word in asked.words if word.negated and word.says_tag]
        words = [word for word in asked.words if word.text.startswith("#") or "/" in word.text]
        if untagged and not words:
            bare = frozenset(id for id, sheet in self.vault.sheets.items() if not sheet.note.tags)
            kinds = [self.notes_of(word) for word in self.rest(*untagged) if not word.marks & {"notes", "tagged"}]
            return self._notes(bare.intersection(*kinds)) if all(kinds) else None
        if not words and not asked.wants("tagged"):
            return None
        places = [at for at, word in enumerate(asked.words) if "tagged" in word.marks]
        if not words and places:
            behind = [word for word in asked.words[places[-1] + 1 :] if not word.quiet and not word.time]
            before = [word for word in asked.words[: places[0]] if not word.quiet and not word.time]
            words = behind[:1] or before[-1:]
        if not words:
            return None
        chosen = frozenset(self.vault.sheets)
        for word in words:
            tagged = self.vault.tagged(word.text.lstrip("#"), word.said)
            if not tagged:
                known = not self.rest(*words, *(one for one in asked.words if one.marks & {"notes", "tagged"}))
                return nothing("notag", tag=word.text.lstrip("#")) if known and asked.wants("notes", "which") else None
            chosen &= tagged
        for word in self.rest(*words):
            if "notes" in word.marks or "tagged" in word.marks:
                continue
            of_word = self.notes_of(word)
            if not of_word:
                return None
            chosen &= of_word
        return self._notes(chosen)

    def recalled(self) -> Found | None:
        """When something was last, first, or is next: the day of the note that tells of it."""
        asked = self.question
        if not asked.wants("recall") or self._property_of_subject():
            return None
        dated = {id for id, sheet in self.vault.sheets.items() if sheet.day and self.in_time(sheet.day)}
        words, said = self.rest(), []
        words = [word for word in words if not word.marks & {"mention", "next", "last", "first"}]
        if not words and not asked.named:
            return None
        chosen = frozenset(dated)
        for called, ids in asked.subjects:
            said.append(called)
            about = (self.linked(called, ids) | ids) & dated
            chosen &= about | frozenset(self.holding(called))
        for word in words:
            said.append(word.text)
            own = (self.notes_of(word) | self.having(word)) & dated
            held = frozenset(self.holding(word.text)) & dated
            if not own and not held and not asked.wants("self"):
                return None  # of whom or what else, ordinary search knows more
            # a word in the text tells more than a value that means about the same
            literal = not self.vault.kind_of_note(word.said) and bool(held)
            chosen &= own | held if own & held else held if literal else own or held
        days = sorted((self.vault.sheets[id].day, self.vault.sheets[id].note.path, id) for id in chosen)
        past = [one for one in days if one[0] <= self.today]
        coming = [one for one in days if one[0] > self.today]
        best = coming[:1] if asked.wants("next") else past[:1] if asked.wants("first") else past[-1:]
        if not best:
            told = any(self.holding(word.text) for word in words)
            return None if told else nothing("never", what=" ".join(said))
        day, _, id = best[0]
        rows = (AnswerRow(one, day=date) for date, _, one in days if date == day)
        return Found("when", tuple(sorted(rows, key=lambda row: row.id != id)))

    def _property_of_subject(self) -> bool:
        """Whether a named note has the property that the question names, such as `last_service`."""
        keys = self.question.properties()
        return any(len(at) > 1 and ids & key.notes for key, at, _ in keys for _, ids in self.question.subjects)

    def left_over(self) -> Found | None:
        """What is left of the budget of a named note: the budget less what was spent."""
        asked = self.question
        if not asked.wants("left") or asked.spans or any("@budget" not in w.said | w.also for w in self.rest()
                                                         if not self.is_money(w)):  # fmt: skip
            return None
        for _, ids in asked.subjects:
            for id in sorted(ids & self.vault.sheets.keys()):
                own = [key for key in self.vault.keys.values() if id in key.notes and key.mostly("number")]
                budgets = [key for key in own if "budget" in key.groups]
                spent = [key for key in own if key.groups & {"money", "cost"} and key not in budgets]
                facts = [fact for key in (*budgets, *spent) for fact in self.vault.sheets[id].values([key.key])]
                if len(budgets) == len(spent) == 1 and len(facts) == 2:
                    of, less = (reading(fact) for fact in facts)
                    if of.number is not None and less.number is not None and of.unit == less.unit:
                        rows = tuple(AnswerRow(id, fact.line, str(fact.value)) for fact in facts)
                        name = self.vault.sheets[id].note.title
                        return Found("most", rows, of.number - less.number, of.unit, of=2, about={"name": name})
        return None

    def valued(self) -> Found | None:
        """The value of a property of a note that is named."""
        asked = self.question
        subjects = asked.subjects
        if not subjects or asked.wants("mean", "task"):
            return None
        if asked.wants("howfar", "howlong") and asked.wants("self") and asked.spans:
            return None  # how far did I run in May
        keys = self._keys_wanted()
        if not keys:
            return None
        best = keys[0][2]
        for _, ids in reversed(subjects):
            for key, at, _ in keys:
                having = [id for id in ids if id in key.notes]
                if len(having) == 1 and not self.rest(*at):
                    return self._value(having[0], key)
        called, ids = subjects[-1]
        key, at, _ = keys[0]
        alike = any(self.alike(id, other) for id in ids for other, _, score in keys if score == best or score > 1)
        if len(subjects) > 1 or best < 2 or not alike or self.rest(*at):
            return None
        if (
            asked.wants("much")
            and asked.wants("self")
            and (len(ids) > 1 or not any(ids & one.notes for one, _, _ in keys))
        ):
            return None  # how much did I spend at a shop
        name = self.vault.sheets[min(ids)].note.title if len(ids) == 1 else called
        return nothing("noprop", name=name, property=at[0].text if at else key.shown)

    def coming(self) -> Found | None:
        """Whose birthday is next."""
        asked = self.question
        if not asked.wants("next") or asked.subjects or asked.spans:
            return None
        keys = [one for one in asked.properties() if "birthday" in one[0].groups]
        words = [word for word in self.rest(*(word for _, at, _ in keys for word in at)) if "next" not in word.marks]
        kinds = [self.vault.kind_of_note(word.said) for word in words]
        if not keys or not all(kinds):
            return None
        names = {key.key for key, _, _ in keys}
        days = [
            (_again(day, asked.today), id, fact.line)
            for id in frozenset(self.vault.sheets).intersection(*kinds)
            for fact in self.vault.sheets[id].values(names) if (day := reading(fact).day)
        ]  # fmt: skip
        first = min(days, default=("", 0, 0))[0]
        rows = tuple(AnswerRow(id, line, day=day) for day, id, line in sorted(days) if day == first)
        return Found("when", rows) if rows else nothing()

    def when(self) -> Found | None:
        """The days of the few notes that all words of a question about a time choose by their values."""
        asked = self.question
        words = self.rest()
        if not asked.wants("when") or asked.subjects or asked.wants("recall", "task", "many", "much") or not words:
            return None
        own = [self.valued_notes(word) for word in words if not self.acts(word)]
        chosen = frozenset(self.vault.sheets).intersection(*own) if own and all(own) else frozenset()
        days = sorted((day, id) for id in chosen if (day := self.main_day(id, chosen)))
        if not days or len(days) < len(chosen) or len(days) > _FEW_DAYS:
            return None
        return Found("when", tuple(AnswerRow(id, day=day) for day, id in days))

    def _keys_wanted(self) -> list[tuple[Key, list[AskedWord], int]]:
        """The properties that a question with a name in it asks for, best first."""
        asked = self.question
        found = [*self.implied(*(wish for wish in IMPLIED if asked.wants(wish))), *asked.properties()]
        if asked.wants("when", "due") and not asked.wants("many", "much"):
            found = [one for one in found if one[0].mostly("date", "datetime") or len(one[0].words) > 1]
        if asked.wants("notes"):  # what links to it is asked for, not what is said of it
            found = [one for one in found if not one[1] or any("mention" not in word.marks for word in one[1])]
        for wish, group in (("deadline", "due"), ("dial", "phone")):  # whole phrases that ask for one thing
            if asked.wants(wish):
                told = [word for word in asked.words if wish in word.marks or f"@{group}" in word.said]
                found = [*((key, told, 3) for key in self._of_subjects(group)), *found]
        return found

    def _of_subjects(self, group: str) -> list[Key]:
        """The properties of a group of synonyms that named notes have."""
        subjects = self.question.subjects
        keys = [key for key in self.vault.keys.values() if group in key.groups and not key.mostly("duration")]
        return [key for key in keys if any(ids & key.notes for _, ids in subjects)]

    def _value(self, id: int, key: Key) -> Found:
        facts = self.vault.sheets[id].values([key.key])
        rows = tuple(AnswerRow(id, fact.line, shown(kind_of(fact.value)), kind_of(fact.value).day) for fact in facts)
        return Found("value", rows, about={"name": self.vault.sheets[id].note.title, "property": key.shown})

    def measured(self) -> Found | None:
        """What was measured on one day: the mood of 3 May."""
        asked = self.question
        if len(asked.spans) != 1 or asked.spans[0].first != asked.spans[0].last or asked.named or asked.ranked:
            return None
        if asked.wants("many", "much", "mean", "most", "least", "task", "when", "who", "due", "done"):
            return None
        keys = [one for one in asked.properties() if one[2] > 1 and one[0].mostly("number", "duration")]
        if not keys or self.rest(*keys[0][1]):
            return None
        having = sorted(self.dated_within(()) & keys[0][0].notes)
        return self._value(having[0], keys[0][0]) if len(having) == 1 else None

    def listed(self) -> Found | None:
        """The notes of a kind for which everything holds that is said of them; or their number."""
        asked = self.question
        if asked.wants("recall") or (asked.wants("when") and not asked.wants("who")):
            return None
        silent = {"notes", "last", "first", "next", "now", "happened"}
        others = [word for word in self.rest() if "mention" not in word.marks]
        kinds = frozenset[int]().union(*(self.vault.kind_of_note(word.said) for word in others))
        words = [
            word for word in self.rest()
            if word.negated or not (word.marks & silent or ("mention" in word.marks and not self.having(word) & kinds))
        ]  # fmt: skip
        chosen, used = self.chosen(words)
        if chosen is None or not used:
            return None
        if asked.wants("many") or (asked.wants("much") and not asked.wants("which")):
            rows = self._rows(chosen)
            return Found("count", rows, len(chosen), about={"what": self._first_of(used)}) if chosen else nothing()
        known = any(self.vault.kind_of_note(word.said) for word in used) or asked.wants("who", "notes")
        told = asked.wants("which", "who", "missing") and known
        if not chosen and asked.named and all("who" in word.marks for word in used):
            return None  # who has my drill: of what is told in words search knows more
        if not told and not (chosen and (asked.wants("which") or self._is_phrase())):
            return None
        if asked.wants("last", "first", "next"):
            return self._ordered(chosen)
        return self._notes(chosen)

    def _first_of(self, words: Sequence[AskedWord]) -> str:
        """The first of these words, with those right behind it, as they stand: “books” of “books did I finish”."""
        last = words[0]
        for word in words[1:]:
            if not 0 <= word.start - last.stop <= 1:
                break
            last = word
        return self.question.text[words[0].start : last.stop]

    def _is_phrase(self) -> bool:
        """Whether it is no question, but says of notes of a kind when, how much or whose: “books I finished”."""
        asked = self.question
        denied = any(word.negated or (word.bare and not self.having(word)) for word in asked.content)
        told = asked.wants("self", "by", "notes", "links", "last", "first", "next")
        return bool(denied or told or asked.spans or asked.numbers)

    def _ordered(self, chosen: Ids) -> Found | None:
        """The last, first or next one by the date that a verb names, or by the notes' own day."""
        asked = self.question
        keys = {key.key for key, _, _ in asked.properties() if key.mostly("date", "datetime")}
        dates = [
            (day, fact.line, id) for id in chosen for fact in self.vault.sheets[id].values(keys)
            if (day := kind_of(fact.value).day)
        ] or [(self.vault.sheets[id].day, 0, id) for id in chosen if self.vault.sheets[id].day]  # fmt: skip
        past, coming = sorted(d for d in dates if d[0] <= self.today), sorted(d for d in dates if d[0] > self.today)
        best = coming[:1] if asked.wants("next") else past[:1] if asked.wants("first") else past[-1:]
        return Found("when", tuple(AnswerRow(id, line, day=day) for day, line, id in best)) if best else None

    def dated(self) -> Found | None:
        """The notes of a time, if nothing else is asked for but whom or what they mention."""
        asked = self.question
        if not asked.spans or asked.wants("when", "who", "many", "much", "mean", "due", "overdue", "task"):
            return None
        words = [word for word in self.rest() if not word.marks & {"notes", "happened", "which", "did", "done"}]
        if any(not self.acts(word) for word in words):
            return None
        chosen = self.dated_within(())
        for called, ids in asked.subjects:
            chosen &= self.linked(called, ids) | ids
        if not chosen:
            return None if asked.subjects else Found("nothing", reason="nonetime", near=self._near())
        return self._notes(chosen)

    def _near(self) -> tuple[str, ...]:
        """The nearest days before and after the question's time that have notes."""
        first, last = self.question.spans[0].iso
        days = sorted({sheet.day for sheet in self.vault.sheets.values() if sheet.day})
        before = [day for day in days if day < first][-1:]
        return (*before, *[day for day in days if day > last][:1])

    # -------------------------------------------------------------------------------------------- rows

    def _notes(self, chosen: Ids) -> Found:
        return Found("notes", self._rows(chosen), len(chosen)) if chosen else nothing()

    def _rows(self, chosen: Ids) -> tuple[AnswerRow, ...]:
        """The notes in the order of their days and places, each with a value that the question asks about."""
        keys = {key.key for key, _, score in self.question.properties() if score > 1}
        rows = []
        for id in chosen:
            sheet = self.vault.sheets[id]
            fact = next(iter(sheet.values(keys)), None)
            rows.append(AnswerRow(id, fact.line if fact else 0, shown(kind_of(fact.value)) if fact else "", sheet.day))
        return tuple(sorted(rows, key=lambda row: (row.day, self.vault.sheets[row.id].note.path)))


def _again(day: str, today: date) -> str:
    """The next day on which what was on a day comes again, today included; 29 February as 1 March in other years."""
    return min(
        found for year in (today.year, today.year + 1)
        if (found := (date(year, int(day[5:7]), 1) + timedelta(days=int(day[8:]) - 1)).isoformat()) >= today.isoformat()
    )  # fmt: skip
