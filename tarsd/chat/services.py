"""What turns are answered with: the notes, the models, the tools, the memory and what writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from tarsd.chat.prompt_folder import PromptFolder
from tarsd.config import ChatSettings
from tarsd.memory import Memory
from tarsd.notes import NoteLibrary, Reader
from tarsd.protocol import Audience
from tarsd.providers.base import Provider
from tarsd.providers.counting import TokenRatios
from tarsd.providers.refused_tools import RefusedTools
from tarsd.session import Conversation
from tarsd.tools import Toolbox
from tarsd.tools.skills import Skills
from tarsd.usage import Spending
from tarsd.writing import Writer


@dataclass(frozen=True)
class TurnServices:
    """What turns are answered with; `fallback` replaces a `provider` that is unavailable or overloaded.

    `indexed` waits, not for long, until what was just written can be found. `model` gives another model, for a prompt
    that names one; it raises `Refused` for one that the settings do not cover.
    """

    library: NoteLibrary
    provider: Provider
    toolbox: Toolbox
    memory: Memory
    writer: Writer
    spending: Spending
    settings: ChatSettings = field(default_factory=ChatSettings)
    fallback: Provider | None = None
    indexed: Callable[[Sequence[str]], Awaitable[None]] | None = None
    ratios: TokenRatios = field(default_factory=TokenRatios)
    today: Callable[[], date] = date.today
    refused_tools: RefusedTools = field(default_factory=RefusedTools)
    folder: str = "tars"
    model: Callable[[str], Provider] | None = None
    skills: Skills | None = None

    @property
    def prompts(self) -> PromptFolder:
        """The person's own prompts."""
        return PromptFolder(self.library, self.folder)

    def private_turns(self, conversation: Conversation) -> frozenset[str]:
        """The turns that no model elsewhere may see now: they saw private text, or drew on what has become private."""
        drawn, private = conversation.drawn, self.library.any_private
        return frozenset(turn.id for turn in conversation.turns if turn.private or private(drawn[turn.id]))

    def private_summary(self, conversation: Conversation) -> bool:
        """Whether that holds of the summary of the conversation's beginning."""
        summary = conversation.condensed
        return summary is not None and (summary.private or self.library.any_private(conversation.summary_drew_on))

    def reader(self, audience: Audience, model_is_local: bool) -> Reader:
        """What reads the notes for an audience, by way of a model on this machine or elsewhere."""
        return Reader(self.library, audience, model_is_local)
