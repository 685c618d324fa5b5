"""Tokens that servers count, held against those of what they were sent. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from tarsd.parse.tokens import least_tokens, tokens
from tarsd.providers.base import (
    ModelRequest,
    ProviderEvent,
    Retract,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    Usage,
    Waiting,
)

REASONING: Final = 4096
"""Tokens that reasoning may take beside the reply, where there is room."""
CUT: Final = (
    "{model} read only about {read:,} tokens of what it was sent: part of the notes or the conversation was left out."
)
_WORTH: Final = 512
"""With less room than this a reply is not asked for again."""
_FEWEST: Final = 32
"""No server cuts a prompt shorter; what counts less counts something else."""
_SURELY: Final = 0.8
_MOST_TEXTS: Final = 2_000
_MOST_MODELS: Final = 64
_LOWEST, _HIGHEST = 0.6, 4.0
_PLAUSIBLE: Final = 0.4
"""Of the estimate: a smaller count is one without what was in a cache, or of a prompt that was cut."""
_WEIGHTY: Final = 200
_SLOWLY: Final = 0.2


def estimate(request: ModelRequest) -> int:
    """Tokens of what is sent, rather too many; without tools, for their place in the prompt is the template's."""
    return tokens(request.system) + sum(tokens(message.text) for message in request.messages)


def with_room(request: ModelRequest, window: int) -> ModelRequest:
    """The request with a bound of the reply (tokens) within which its model may reason, too."""
    most = request.max_tokens
    return replace(request, max_tokens=max(most, min(most + REASONING, window - estimate(request))))


class ReasoningRoom:
    """Room for reasoning beside the reply, once a model is known to reason: by what it says, or says nothing of."""

    def __init__(self) -> None:
        self.given = False

    async def stream(
        self, ask: Callable[[ModelRequest], AsyncGenerator[ProviderEvent, None]], request: ModelRequest, window: int
    ) -> AsyncGenerator[ProviderEvent, None]:
        """The events of `ask`; a reply that was used up before its first word is asked for again with room, once."""
        before = latest = Usage(0, 0)
        while True:
            before, latest = before + latest, Usage(0, 0)
            said, asked = False, with_room(request, window) if self.given else request
            async with aclosing(ask(asked)) as events:
                async for event in events:
                    match event:
                        case Thinking():
                            self.given = True
                        case ToolCall():
                            said = True
                        case Text(text):
                            said = said or bool(text.strip())
                        case Retract():
                            said = False
                        case Usage():
                            latest = event
                            event = before + latest
                        case StreamEnd("length") if not said:
                            self.given = True
                            if asked.max_tokens + _WORTH <= with_room(request, window).max_tokens:
                                break
                    yield event
                else:
                    return
            yield Waiting("The whole reply went into reasoning: asking again, with more room …")


def halved(read: int, window: int) -> bool:
    """Whether a prompt of `read` tokens is what Ollama leaves of one that is longer than the window."""
    return window > 0 and (read >= window - 1 or abs(read - window // 2 - 2) <= 2)


class ReadCheck:
    """Whether a server read what it was sent, by the tokens it counts; in doubt it did.

    Some servers count only what was not in their cache: then text counts here when it is sent for the first time.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[int, None] = OrderedDict()

    def is_cut(self, request: ModelRequest, read: int, *, whole: bool = False) -> bool:
        """Whether the model clearly read less than this request holds; to be asked once for each request.

        `whole` says that this server counts what was in its cache, too.
        """
        least = 0
        for text in (request.system, *(message.text for message in request.messages)):
            least += least_tokens(text) if whole or hash(text) not in self._sent else 0
            self._sent[hash(text)] = None
            self._sent.move_to_end(hash(text))
        while len(self._sent) > _MOST_TEXTS:
            self._sent.popitem(last=False)
        return _FEWEST <= read < _SURELY * least


class TokenRatios:
    """How many tokens each model makes of what `tokens` counts as one, learnt from what its server counts."""

    def __init__(self) -> None:
        self._ratios: OrderedDict[str, float] = OrderedDict()

    def of(self, model: str) -> float:
        """The ratio for a model, 1 until something is known."""
        return self._ratios.get(model, 1.0)

    def learn(self, model: str, estimated: int, told: int, window: int = 0) -> None:
        """A server counted `told` tokens of a request in a window: more is believed at once, less only by and by.

        Less is not believed of a long prompt, which may have been cut.
        """
        seen, known = told / max(estimated, 1), self.of(model)
        if estimated < _WEIGHTY or seen < _PLAUSIBLE or (seen < known and window and told > 0.45 * window):
            return
        seen = seen if seen > known else known + (seen - known) * _SLOWLY
        self._ratios[model] = min(max(seen, _LOWEST), _HIGHEST)
        self._ratios.move_to_end(model)
        if len(self._ratios) > _MOST_MODELS:
            self._ratios.popitem(last=False)
