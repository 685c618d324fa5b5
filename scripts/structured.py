"""Exact requests about a vault, each turned into a query of tarsd's: `scripts/evaluate --structured FOLDER`.

A request is JSON: `from`, `where`, `dates`, `tasks`, `items`, `select`, `sort`, `limit`, `aggregate`, `group`, as the
README of such a folder describes them. `answer` gives its rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tarsd.kinds import kind_of
from tarsd.query import VaultQuery

Json = dict[str, Any]
Run = Callable[[VaultQuery], Json]

_AGGREGATES = {"count": "", "sum": "sum", "avg": "average", "min": "min", "max": "max"}
_OPEN = {
    "open": 'open', "done": 'status == "x" || status == "X"', "cancelled": 'status == "-"',
}  # fmt: skip


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
