"""The vault as data: notes, tasks and list items by conditions, in the language of Bases."""

from tarsd.query.digest import MOST_OF_PART, DigestPart, digest_markdown, digest_parts
from tarsd.query.execute import Executor, Vaults
from tarsd.query.reply import table_json
from tarsd.query.request import RowKind, VaultQuery, conditions, expressions, rows_query
from tarsd.query.shown import MOST_SHOWN, ShownRows, as_lines, as_markdown, shown_rows
from tarsd.query.tasks import task_query

__all__ = [
    "MOST_OF_PART", "MOST_SHOWN", "DigestPart", "Executor", "RowKind", "ShownRows", "VaultQuery", "Vaults", "as_lines",
    "as_markdown", "conditions", "digest_markdown", "digest_parts", "expressions", "rows_query", "shown_rows",
    "table_json", "task_query",
]  # fmt: skip
