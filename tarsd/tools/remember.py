"""Memory as tools: what the person asks to be kept or forgotten, one line at a time, with their yes."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from tarsd.errors import ToolError
from tarsd.memory import Contradiction, Memory
from tarsd.tools.base import Context, Tool, ToolProposal, tool
from tarsd.tools.changes import propose
from tarsd.tools.outer import text_of


class MemoryTools:
    """The tools on `Memory`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def tools(self) -> list[Tool]:
        """Both of them."""
        return [tool(function, group="memory") for function in (self.memory_remember, self.memory_forget)]

    def memory_remember(
        self,
        context: Context,
        text: Annotated[str, "One short sentence, such as: Otto the cat is diabetic"],
        kind: Annotated[Literal["fact", "rule"], "A fact about the person, or a rule for how to answer"] = "fact",
        section: Annotated[str, "The section of the memory note that it belongs to"] = "",
        replace: Annotated[str, "The remembered line that this one takes the place of"] = "",
    ) -> ToolProposal:
        """Propose to remember something for good. Only for what the person asks to be remembered."""
        if not text.strip():
            raise ToolError("memory_remember: “text” is empty. Say in one sentence what to remember.")

        try:
            change = self._memory.remember(
                text,
                kind="procedural" if kind == "rule" else "semantic",
                section=section.strip(),
                session=context.conversation,
                private=context.private,
                replace=replace.strip(),
                local=context.local,
            )
        except Contradiction as error:
            hint = "Ask the person which holds. If the new one does, call memory_remember again with replace set to "
            raise ToolError(error.message, hint + ("that line." if error.line else "the line they name.")) from None
        title = "Remember a rule" if kind == "rule" else "Remember"
        again = partial(self.memory_remember, context, text, kind, section, replace)
        return propose(change, f"{title}: {text_of(text, 200)}", "Remembered.", context, again=again)

    def memory_forget(
        self, context: Context, line: Annotated[str, "The remembered line, or words that only it has"]
    ) -> ToolProposal:
        """Propose to forget a remembered line. The person sees the exact line and says yes or no."""
        if not line.strip():
            raise ToolError("memory_forget: “line” is empty. Give the remembered line, or words that only it has.")

        change = self._memory.forget(line.strip(), local=context.local)
        again = partial(self.memory_forget, context, line)
        # The answer does not repeat the line: the person sees it in the difference, and it may be private.
        return propose(change, f"Forget: {text_of(line, 200)}", "Forgotten.", context, again=again)
