"""`embedding.model = "auto"`: MiniLM for vaults in English, and for all others e5 where that is on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tarsd.embed import e5_files
from tarsd.embed.base import Embedder, Kind, Vectors
from tarsd.errors import EmbedError

ENGLISH: Final = "minilm"
OTHERS: Final = "e5"
ENGLISH_BEST: Final = (ENGLISH, "table")
"""Models that read English best."""
WANTED: Final = "tarsd model use e5"
TO_OTHERS: Final = 0.10
"""From this share of passages that are not in English e5 is taken …"""
BACK: Final = 0.03
"""… and up to this one it is given up again. Between them nothing changes."""
ENOUGH: Final = 10
"""Of fewer passages whose language is told a change is not worth it."""


def choice(before: str, share: float, told: int) -> str:
    """The model for a vault of which `share` is not in English, by `told` passages; `before` is "" at first."""
    if not before or (before == ENGLISH and told >= ENOUGH):
        return OTHERS if share >= TO_OTHERS else ENGLISH
    return ENGLISH if share <= BACK and told >= ENOUGH else before


class Either:
    """The one of some embedders that `which()` names at the moment."""

    def __init__(self, models: Mapping[str, Embedder], which: Callable[[], str]) -> None:
        self._models, self._which = models, which

    @property
    def _model(self) -> Embedder:
        return self._models[self._which()]

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dim(self) -> int:
        return self._model.dim

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def former(self) -> str:
        return self._model.former

    @property
    def local(self) -> bool:
        return self._model.local

    @property
    def max_tokens(self) -> int:
        return self._model.max_tokens

    @property
    def batch(self) -> int:
        return self._model.batch

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As the model does."""
        return self._model.embed(texts, kind)

    def ask_again(self) -> None:
        self._model.ask_again()

    def close(self) -> None:
        for model in self._models.values():
            model.close()


class Auto(Either):
    """The chosen one of MiniLM and e5, by `models` of these names. MiniLM until `decide` was called."""

    def __init__(self, models: Mapping[str, Embedder], ready: Callable[[], object] = e5_files.made) -> None:
        super().__init__(models, lambda: self.chosen or ENGLISH)
        self._ready = ready
        self.chosen = ""
        """The name of the model, "" while that is not decided."""
        self.reason = ""
        """Why this one, as a sentence for people; "" where there was no choice."""
        self.trouble: EmbedError | None = None
        """Why e5, which would be the right one, cannot be used."""

    def decide(self, before: str, share: float, told: int) -> bool:
        """Choose by the share of passages that are not in English, of `told` ones; whether that changed something.

        `before` is the model that the index has. Where e5 is chosen, its files are made, which takes two seconds once.
        """
        wanted = choice(self.chosen or before, share, told)
        if self.trouble is not None or not is_there():
            wanted = ENGLISH
        elif wanted == OTHERS:
            try:
                self._ready()
            except EmbedError as error:
                wanted, self.trouble = ENGLISH, error
        self.reason = ""
        if is_there() and self.trouble is None:
            self.reason = f"Chosen by itself: {share:.0%} of the passages are not in English."
        changed, self.chosen = wanted != self.chosen, wanted
        return changed

    def serving(self, covered: Callable[[str], float]) -> Either:
        """The model for questions: the one whose vectors cover most, by its fingerprint; the chosen one when equal."""

        def which() -> str:
            chosen = self.chosen or ENGLISH
            names = sorted(self._models, key=lambda name: name != chosen)
            return max(names, key=lambda name: round(covered(self._models[name].fingerprint), 2))

        return Either(self._models, which)


def is_there() -> bool:
    """Whether e5 is on this machine, so that there is a choice."""
    return e5_files.is_made() or e5_files.published() is not None


def advice(model: str, share: float, told: int, trouble: EmbedError | None = None) -> list[str]:
    """What would help a vault of which `share` is not in English, by `told` passages, with this model; a line or none.

    `trouble` is what keeps e5 from being used.
    """
    if model not in ENGLISH_BEST or share < TO_OTHERS or told < ENOUGH:
        return []
    helps = f"e5 finds more by meaning: {WANTED}"
    return [
        f"{share:.0%} of the passages are not in English, which {model} reads best; words find them all the same. "
        + (helps if trouble is None else f"{trouble.message} {trouble.hint}".rstrip())
    ]
