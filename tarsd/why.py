"""Why a note was found, or was not: the way from the file on disk to its place in the answer, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tarsd.errors import TarsdError
from tarsd.passage import Key, NoteRow, Passage
from tarsd.search import Ranking, Searcher
from tarsd.search.lexicon import TermStats
from tarsd.store import Store
from tarsd.vault import Vault

_SHOWN_CHUNKS = 200
_LIMIT = 50


@dataclass(frozen=True)
class Step:
    """One question on the way with its answer; the first that is not `ok` is usually the reason."""

    step: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Explanation:
    """All steps, the note's passages, and where it ended; ranks count from 1, None is "not in the list".

    `ranks` holds the note's best place in each list by name ("words", "meaning (minilm)", "titles", "all together").
    """

    path: str
    query: str
    steps: list[Step]
    chunks: list[dict[str, Any]]
    ranks: dict[str, int | None]
    final_rank: int | None
    verdict: str

    def as_json(self) -> dict[str, Any]:
        """As the socket sends it."""
        return asdict(self)


def why(
    store: Store, searcher: Searcher, vaults: Sequence[Vault], key: Key, query: str, close: Callable[[], str] = str
) -> Explanation:
    """Explain the place of the note at (collection, path) in the answer to a query. Never raises for a missing note.

    `close`: says what is to be said of a note that does not exist, such as a name that is spelled almost so.
    """
    steps = _on_disk(vaults, store, key, close)
    note = store.notes.note(key)
    if note is None:
        steps.append(Step("indexed", False, "It is not in the index."))
        return Explanation(key[1], query, steps, [], {}, None, _verdict(steps, None))
    rows = store.notes.passages_of(note.id)
    state = {"ok": "", "empty": " The file is empty."}.get(note.state, f" Its state is {note.state}.")
    passages = "1 passage" if len(rows) == 1 else f"{len(rows)} passages"
    steps.append(Step("indexed", True, f"It is in the index with {passages}.{state}"))
    if note.ours:
        steps.append(Step("evidence", False, "tarsd wrote it: search finds it, but answers do not use it."))
    of_notes = searcher.rank(query, "hybrid", _LIMIT)
    talk = searcher.rank_conversations(of_notes, _LIMIT)
    ranking = talk if note.of_conversation and talk is not None else of_notes
    held = {id: held.terms for id, held in searcher.held(ranking.terms, rows).items()}
    steps += _matching(ranking, note, rows, held)
    ranks = _ranks(ranking, note, [of_notes] if talk is None else [of_notes, talk])
    final = ranks["all together"]
    steps.append(
        Step(
            "found", final is not None, f"It is note {final} of the results." if final else "It is not in the results."
        )
    )
    chunks = [_chunk(ranking, row, held[row.id]) for row in rows[:_SHOWN_CHUNKS]]
    return Explanation(key[1], query, steps, chunks, ranks, final, _verdict(steps, final))


def _on_disk(vaults: Sequence[Vault], store: Store, key: Key, close: Callable[[], str]) -> list[Step]:
    collection, path = key
    vault = next((searched for searched in vaults if searched.collection == collection), None)
    if vault is None:
        return [Step("in the vault", False, f"There is no collection {collection!r}.")]
    below = not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))
    rule = vault.excluded_by(path) if below else None
    try:
        if rule is None:
            vault.resolve(path, excluded=True)
        scan = vault.scan([path])
    except TarsdError as error:
        return [Step("in the vault", False, error.message)]
    if key in scan.files:
        return [Step("in the vault", True, "The file is there."), Step("not excluded", True, "Nothing excludes it.")]
    left_out = {row.path: f"{row.reason} {row.hint}" for row in store.notes.skipped() if row.collection == collection}
    left_out |= {row.path: f"{row.reason} {row.hint}" for row in scan.skipped}
    if path in left_out:
        detail = left_out[path].strip()
        return [Step("in the vault", True, "The file is there."), Step("not excluded", False, detail)]
    if rule is not None:
        return [Step("in the vault", True, "The path is inside the vault."), Step("not excluded", False, rule)]
    return [Step("in the vault", False, f"There is no note “{path}” in the vault. {close()}".rstrip())]


def _matching(
    ranking: Ranking, note: NoteRow, rows: Sequence[Passage], held: Mapping[int, Sequence[TermStats]]
) -> list[Step]:
    steps: list[Step] = []
    if ranking.allowed is not None:
        inside = note.id in ranking.allowed
        steps.append(Step("filters", inside, "It passes the filters." if inside else "The filters exclude it."))
    if ranking.terms:
        said: list[str] = []
        for stats in ranking.terms:
            where = "in the note" if stats.chunks or stats.completed else "nowhere in the vault"
            if stats.instead:
                where = f"nowhere in the vault, searched as {' or '.join(stats.instead)}"
            said.append(f"{stats.term.literal} ({where})" if not stats.chunks else stats.term.literal)
        steps.append(Step("terms", True, "Looked for: " + ", ".join(said) + "."))
        hit = [stats.term.literal for stats in ranking.terms if any(stats in terms for terms in held.values())]
        detail = f"It contains: {', '.join(hit)}." if hit else "It contains none of the words."
        steps.append(Step("words", bool(hit), detail))
    for listed in ranking.lists:
        nearest = max((listed.cosines.get(row.id, -1.0) for row in rows), default=-1.0)
        near = f"its nearest passage has cosine {nearest:.2f}" if nearest > -1 else "none of its passages is near"
        detail = f"By the vectors of {listed.name}, {near}."
        steps.append(Step(f"meaning ({listed.name})", nearest > -1, detail))
    title = ranking.titles.get(note.id)
    if title is not None:
        steps.append(Step("title", True, f"The query names {title.cover:.0%} of {title.name!r}."))
    if ranking.trouble:
        steps.append(Step("all legs", False, ranking.trouble))
    return steps


def _ranks(ranking: Ranking, note: NoteRow, both: Sequence[Ranking]) -> dict[str, int | None]:
    """The note's place in each list of its ranking, and in the answer that notes and conversations make together."""
    file_of = {i: file_id for one in both for i, file_id in one.file_of.items()}

    def place(ids: Sequence[int]) -> int | None:
        files = dict.fromkeys(file_of[i] for i in ids if i in file_of)
        return next((n for n, file_id in enumerate(files, 1) if file_id == note.id), None)

    ranks = {"words": place([i for i, _ in ranking.keyword])}
    for vector, nearest in ranking.vectors:
        ranks[f"meaning ({vector.name})"] = place([i for i, _ in nearest])
    titles = sorted(ranking.titles.values(), key=lambda match: (-match.cover, match.file_id))
    ranks["titles"] = next((n for n, match in enumerate(titles, 1) if match.file_id == note.id), None)
    together = sorted((scored for one in both for scored in one.fused), key=lambda scored: -scored[1])
    ranks["all together"] = place([i for i, _ in together])
    return ranks


def _chunk(ranking: Ranking, row: Passage, held: Sequence[TermStats]) -> dict[str, Any]:
    place = next((n for n, (i, _) in enumerate(ranking.fused, 1) if i == row.id), None)
    parts = ranking.parts.get(row.id)
    found: dict[str, Any] = {
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "rank": place,
        "terms": [stats.term.literal for stats in held],
        "cosines": {
            vectors.name: round(vectors.cosines[row.id], 3) for vectors in ranking.lists if row.id in vectors.cosines
        },
    }
    if parts is not None:
        found["parts"] = {name: round(value, 3) for name, value in parts._asdict().items()}
    return found


def _verdict(steps: Sequence[Step], final: int | None) -> str:
    if final is not None:
        return f"Found: note {final} of the results."
    blocked = next((step for step in steps if not step.ok and step.step != "evidence"), None)
    return f"Not found: {blocked.detail}" if blocked else "Not found: other notes match better."
