"""What was used in sums and in money, and the monthly ceiling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, Final

from tarsd.config.settings import Price, UsageSettings
from tarsd.errors import BadRequest, CeilingReached
from tarsd.protocol import Event
from tarsd.usage.ledger import Account, Ledger, Spent, hashed

Json = dict[str, Any]
Rows = Iterable[tuple[Account, Spent]]

MOST_MONTHS: Final = 24
LOCAL_HINT: Final = "or use a model on this machine."


@dataclass(frozen=True)
class Spender:
    """For which conversation a model is asked; `told` gets what a request took, as the data of a "usage" event."""

    conversation: str = ""
    told: Callable[..., object] = lambda **data: None


spender: ContextVar[Spender] = ContextVar("spender", default=Spender())  # noqa: B039 (it is frozen)
"""Who asks in this task; without conversation for what belongs to none, such as a review."""


class Spending:
    """A ledger with prices and a ceiling. Models on this machine cost nothing, nor do those with prices of 0."""

    def __init__(self, ledger: Ledger, settings: UsageSettings) -> None:
        self._ledger = ledger
        self._settings = settings

    def add(self, model: str, local: bool, asker: Spender, spent: Spent) -> None:
        """Keep what a request took, and tell whoever it was made for."""
        self._ledger.add(model, local, asker.conversation, spent)
        counts = {name: value for name, value in asdict(spent).items() if name not in ("requests", "estimated")}
        asker.told(model=model, local=local, **counts, estimated=bool(spent.estimated))

    # -------------------------------------------------------------------------------------------- the ceiling

    def check(self, model: str, local: bool) -> None:
        """Raises `CeilingReached` when a model that costs must not be asked this month."""
        settings = self._settings
        money, most = settings.monthly_ceiling, settings.monthly_tokens
        if (money is None and most is None) or not self._costs(model, local):
            return
        if money is not None and model not in settings.prices:
            raise CeilingReached(
                f"The monthly ceiling of {self._money(money)} cannot be kept: {model} has no price.",
                f"Set its price under usage.prices (0 if it costs nothing), {LOCAL_HINT}",
            )
        spent, cost = self._elsewhere(self._month())
        if most is not None and spent.tokens >= most:
            said, name = f"{most:,} tokens is reached: {spent.tokens:,} were used", "usage.monthly_tokens"
        elif money is not None and cost is not None and cost >= money:
            said, name = f"{self._money(money)} is reached: {self._money(cost)} was spent", "usage.monthly_ceiling"
        else:
            return
        raise CeilingReached(
            f"The monthly ceiling of {said} this month.", f"Raise {name}, wait for next month, {LOCAL_HINT}"
        )

    def _costs(self, model: str, local: bool) -> bool:
        price = self._settings.prices.get(model)
        return not local and (price is None or bool(price.input or price.output))

    def _elsewhere(self, rows: Rows) -> tuple[Spent, float | None]:
        """What the models that cost took of these, and for how much."""
        costly = [(account, spent) for account, spent in rows if self._costs(account.model, account.local)]
        return _sum(costly), self._cost(costly)

    # -------------------------------------------------------------------------------------------- for people

    def problems(self) -> list[tuple[str, str]]:
        """What keeps the sums from being right: a sentence, and a hint."""
        hint = f"Check {self._ledger.folder}. Until then it is counted while the daemon runs."
        return [(self._ledger.trouble, hint)] if self._ledger.trouble else []

    def said(self, events: Sequence[Event]) -> dict[str, str]:
        """For the end of a turn with these events: what it took (`usage`), and the month where it costs (`month`)."""
        rows = []
        for event in events:
            if event.type == "usage":
                data = {**event.data, "requests": 1, "estimated": int(event.data["estimated"])}
                rows.append((Account("", data["model"], data["local"], ""), Spent.read(data)))
        if not rows:
            return {}
        costs = any(self._costs(account.model, account.local) for account, _ in rows)
        used = self._words(_sum(rows), self._cost(rows))
        return {"usage": used[0].upper() + used[1:], **({"month": self.line()} if costs else {})}

    def line(self) -> str:
        """This month in a line, "" when no model that costs was asked."""
        spent, cost = self._elsewhere(self._month())
        tokens, money = self._settings.monthly_tokens, self._settings.monthly_ceiling
        if not spent.requests and tokens is None and money is None:
            return ""
        costly = [one.model for one, _ in self._month() if self._costs(one.model, one.local)]
        unpriced = [name for name in dict.fromkeys(costly) if cost is not None and name not in self._settings.prices]
        without = f" (without {', '.join(unpriced)}: no price is set)" if unpriced else ""
        return f"This month: {self._words(spent, cost, tokens, money)}{without}"

    def status(self) -> Json:
        """This month's models that cost, for the status."""
        spent, cost = self._elsewhere(self._month())
        return {"tokens": spent.tokens, "cost": cost, "line": self.line()}

    def report(self, month: str = "", conversation: str = "") -> Json:
        """A month by model and by day, and the months; with the sum of a conversation if one is asked for.

        Raises `BadRequest` for what is no month.
        """
        today = self._ledger.today().isoformat()
        month = month or today[:7]
        if not re.fullmatch(r"\d{4}-\d\d", month, re.ASCII):
            raise BadRequest("That is no month.", "Write it like 2026-11.", field="month")
        rows = list(self._ledger.sums(month).items())
        months = {name: list(self._ledger.sums(name).items()) for name in self._ledger.months()[:MOST_MONTHS]}
        told: Json = {
            "currency": self._settings.currency,
            "ceiling": {"money": self._settings.monthly_ceiling, "tokens": self._settings.monthly_tokens},
            "line": self.line(),
            "month": month,
            "total": self._as_json(rows),
            "today": self._as_json([row for row in self._month() if row[0].day == today]),
            "models": self._by(rows, "model"),
            "days": self._by(rows, "day"),
            "months": [{"month": name, **self._as_json(kept)} for name, kept in months.items()],
        }
        if conversation:
            key = hashed(conversation)
            own = [row for kept in months.values() for row in kept if row[0].conversation == key]
            told["conversation"] = self._as_json(own)
        return told

    def as_markdown(self, conversation: str) -> str:
        """This conversation, today, and this month by model, as a table."""
        told = self.report(conversation=conversation)
        rows = [("This conversation", told["conversation"]), ("Today", told["today"]), ("This month", told["total"])]
        rows += [(f"This month, `{one['model']}`", one) for one in told["models"]]
        lines = ["| | input | output | cost |", "|---|--:|--:|--:|"]
        for name, one in rows:
            about = "about " if one["estimated"] else ""
            cost = "" if one["cost"] is None else self._money(one["cost"])
            lines.append(f"| {name} | {about}{one['input_tokens']:,} | {about}{one['output_tokens']:,} | {cost} |")
        return "\n".join(lines) + (f"\n\n{told['line']}." if told["line"] else "")

    # -------------------------------------------------------------------------------------------- sums

    def _month(self) -> list[tuple[Account, Spent]]:
        return list(self._ledger.sums(self._ledger.today().isoformat()[:7]).items())

    def _by(self, rows: Rows, name: str) -> list[Json]:
        """Sums by the model or the day."""
        groups: dict[str, list[tuple[Account, Spent]]] = {}
        for row in rows:
            groups.setdefault(getattr(row[0], name), []).append(row)
        return [{name: key, **self._as_json(groups[key])} for key in sorted(groups)]

    def _as_json(self, rows: Rows) -> Json:
        rows = list(rows)
        return {**asdict(_sum(rows)), "cost": self._cost(rows)}

    def _cost(self, rows: Rows) -> float | None:
        """What these cost by the prices in force, None where there is no price for any of them."""
        priced = self._settings.prices
        costs = [_cost(spent, priced[one.model]) for one, spent in rows if not one.local and one.model in priced]
        return round(sum(costs), 6) if costs else None

    def _words(self, spent: Spent, cost: float | None, most: int | None = None, ceiling: float | None = None) -> str:
        """Tokens and money, each with what it may come to where that is given."""
        text = "about " * bool(spent.estimated) + f"{spent.tokens:,}" + ("" if most is None else f" of {most:,}")
        cost = 0.0 if cost is None and ceiling is not None else cost
        paid = "" if cost is None else f", {self._money(cost)}"
        return f"{text} tokens{paid}" + ("" if ceiling is None else f" of {self._money(ceiling)}")

    def _money(self, amount: float) -> str:
        shown = f"{amount:,.2f}" if amount == 0 or amount >= 0.005 else f"{amount:.4f}"
        return f"{shown} {self._settings.currency}".strip()


def _sum(rows: Rows) -> Spent:
    return sum((spent for _, spent in rows), Spent())


def _cost(spent: Spent, price: Price) -> float:
    plain = spent.input_tokens - spent.cached_tokens - spent.cache_write_tokens
    read = price.input if price.cache_read is None else price.cache_read
    stored = price.input if price.cache_write is None else price.cache_write
    total = plain * price.input + spent.cached_tokens * read + spent.cache_write_tokens * stored
    return (total + spent.output_tokens * price.output) / 1e6
