"""What every chat model's provider does, whatever its wire format.

The tests of each provider subclass `ProviderContract`; its stand-in sends the text of `Say` exactly, blanks included.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self

import pytest

from tarsd.errors import (
    AnswerCut,
    ChatModelMissing,
    ContextTooLong,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
)
from tarsd.providers.base import (
    Message,
    ModelInfo,
    ModelRequest,
    Provider,
    ProviderEvent,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
)
from tarsd.providers.written_calls import made
from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Step, Think
from tests.support.doubles.server import Call as HttpCall
from tests.support.doubles.server import Reply

KEY = "sk-never-shown-5150"
"""The key that `ProviderContract.make` gives to a provider that takes one."""

LOOKUP = ToolSpec(
    "lookup",
    "Looks a town up.",
    {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "its name"}, "days": {"type": "integer"}},
        "required": ["town"],
    },
)


class Scripted(Protocol):
    """A stand-in that answers chat requests with steps; see `tests/doubles/script.py`."""

    url: str
    model: str
    gone: int
    open: int
    calls: list[HttpCall]

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def enqueue(self, *steps: Step) -> None: ...
    def reply(self, call: HttpCall) -> Reply: ...
    @property
    def requests(self) -> Sequence[Any]: ...


def ask(*texts: str, tools: tuple[ToolSpec, ...] = (), system: str = "Answer briefly.") -> ModelRequest:
    """A request of user and assistant messages in turns, the last of them the question."""
    roles = ["user" if (len(texts) - number) % 2 else "assistant" for number in range(len(texts))]
    messages = (
        Message("user" if role == "user" else "assistant", text) for role, text in zip(roles, texts, strict=True)
    )
    return ModelRequest(system, tuple(messages), tools=tools)


async def collect(provider: Provider, request: ModelRequest) -> list[ProviderEvent]:
    """All events of a stream."""
    return [event async for event in provider.stream(request)]


async def until_error(provider: Provider, request: ModelRequest) -> tuple[list[ProviderEvent], ProviderError]:
    """The events before the error that ends the stream, and the error; any other exception fails the test."""
    events: list[ProviderEvent] = []
    with pytest.raises(ProviderError) as caught:
        async for event in provider.stream(request):
            events.append(event)
    return events, caught.value


def text_of(events: Iterable[ProviderEvent]) -> str:
    """The answer."""
    return "".join(event.text for event in events if isinstance(event, Text))


def thought_in(events: Iterable[ProviderEvent]) -> str:
    """The reasoning."""
    return "".join(event.text for event in events if isinstance(event, Thinking))


def calls_in(events: Iterable[ProviderEvent]) -> list[ToolCall]:
    """The calls."""
    return [event for event in events if isinstance(event, ToolCall)]


def done_in(events: Iterable[ProviderEvent]) -> StreamEnd | None:
    """How it ended; None when it was cut."""
    return next((event for event in events if isinstance(event, StreamEnd)), None)


async def eventually(what: Callable[[], bool]) -> None:
    """Wait until something holds that happens in another thread."""
    async with asyncio.timeout(30):
        while not what():
            await asyncio.sleep(0.01)


def every_byte_alone(stream: bytes) -> list[bytes]:
    """The worst network there is."""
    return [stream[place : place + 1] for place in range(len(stream))]


def windows_line_ends(stream: bytes) -> list[bytes]:
    """As some proxies make them."""
    return [stream.replace(b"\n", b"\r\n")]


def odd_pieces(stream: bytes) -> list[bytes]:
    """Pieces that end anywhere, several lines in some of them."""
    return [stream[place : place + 97] for place in range(0, len(stream), 97)]


def last_line_open(stream: bytes) -> list[bytes]:
    """The connection ends without the last line's end."""
    return [stream.rstrip(b"\n")]


def reframe(double: Scripted, change: Callable[[bytes], list[bytes]]) -> None:
    """From now on every stream of the stand-in goes through `change`, which gets all of its bytes."""
    answer = double.reply

    def reply(call: HttpCall) -> Reply:
        plain = answer(call)
        if plain.stream is None:
            return plain
        return replace(plain, stream=change(b"".join(item for item in plain.stream if isinstance(item, bytes))))

    setattr(double, "reply", reply)  # noqa: B010


def always(double: Scripted, answer: Reply) -> None:
    """From now on everything is answered with this."""
    setattr(double, "reply", lambda call: answer)  # noqa: B010


class Silence:
    """A server that takes connections and requests, and says nothing; `left` counts the readers that went."""

    def __init__(self) -> None:
        self.asked = 0
        self.left = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError):
            if await reader.read(1):
                self.asked += 1
            while await reader.read(65_536):
                pass
        self.left += 1
        writer.close()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def dead_url() -> str:
    """Where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


class ProviderContract:
    """Subclass it as `TestX`, say which `double` it talks to and how a provider is made, and adjust the failures.

    A provider may be asked to `stream` without `prepare`.
    """

    busy: ClassVar[Fail] = Fail(429, "slow down", "rate_limit_error", {"retry-after": "7"})
    overloaded: ClassVar[Fail] = Fail(503, "overloaded, try again", "overloaded_error")
    refused: ClassVar[Fail] = Fail(401, "invalid key", "authentication_error")
    missing: ClassVar[Fail] = Fail(404, "model 'gone' not found", "not_found_error")
    too_long: ClassVar[Fail]
    """What the server says when a prompt is longer than the model reads."""
    garbage: ClassVar[bytes] = b"data: {nonsense\n\n"
    """A piece of a stream that is none."""

    def double(self) -> Scripted:
        """A fresh stand-in, not started."""
        raise NotImplementedError

    def make(self, url: str, model: str, *, silence_s: float = 60.0) -> Provider:
        """A provider for the server at `url` (scheme, host, port), with `KEY` if it takes one."""
        raise NotImplementedError

    async def models(self, url: str) -> list[ModelInfo]:
        """What the module's own `models` says of the server at `url`."""
        raise NotImplementedError

    @asynccontextmanager
    async def talk(self, *steps: Step, silence_s: float = 60.0) -> AsyncIterator[tuple[Scripted, Provider]]:
        """A stand-in that answers its first request with `steps`, and a prepared provider for it."""
        with self.double() as double:
            if steps:
                double.enqueue(*steps)
            provider = self.make(double.url, double.model, silence_s=silence_s)
            try:
                await provider.prepare()
                yield double, provider
            finally:
                await provider.close()

    # -------------------------------------------------------------------------------------------- what is said

    async def test_text_arrives_in_order_and_then_the_end(self) -> None:
        async with self.talk(Say("one two three föur 🦦")) as (_, provider):
            events = await collect(provider, ask("count"))
        assert text_of(events) == "one two three föur 🦦"
        assert sum(isinstance(event, Text) for event in events) > 1, "piece by piece"
        assert isinstance(events[-1], StreamEnd) and events[-1].stop_reason == "stop"

    async def test_the_first_piece_comes_before_the_last_is_sent(self) -> None:
        async with self.talk(Say("first "), Say("never", pause=600)) as (double, provider):
            stream = provider.stream(ask("hello"))
            async for event in stream:
                if isinstance(event, Text):
                    assert event.text == "first "
                    break
            await stream.aclose()
            await eventually(lambda: double.open == 0)

    async def test_tokens_are_counted(self) -> None:
        async with self.talk(Say("one two")) as (_, provider):
            events = await collect(provider, ask("count"))
        used = [event for event in events if isinstance(event, Usage)]
        assert used and used[-1].input_tokens > 0 and used[-1].output_tokens > 0
        assert isinstance(events[-1], StreamEnd)

    async def test_reasoning_is_kept_apart(self) -> None:
        async with self.talk(Think("they mean the cat"), Say("Otto is fine.")) as (_, provider):
            events = await collect(provider, ask("how is he?"))
        assert (thought_in(events), text_of(events)) == ("they mean the cat", "Otto is fine.")

    async def test_system_and_history_are_sent_in_order(self) -> None:
        async with self.talk() as (double, provider):
            await collect(provider, ask("first question", "first answer", "second question", system="House rules."))
        sent = json.dumps(double.requests[0], ensure_ascii=False)
        places = [sent.index(part) for part in ("first question", "first answer", "second question")]
        assert places == sorted(places) and "House rules." in sent

    async def test_a_provider_is_used_again_and_by_several_at_once(self) -> None:
        async with self.talk(Say("alpha")) as (double, provider):
            assert text_of(await collect(provider, ask("a"))) == "alpha"
            double.enqueue(Say("beta beta beta"))
            double.enqueue(Say("gamma gamma gamma"))
            both = await asyncio.gather(collect(provider, ask("b")), collect(provider, ask("c")))
        assert {text_of(events) for events in both} == {"beta beta beta", "gamma gamma gamma"}

    async def test_it_streams_without_having_been_prepared(self) -> None:
        with self.double() as double:
            provider = self.make(double.url, double.model)
            assert done_in(await collect(provider, ask("hello"))) is not None
            await provider.close()

    async def test_window_and_tools_are_known_after_prepare(self) -> None:
        async with self.talk() as (_, provider):
            assert provider.window > 0 and provider.tools is True and provider.local is True
            assert provider.quotes is False

    async def test_the_models_of_the_server_are_listed(self) -> None:
        with self.double() as double:
            listed = await self.models(double.url)
        assert any(one.id.endswith(double.model) for one in listed)

    async def test_listing_the_models_of_no_server_says_so(self) -> None:
        with pytest.raises(ProviderUnreachable):
            await self.models(dead_url())

    # -------------------------------------------------------------------------------------------- tools

    async def test_a_tool_is_called_and_its_answer_read(self) -> None:
        async with self.talk(Say("Let me look."), Call("lookup", {"town": "Bergen", "days": 2})) as (double, provider):
            request = ask("weather in Bergen?", tools=(LOOKUP,))
            events = await collect(provider, request)
            (call,), done = calls_in(events), done_in(events)
            assert (call.name, dict(call.arguments), call.problem) == ("lookup", {"town": "Bergen", "days": 2}, "")
            assert call.id and done is not None and done.stop_reason == "tools"
            asked = json.dumps(double.requests[0])
            assert "Looks a town up." in asked and '"required": ["town"]' in asked
            double.enqueue(Say("It rains."))
            follow = replace(
                request,
                messages=(
                    *request.messages,
                    Message("assistant", text_of(events), calls=(call,), raw=done.raw),
                    Message("tool", "rain, 9 degrees", call_id=call.id, name=call.name),
                ),
            )
            assert text_of(await collect(provider, follow)) == "It rains."
        sent = json.dumps(double.requests[1])
        assert sent.index("weather in Bergen?") < sent.index("Let me look.") < sent.index("rain, 9 degrees")

    @pytest.mark.parametrize(
        "written",
        [
            '<tool_call>\n{"name": "lookup", "arguments": {"town": "Bergen"}}\n</tool_call>',
            '```json\n{"name": "lookup", "parameters": {"town": "Bergen"}}\n```',
            '[lookup(town="Bergen")]',
            '<think>I look.</think>\n[TOOL_CALLS]lookup[ARGS]{"town": "Bergen"}',
            '<|channel|>commentary to=functions.lookup <|constrain|>json<|message|>{"town": "Bergen"}<|call|>',
        ],
    )
    async def test_a_call_written_as_text_is_made_and_answered(self, written: str) -> None:
        async with self.talk(Say(written)) as (double, provider):
            request = ask("weather in Bergen?", tools=(LOOKUP,))
            events = [event async for event in made(provider.stream(request), request.tools)]
            (call,), done = calls_in(events), done_in(events)
            assert (call.name, dict(call.arguments), text_of(events)) == ("lookup", {"town": "Bergen"}, "")
            assert done == StreamEnd("tools")
            double.enqueue(Say("It rains."))
            step = Message("assistant", "", calls=(call,), raw=done.raw)
            found = Message("tool", "rain, 9 degrees", call_id=call.id, name=call.name)
            follow = replace(request, messages=(*request.messages, step, found))
            assert text_of(await collect(provider, follow)) == "It rains."
        assert "rain, 9 degrees" in json.dumps(double.requests[1])

    async def test_several_tools_are_called_at_once(self) -> None:
        steps = (Think("two towns"), Call("lookup", {"town": "Oslo"}), Call("lookup", {"town": "Bergen"}))
        async with self.talk(*steps) as (double, provider):
            request = ask("and both?", tools=(LOOKUP,))
            events = await collect(provider, request)
            calls, done = calls_in(events), done_in(events)
            assert [call.arguments["town"] for call in calls] == ["Oslo", "Bergen"]
            assert calls[0].id != calls[1].id and done is not None and done.stop_reason == "tools"
            answers = (
                Message("tool", "sun in Oslo", call_id=calls[0].id, name="lookup"),
                Message("tool", "no such town", call_id=calls[1].id, name="lookup", failed=True),
            )
            said = Message("assistant", text_of(events), calls=tuple(calls), raw=done.raw)
            await collect(provider, replace(request, messages=(*request.messages, said, *answers)))
        sent = json.dumps(double.requests[1])
        assert sent.index("sun in Oslo") < sent.index("no such town")

    async def test_calls_without_their_raw_form_are_sent_from_their_parts(self) -> None:
        calls = (ToolCall("call_1", "lookup", {"town": "Oslo"}),)
        messages = (
            Message("user", "weather?"),
            Message("assistant", "", calls=calls),
            Message("tool", "sun", call_id="call_1", name="lookup"),
        )
        async with self.talk() as (double, provider):
            assert done_in(await collect(provider, ModelRequest("", messages, tools=(LOOKUP,)))) is not None
        sent = json.dumps(double.requests[0])
        assert sent.index("weather?") < sent.index("Oslo") < sent.index("sun")

    async def test_a_call_without_arguments_has_none(self) -> None:
        async with self.talk(Call("lookup")) as (_, provider):
            (call,) = calls_in(await collect(provider, ask("look", tools=(LOOKUP,))))
        assert dict(call.arguments) == {}

    # -------------------------------------------------------------------------------------------- the framing

    @pytest.mark.parametrize("change", [every_byte_alone, windows_line_ends, odd_pieces, last_line_open])
    async def test_the_pieces_of_the_network_do_not_matter(self, change: Callable[[bytes], list[bytes]]) -> None:
        steps = (Think("høhø"), Say("Zwölf 🦦 Otter"), Call("lookup", {"town": "Tromsø"}))
        async with self.talk() as (double, provider):
            reframe(double, change)
            double.enqueue(*steps)
            events = await collect(provider, ask("how many?", tools=(LOOKUP,)))
        assert (thought_in(events), text_of(events)) == ("høhø", "Zwölf 🦦 Otter")
        assert [dict(call.arguments) for call in calls_in(events)] == [{"town": "Tromsø"}]
        assert done_in(events) is not None

    async def test_a_very_long_event_arrives_whole(self) -> None:
        long = "ab" * 350_000
        async with self.talk(Say(long)) as (_, provider):
            events = await collect(provider, ask("much"))
        assert text_of(events) == long and done_in(events) is not None

    # -------------------------------------------------------------------------------------------- leaving

    async def test_leaving_before_an_answer_closes_the_connection(self) -> None:
        silence = Silence()
        async with silence() as url:
            provider = self.make(url, "any")
            await self._leave(provider, "cancel", lambda: silence.asked > 0)
            await eventually(lambda: silence.left == silence.asked)
            await provider.close()

    async def test_leaving_before_the_first_piece_closes_the_connection(self) -> None:
        async with self.talk(Say("late", pause=600)) as (double, provider):
            await self._leave(provider, "cancel", lambda: double.open > 0)
            await eventually(lambda: double.open == 0)
            assert double.gone == 1

    @pytest.mark.parametrize("how", ["close", "cancel"])
    async def test_leaving_in_the_middle_closes_the_connection(self, how: str) -> None:
        async with self.talk(Say("now "), Say("late", pause=600)) as (double, provider):
            seen: list[ProviderEvent] = []
            await self._leave(provider, how, lambda: bool(text_of(seen)), seen)
            await eventually(lambda: double.open == 0)
            assert double.gone == 1

    async def _leave(
        self, provider: Provider, how: str, when: Callable[[], bool], seen: list[ProviderEvent] | None = None
    ) -> None:
        stream = provider.stream(ask("hello"))
        events: list[ProviderEvent] = [] if seen is None else seen

        async def read() -> None:
            async for event in stream:
                events.append(event)
                if how == "close" and text_of(events):
                    return

        task = asyncio.create_task(read())
        await eventually(when)
        if how == "close":
            await task
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await stream.aclose()

    # -------------------------------------------------------------------------------------------- what goes wrong

    async def test_a_stream_that_just_ends_has_no_end_mark(self) -> None:
        async with self.talk(Say("half an "), Cut()) as (_, provider):
            events = await collect(provider, ask("whole?"))
        assert text_of(events) == "half an " and done_in(events) is None

    async def test_a_torn_connection_cuts_the_answer(self) -> None:
        async with self.talk(Say("half an "), Say("answer", pause=0.1), Cut(abort=True)) as (_, provider):
            events, error = await until_error(provider, ask("whole?"))
        # what was not read before the tear is lost with it, on a slow machine perhaps all
        assert isinstance(error, AnswerCut if text_of(events) else AnswerCut | ProviderUnreachable)
        assert done_in(events) is None

    async def test_garbage_cuts_the_answer(self) -> None:
        async with self.talk(Say("half an "), Raw(self.garbage)) as (_, provider):
            events, error = await until_error(provider, ask("whole?"))
        assert isinstance(error, AnswerCut) and text_of(events) == "half an "

    async def test_silence_in_the_middle_cuts_the_answer(self) -> None:
        async with self.talk(Say("half an "), Say("answer", pause=600), silence_s=1.0) as (double, provider):
            events, error = await until_error(provider, ask("whole?"))
            assert isinstance(error, AnswerCut) and text_of(events) == "half an "
            await eventually(lambda: double.open == 0)

    async def test_an_error_in_the_middle_is_told(self) -> None:
        async with self.talk(Say("half an "), self.overloaded) as (_, provider):
            events, error = await until_error(provider, ask("whole?"))
        assert text_of(events) == "half an " and done_in(events) is None
        assert isinstance(error, ProviderBusy)

    async def test_a_busy_server_says_when_to_come_back(self) -> None:
        async with self.talk(self.busy) as (double, provider):
            events, error = await until_error(provider, ask("now?"))
            assert isinstance(error, ProviderBusy) and error.retry_after == 7.0 and not text_of(events)
            double.enqueue(replace(self.busy, headers={"retry-after-ms": "1500"}))
            _, error = await until_error(provider, ask("now?"))
            assert error.retry_after == 1.5
            double.enqueue(replace(self.overloaded, headers={}))
            _, error = await until_error(provider, ask("now?"))
            assert isinstance(error, ProviderBusy) and error.retry_after is None

    async def test_a_refusal_says_what_to_do_and_shows_no_key(self) -> None:
        async with self.talk(self.refused) as (_, provider):
            _, error = await until_error(provider, ask("now?"))
        assert isinstance(error, ProviderRefused) and error.hint
        assert KEY not in error.message + error.hint + repr(provider) + repr(error)

    async def test_a_missing_model_is_told(self) -> None:
        async with self.talk(self.missing) as (_, provider):
            _, error = await until_error(provider, ask("now?"))
        assert isinstance(error, ChatModelMissing) and error.hint

    async def test_a_prompt_that_is_too_long_is_told(self) -> None:
        async with self.talk(self.too_long) as (_, provider):
            _, error = await until_error(provider, ask("now?"))
        assert isinstance(error, ContextTooLong)

    @pytest.mark.parametrize("status", [400, 418, 500, 502])
    async def test_nothing_is_tried_twice(self, status: int) -> None:
        async with self.talk(Fail(status, "it broke", "api_error")) as (double, provider):
            _, error = await until_error(provider, ask("now?"))
            assert error.message and len(double.requests) == 1

    @pytest.mark.parametrize(
        "answer",
        [
            Reply(status=502, stream=[b"<html>Bad gateway</html>"], content_type="text/html"),
            Reply(status=500, stream=[b""], content_type="text/plain"),
            Reply(status=500, json=["broken"]),
            Reply(status=404, json={"error": {"nested": ["x"]}}),
            Reply(status=422, json={"detail": [{"loc": ["body"], "msg": "bad"}]}),
            Reply(status=429, json="slow down"),
        ],
        ids=["html", "nothing", "a list", "an odd object", "a front end's", "a string"],
    )
    async def test_errors_of_any_shape_are_told(self, answer: Reply) -> None:
        with self.double() as double:
            always(double, answer)
            provider = self.make(double.url, double.model)
            _, error = await until_error(provider, ask("now?"))
            assert error.message and "<html>" not in error.message
            await provider.close()

    async def test_a_page_in_place_of_a_stream_is_no_answer(self) -> None:
        with self.double() as double:
            always(double, Reply(stream=[b"<html>\n<h1>Please log in</h1>\n</html>\n"], content_type="text/html"))
            provider = self.make(double.url, double.model)
            events: list[ProviderEvent] = []
            with contextlib.suppress(ProviderError):
                events = await collect(provider, ask("now?"))
            assert not text_of(events) and done_in(events) is None
            await provider.close()

    async def test_no_server_is_told_with_a_hint(self) -> None:
        url = dead_url()
        provider = self.make(url, "any")
        _, error = await until_error(provider, ask("now?"))
        assert isinstance(error, ProviderUnreachable) and error.hint and url.removeprefix("http://") in error.message
        with contextlib.suppress(ProviderError):
            await provider.prepare()
        await provider.close()

    async def test_a_server_that_says_nothing_is_unreachable(self) -> None:
        silence = Silence()
        async with silence() as url:
            provider = self.make(url, "any", silence_s=1.0)
            _, error = await until_error(provider, ask("now?"))
            assert isinstance(error, ProviderUnreachable)
            await eventually(lambda: silence.left == silence.asked)
            await provider.close()

    # -------------------------------------------------------------------------------------------- the surroundings

    async def test_a_proxy_is_not_asked_for_what_is_on_this_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, dead_url())
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with self.talk(Say("here")) as (_, provider):
            assert text_of(await collect(provider, ask("where?"))) == "here"

    async def test_nothing_said_and_no_key_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            async with self.talk(Say("the answer is quince")) as (double, provider):
                await collect(provider, ask("a very private question"))
                double.enqueue(Fail(500, "broken while reading a very private question"))
                await until_error(provider, ask("a very private question"))
        ours = [record for record in caplog.records if record.name != "asyncio"]
        logged = "\n".join(record.getMessage() for record in ours)
        assert not any(secret in logged for secret in ("very private", "quince", KEY))
