"""What is wrong with an expression or a base, and where."""

from __future__ import annotations

from tarsd.errors import BadRequest


class BasesError(BadRequest, code="bad_expression"):
    """An expression that cannot be read or run; `line` and `column` say where in its text, from 1 (0: nowhere)."""

    def __init__(self, message: str, hint: str = "", *, line: int = 0, column: int = 0) -> None:
        at = f" (line {line}, column {column})" if line else ""
        super().__init__(message.rstrip(".") + at + ".", hint, field="where")
        self.said, self.line, self.column = message, line, column

    def as_json(self) -> dict[str, str]:
        """As the base, with the place as text."""
        return super().as_json() | ({"line": str(self.line), "column": str(self.column)} if self.line else {})

    def moved(self, line: int, column: int, where: str = "") -> BasesError:
        """The same error, of an expression whose text begins at this place of a file; `where` goes before it."""
        at = (
            (line + self.line - 1, self.column + (column - 1 if self.line == 1 else 0)) if self.line else (line, column)
        )
        return BasesError(where + self.said, self.hint, line=at[0], column=at[1])
