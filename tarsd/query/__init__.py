"""The vault as data: notes, tasks and list items by conditions, in the language of Bases."""

from tarsd.query.execute import Executor, Vaults
from tarsd.query.reply import table_json
from tarsd.query.request import RowKind, VaultQuery
from tarsd.query.tasks import task_query

__all__ = ["Executor", "RowKind", "VaultQuery", "Vaults", "table_json", "task_query"]
