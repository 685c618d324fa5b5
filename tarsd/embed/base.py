"""What every embedder is, and what all of them share: prefixes, fingerprints, and the check of what comes back.

Words of this package: a *row* is the vector of one text; a *bad row* is all NaN and means "this text has no vector",
or all infinite and means "not this time": the server took the text and sent nothing that can be compared.
A bad row is never stored and never compared; keyword search still finds its text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarsd.errors import EmbedError

if TYPE_CHECKING:
    from tarsd.config import EmbeddingSettings

Kind = Literal["document", "query"]
Vectors: TypeAlias = NDArray[np.float32]

# Below this length a vector has no direction to speak of; servers under load have sent all zeros with status 200.
MIN_NORM = 1e-6


class Embedder(Protocol):
    """Texts to unit vectors. Implementations may be called from several threads."""

    @property
    def name(self) -> str:
        """As in the configuration: "minilm", "table", "ollama:nomic-embed-text"."""

    @property
    def dim(self) -> int:
        """Width of a vector; 0 until a remote model has told it."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits of everything that changes vectors.

        Behind a server it holds the width that the server really gives (and Ollama's digest of the weights), so the
        first look asks the server and raises EmbedError when that cannot be reached. It is another one after the
        server was found to give another width. The other embedders know their own.
        """

    @property
    def former(self) -> str:
        """The fingerprint that an earlier version gave the same vectors, "" where it was the same."""

    @property
    def local(self) -> bool:
        """True when no text leaves this machine; False when in doubt."""

    @property
    def max_tokens(self) -> int:
        """What the model reads of one text, in its own tokens; the rest is ignored."""

    @property
    def batch(self) -> int:
        """The most texts that are worth handing over at once; more are split up inside."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim], each row of length 1 or a bad one.

        Raises EmbedError (EmbedderUnreachable, ModelMissing, RateLimited, OtherWidth) when nothing could be embedded
        at all. Where other weights answered than those of the fingerprint, that is another one afterwards.
        """

    def ask_again(self) -> None:
        """Ask the server about its model again before its answers are used again."""

    def close(self) -> None:
        """Let go of sessions and connections; the embedder may be used again and then reopens them."""


class OtherWeights(EmbedError):
    """Another model answers under the name than the one that was to be asked. Never a fault of the texts."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The embedding model {name} has changed.", "All passages are being embedded again.")


class OtherWidth(EmbedError):
    """Vectors of another width than before come back: another model answers. Never a fault of the texts."""

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(
            f"The embedding model gives {found} dimensions instead of {expected}.",
            "A different model now has this name; all passages are embedded again automatically.",
        )
        self.found = found


def nothing(n: int, dim: int) -> Vectors:
    """n bad rows."""
    return np.full((n, dim), np.nan, dtype=np.float32)


def unusable(n: int, dim: int) -> Vectors:
    """n bad rows that are worth another try at another time."""
    return np.full((n, dim), np.inf, dtype=np.float32)


def is_unusable(vectors: Vectors) -> NDArray[np.bool_]:
    """One flag a row: True where the text may have a vector at another time."""
    return np.asarray(np.isinf(vectors).any(axis=1), dtype=np.bool_)


def is_bad(vectors: Vectors) -> NDArray[np.bool_]:
    """One flag a row: True where a text has no vector."""
    # Asked this way round, a row without any width is bad too.
    return np.logical_not(np.asarray(np.isfinite(vectors).any(axis=1), dtype=np.bool_))


def normalised(vectors: NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1; rows that are not finite or next to zero become bad rows."""
    wide = vectors.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        length = np.sqrt((wide * wide).sum(axis=1))
        fine = np.isfinite(length) & (length > MIN_NORM)
        unit = wide / length[:, None]
    unit[~fine] = np.nan
    rows: Vectors = unit.astype(np.float32)
    return rows


def check(raw: object, n: int, dim: int) -> Vectors:
    """Raw lists from outside as float32 [n, dim] of unit length; rows that cannot be used are unusable ones.

    dim 0 takes the width that most rows have. Raises EmbedError when the count is wrong (nobody can tell which row is
    whose) and OtherWidth when no row has the width dim and some have another.
    """
    rows = list(raw) if isinstance(raw, (list, tuple, np.ndarray)) else []
    if len(rows) != n:
        got = _count(len(rows), "vector") if rows else "no vectors"
        raise EmbedError(f"The embedding server sent {got} for {_count(n, 'text')}.", "tarsd tries again.")
    widths = [len(row) if isinstance(row, (list, tuple, np.ndarray)) else 0 for row in rows]
    known = [width for width in widths if width]
    if dim == 0:
        dim = max(known, key=known.count) if known else 0
    elif known and dim not in known:
        raise OtherWidth(max(known, key=known.count), dim)
    out = nothing(n, dim)
    for at, row in enumerate(rows):
        if widths[at] == dim and dim:
            # llama.cpp writes NaN as null; strings and nested lists are no numbers either.
            try:
                out[at] = np.asarray(row, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                continue
    out = normalised(out)
    out[is_bad(out)] = np.inf
    return out


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def fingerprint(*parts: object) -> str:
    """16 hex digits over the parts, in order."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:16]


_BGE = "Represent this sentence for searching relevant passages: "
# (pattern of the bare model name, document prefix, query prefix); the first that matches. From the models' own cards.
_FAMILIES: tuple[tuple[str, str, str], ...] = (
    (r"nomic-embed-text", "search_document: ", "search_query: "),
    (r"e5-mistral|e5-.*instruct", "", "Instruct: Given a question, retrieve passages that answer it\nQuery: "),
    (r"(^|-)e5(-|$)", "passage: ", "query: "),
    (r"qwen3-embedding", "", "Instruct: Given a question, retrieve passages that answer it\nQuery:"),
    (r"embedding-?gemma", "title: none | text: ", "task: search result | query: "),
    (r"bge-m3", "", ""),
    (r"bge-.*-zh", "", "为这个句子生成表示以用于检索相关文章："),
    (r"bge-", "", _BGE),
    (r"mxbai-embed", "", _BGE),
)


def prefixes(model: str, settings: EmbeddingSettings | None = None) -> tuple[str, str]:
    """(document prefix, query prefix) of a model's family; what the settings name wins, the empty string included."""
    bare = re.split(r"[/]", model.lower())[-1].split(":")[0].replace("_", "-")
    document, query = next(((d, q) for pattern, d, q in _FAMILIES if re.search(pattern, bare)), ("", ""))
    if settings is not None:
        document = document if settings.document_prefix is None else settings.document_prefix
        query = query if settings.query_prefix is None else settings.query_prefix
    return document, query
