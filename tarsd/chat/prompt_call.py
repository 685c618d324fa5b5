"""A turn that calls a prompt: which prompt it is, which model it may choose, and what it asks of that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tarsd.chat.prompt_folder import CalledPrompt, FilledPrompt
from tarsd.chat.prompt_note import PromptNote
from tarsd.chat.services import TurnServices
from tarsd.errors import TarsdError
from tarsd.protocol import TurnRequest
from tarsd.providers.base import Provider

Thread = Callable[..., Awaitable[Any]]


class PromptCall:
    """The prompt of one turn, if its message calls one; `thread` runs what blocks."""

    def __init__(self, services: TurnServices, request: TurnRequest, thread: Thread) -> None:
        self.called: CalledPrompt | None = None
        self.filled: FilledPrompt | None = None
        self._services = services
        self._request = request
        self._thread = thread

    @property
    def note(self) -> PromptNote | None:
        """The prompt, once it is known."""
        return self.called.prompt if self.called is not None else None

    @property
    def private(self) -> bool:
        """Whether anything that it was filled with may not leave this machine."""
        return self.filled is not None and self.filled.private

    async def hidden_by(self, command: str) -> str:
        """That a command has the name of a prompt, if that is so and may be told; else ""."""
        told = self._request.audience == "person"
        return str(await self._thread(self._services.prompts.hidden_by, command)) if told else ""

    async def read(self) -> None:
        """Find the prompt that the message calls. Raises as `PromptFolder.called`."""
        if self._request.message.startswith("/"):
            reader = self._services.reader(self._request.audience, True)
            self.called = await self._thread(self._services.prompts.called, self._request.message, reader)

    async def model(self) -> Provider:
        """The model that the prompt names, or the usual one. Raises `BadRequest` for one that it may not choose."""
        services, usual = self._services, self._services.provider
        prompt = self.note
        if prompt is None or not prompt.model or services.model is None:
            return usual
        at = prompt.at.get("model", 1)
        try:
            chosen = services.model(prompt.model)
        except TarsdError as error:
            raise prompt.wrong(at, error.message, error.hint) from None
        await usual.prepare()
        await chosen.prepare()
        if usual.local and not chosen.local:
            said = f"{chosen.name} is not on this machine, and the chat model of the settings is."
            raise prompt.wrong(at, said, "Name a model on this machine.")
        return chosen

    async def fill(self, provider: Provider) -> TurnRequest:
        """The request with what the prompt asks, as this model may know it. Raises as `PromptFolder.fill`."""
        called, request, services = self.called, self._request, self._services
        if called is None:
            return request
        reader = services.reader(request.audience, provider.local)

        def fill() -> FilledPrompt:
            selected, today = bool(request.selection), services.today()
            return services.prompts.fill(called, reader, request.notes, selected=selected, today=today)

        self.filled = await self._thread(fill)
        return request.asking(self.filled.said, self.filled.notes)
