"""Exact requests about a vault, each turned into a query of tarsd's: `scripts/evaluate --structured FOLDER`.

A folder has a `vault`, `questions-A.jsonl` with requests and `questions-B.jsonl` with questions; `evaluate` asks them
all and prints how many are right. A request is JSON: `from`, `where`, `dates`, `tasks`, `items`, `select`, `sort`,
`limit`, `aggregate`, `group`, as the README of such a folder describes them. `answer` gives its rows.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from tarsd import config, embed
from tarsd.client import Client
from tarsd.config import EmbeddingSettings
from tarsd.dates import date_rules
from tarsd.errors import TarsdError
from tarsd.index import Indexer
from tarsd.kinds import kind_of, property_types
from tarsd.query import Executor, VaultQuery, Vaults, table_json
from tarsd.store import Store
from tarsd.vault import Vault

Json = dict[str, Any]
Run = Callable[[VaultQuery], Json]

_AGGREGATES = {"count": "", "sum": "sum", "avg": "average", "min": "min", "max": "max"}
_OPEN = {
    "open": 'open', "done": 'status == "x" || status == "X"', "cancelled": 'status == "-"',
}  # fmt: skip


TARSD = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "tarsd"
SETTINGS = "[memory]\nsession_notes = false\n"
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def evaluate(folder: Path, evaluator: Path | None, today: str) -> None:
    """Both layers of a folder: a table by kind for each, and last a line for each. `today` "" is that of the questions.

    `evaluator` is the program that scores answers, `ask_eval.py`; without one it is looked for near the folder.
    """
    score = _load(evaluator or _near(folder))
    with tempfile.TemporaryDirectory() as scratch:
        vault = Path(shutil.copytree(folder / "vault", Path(scratch, "vault")))
        exact = _layer_a(folder, vault, score, today)
        mean = _layer_b(folder, vault, score, today)
    print(f"layer A: {exact}")
    print(f"layer B: {mean:.3f}")


def _near(folder: Path) -> Path:
    places = [*folder.resolve().parents[:3], Path(__file__).resolve().parents[2] / "shared" / "bench"]
    found = [path for place in places if (path := place / "ask_eval.py").exists()]
    if not found:
        raise SystemExit("No ask_eval.py lies near the folder; name it with --ask-eval FILE.")
    return found[0]


def _load(path: Path) -> ModuleType:
    about = importlib.util.spec_from_file_location("ask_eval", path)
    if about is None or about.loader is None:
        raise SystemExit(f"{path} is no program to score answers with.")
    module = importlib.util.module_from_spec(about)
    about.loader.exec_module(module)
    return module


def _questions(file: Path) -> list[Json]:
    return [json.loads(row) for row in file.read_text(encoding="utf-8").splitlines() if row.strip()]


def _layer_a(folder: Path, vault: Path, score: ModuleType, today: str) -> str:
    """Each request as a query, in this process."""
    env = {"TARSD_HOME": str(vault.parent / "home-a"), "TARSD_EMBEDDING": "table"}
    settings = config.load(vault=vault, env=env)
    store = Store(settings.paths.index_db, settings.paths.embeddings_db)
    indexer = Indexer(settings, [Vault(settings.vault)], store, embed.make(EmbeddingSettings(model="table")), None)
    indexer.reconcile()
    indexer.close()
    executor, about = Executor(), Vaults(vault, property_types(vault), date_rules(vault))
    results = []
    for question in _questions(folder / "questions-A.jsonl"):
        now = datetime.combine(date.fromisoformat(today or question["today"]), datetime.min.time()).replace(hour=12)

        def run(query: VaultQuery, now: datetime = now) -> Json:
            return table_json(executor.run(query, store, about, now))

        started = time.perf_counter()
        try:
            rows = answer(question["request"], run)
        except TarsdError as error:
            print(f"{question['id']}: {error.message}", file=sys.stderr)
            rows = []
        result = score.score_a(question["gold"], json.loads(json.dumps(rows)))
        results.append(result | {"id": question["id"], "kind": question["kind"], "s": time.perf_counter() - started})
        if not result["exact"]:
            print(f"{question['id']} {question['what']}: {result.get('why', '')}")
    score.table(results, "kind", "A")
    return f"{sum(bool(result['exact']) for result in results)} of {len(results)}"


def _layer_b(folder: Path, vault: Path, score: ModuleType, today: str) -> float:
    """Each question through a daemon of its own, with `tarsd ask`."""
    questions = _questions(folder / "questions-B.jsonl")
    day = today or questions[0]["today"]
    home = vault.parent / "home-b"
    home.mkdir()
    home.joinpath("config.toml").write_text(f"[vault]\npath = {json.dumps(str(vault))}\n{SETTINGS}", encoding="utf-8")
    env = {**os.environ, "TARSD_HOME": str(home), "TARSD_CHAT": "extractive", "ASK_TODAY": day}
    faked = glob.glob(FAKETIME)
    if faked and day != date.today().isoformat():
        env |= {"LD_PRELOAD": faked[0], "FAKETIME": f"@{day} 12:00:00"}
        env |= {"DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # else its waits never end
    elif day != date.today().isoformat():
        print(f"The questions are of {day}, and without libfaketime the daemon takes today for another day.")
    os.environ["TARSD_HOME"] = str(home)
    with open(home / "log", "wb") as log, subprocess.Popen([TARSD, "run"], env=env, stdout=log, stderr=log) as daemon:
        try:
            _wait(vault)
            results = [_asked(question, score, folder, vault) for question in questions]
        finally:
            daemon.terminate()
    score.table(results, "kind", "B")
    score.table(results, "lang", "B")
    return statistics.fmean(result["score"] for result in results)


def _wait(vault: Path) -> None:
    for _ in range(600):
        try:
            if not Client.find(vault).get("/v1/status")["behind"]:
                return
        except TarsdError:
            pass
        time.sleep(0.2)
    raise SystemExit("The daemon has not indexed the vault.")


def _asked(question: Json, score: ModuleType, folder: Path, vault: Path) -> Json:
    command = f"{shlex.quote(str(TARSD))} ask {shlex.quote(question['q'])} --json"
    out, code, seconds, error = score.call(command, None, 120, question["today"])
    if code not in (0, 1):
        print(f"{question['id']}: {error[-200:]}", file=sys.stderr)
    told = score.Answer(out, code, score.vault_notes(str(vault)))
    tasks = folder / "tasks.json"
    every = json.loads(tasks.read_text(encoding="utf-8")) if tasks.exists() else []
    result: Json = score.score_b(question["gold"], told, every)
    about = {name: question[name] for name in ("id", "kind", "lang", "q")}
    return result | about | {"s": seconds, "rc": code, "abstained": told.abstained}


def answer(request: Json, run: Run) -> list[Json]:
    """The rows of a request; `run` gives the reply to a query as JSON."""
    rows = "tasks" if "tasks" in request else "items" if "items" in request else "notes"
    own = request.get(rows, {}) if rows != "notes" else {}
    conditions = [*_from(request.get("from", {}))]
    conditions += [_condition(part, _note if rows == "notes" else _of_note) for part in _list(request.get("where"))]
    conditions += [_dates(part, _note if rows == "notes" else _of_note) for part in _list(request.get("dates"))]
    conditions += _tasks(own) if rows == "tasks" else [_condition(part, _note) for part in _list(own.get("where"))]
    columns = {name: _field(name) for name in request.get("select", [])}
    sort = tuple(("-" if by.get("dir") == "desc" else "") + _field(by["field"]) for by in request.get("sort", []))
    aggregate, group = request.get("aggregate"), request.get("group")
    summed = _summed(aggregate) if aggregate else {}
    query = VaultQuery(
        rows,  # type: ignore[arg-type]
        " && ".join(f"({condition})" for condition in conditions if condition),
        tuple(columns.values()),
        sort,
        _group(group) if group else "",
        {text: kind for text, kind in summed.items() if kind},
        0 if aggregate else int(request.get("limit", 0)),
    )
    reply = run(query)
    if reply["problems"]:
        print("problems:", reply["problems"][:3], json.dumps(request, ensure_ascii=False))
    if group:
        made = [{"key": _key(found["key"]), "value": _value(found, aggregate)} for found in reply["groups"]]
        return [row for row in made if row["key"] is not None and row["value"] is not None]
    if aggregate:
        return [{"value": _value({**reply, "count": reply["total"]}, aggregate)}]
    return [_row(row, columns) for row in reply["rows"]]


def _row(row: Json, columns: Mapping[str, str]) -> Json:
    made = {name: row[name] for name in ("path", "line", "text") if name in row}
    return made | {name: row["values"][text] for name, text in columns.items()}


def _value(found: Json, aggregate: Json) -> Any:
    if aggregate["fn"] == "count" and not aggregate.get("field"):
        return found["count"]
    summary = next(iter(found["summaries"].values()))
    return summary["of"] if aggregate["fn"] == "count" else summary.get("minutes", summary["value"])


def _key(key: Any) -> Any:
    """The key of a group: of a link the name of its note."""
    if isinstance(key, str) and key.startswith("[["):
        return key[2:-2].partition("|")[0].rpartition("/")[2].removesuffix(".md")
    return key


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _note(name: str) -> str:
    return "file.day" if name == "day" else _path(name) or f"note[{json.dumps(name, ensure_ascii=False)}]"


def _of_note(name: str) -> str:
    """A field of the note of a task or item, whose own fields would come first."""
    return "file.day" if name == "day" else _path(name) or f"file.properties[{json.dumps(name, ensure_ascii=False)}]"


def _path(name: str) -> str:
    return {"path": "file.path", "folder": "file.folder", "name": "file.basename", "tags": "file.tags"}.get(name, "")


_field = _note


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _from(given: Json) -> Iterator[str]:
    for name, value in given.items():
        values = _list(value)
        match name:
            case "folder":
                yield " || ".join(f"file.inFolder({_text(folder)})" for folder in values)
            case "not_folder":
                yield from (f"!file.inFolder({_text(folder)})" for folder in values)
            case "tag":
                yield from (f"file.hasTag({_text(tag)})" for tag in values)
            case "not_tag":
                yield from (f"!file.hasTag({_text(tag)})" for tag in values)
            case "path":
                yield " || ".join(f"file.path == {_text(path)}" for path in values)
            case "name":
                yield " || ".join(f"file.basename == {_text(path)}" for path in values)
            case "links_to":
                yield from (f"file.hasLink({_text(target)})" for target in values)
            case "linked_from":
                yield from (f"link({_text(source)}).linksTo(file)" for source in values)


def _any(field: str, condition: str) -> str:
    return f"list({field}).filter({condition}).length > 0"


def _condition(part: Json, field_of: Callable[[str], str]) -> str:
    if "any" in part:
        return " || ".join(f"({_condition(one, field_of)})" for one in part["any"])
    if "not" in part:
        return f"!({_condition(part['not'], field_of)})"
    field, op, value = field_of(part["field"]), part["op"], part.get("value")
    if op in ("exists", "missing"):
        return f"{'!' if op == 'exists' else ''}list({field}).isEmpty()"
    if op == "month":
        return _any(field, f'value.isType("date") && value.month == {int(value)}')
    if op == "contains":
        return _any(field, f"value.toString().lower().contains({_text(str(value).lower())})")
    if op in ("=", "in"):
        return _any(field, " || ".join(_equals(one) for one in _list(value)))
    if op == "!=":
        return f"!list({field}).isEmpty() && !({_any(field, _equals(value))})"
    return _any(field, _compares(op, value))


def _equals(value: Any) -> str:
    read = kind_of(value) if isinstance(value, str | int | float | bool) else kind_of(str(value))
    if read.kind == "date":
        return f'value.isType("date") && value.date() == date("{read.day}")'
    if read.kind in ("number", "duration"):
        return _compares("==", value)
    text = _text(str(value).lower())
    return f"value == link({_text(str(value))}) || value.toString().lower() == {text}"


def _compares(op: str, value: Any) -> str:
    read = kind_of(value)
    if read.kind in ("date", "datetime"):
        return f'value.isType("date") && value.date() {op} date("{read.day}")'
    if read.kind == "duration":
        return f'if(value.isType("duration"), value.minutes, value) {op} {read.minutes}'
    number = read.number if read.number is not None else value
    return f'(value.isType("number") || value.isType("duration")) && value {op} {number}'


def _dates(part: Json, field_of: Callable[[str], str]) -> str:
    field = field_of(part["field"])
    within = ['value.isType("date")']
    within += [f'value.date() >= date("{part["from"]}")'] if part.get("from") else []
    within += [f'value.date() <= date("{part["to"]}")'] if part.get("to") else []
    if field == "file.day":
        return " && ".join(text.replace("value.date()", field) for text in within[1:])
    return _any(field, " && ".join(within))


def _tasks(own: Json) -> Iterator[str]:
    for name, value in own.items():
        if name == "status":
            yield " || ".join(f"({_OPEN[one]})" for one in _list(value))
        elif name == "priority":
            yield " || ".join(f"priority == {_text(one)}" for one in _list(value))
        elif name == "text":
            yield from (f"text.lower().contains({_text(str(one).lower())})" for one in _list(value))
        elif name == "tag":
            yield from (f"tags.contains({_text(one)})" for one in _list(value))
        elif name == "where":
            yield from (_condition(part, _note) for part in _list(value))
        elif value in ("missing", "exists"):
            yield f"{'' if value == 'missing' else '!'}{name}.isEmpty()"
        else:
            field, _, which = name.rpartition("_")
            op = {"before": "<", "after": ">", "on": "==", "from": ">=", "to": "<="}[which]
            yield f'{field} {op} date("{value}")'


def _summed(aggregate: Json) -> dict[str, str]:
    if not aggregate.get("field"):
        return {}
    inner = "value.minutes" if aggregate.get("as") == "minutes" else "number(value)"
    field = f'list({_field(aggregate["field"])}).map(if(value.isType("duration"), {inner}, value))'
    return {field: _AGGREGATES[aggregate["fn"]] or "filled"}


def _group(group: Json) -> str:
    field = _field(group["field"])
    return f'if({field}, {field}.format("YYYY-MM"))' if group.get("by") == "month" else field
