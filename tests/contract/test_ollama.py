"""Ollama's chat: what is sent and read, the window it gets, and what its servers do wrong."""

from __future__ import annotations

import contextlib
import json
from typing import Any, ClassVar, Literal

import pytest

from tarsd.errors import AnswerCut, ChatModelMissing, ConfigError, ContextTooLong, ProviderError, ProviderRefused
from tarsd.providers.base import Message, ModelInfo, ModelRequest, Notice, StreamEnd, Text, ToolSpec, Usage, Waiting
from tarsd.providers.ollama import ENOUGH, WINDOW, OllamaProvider, choose_window, models
from tarsd.providers.ollama_server import LineBuffer
from tarsd.providers.ollama_wire import ReplyDecoder, message_json
from tests.support.doubles.ollama import OllamaDouble, entry, overflow
from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Think
from tests.support.doubles.server import Reply
from tests.support.provider_contract import (
    LOOKUP,
    ProviderContract,
    always,
    ask,
    calls_in,
    collect,
    done_in,
    text_of,
    thought_in,
    until_error,
)


class TestOllama(ProviderContract):
    delivery: ClassVar[Literal["rendered", "native"]] = "rendered"
    too_long = Fail(400, overflow(9001, 4096))
    garbage = b'{"message": nonsense\n'

    def double(self) -> OllamaDouble:
        return OllamaDouble(delivery=self.delivery)

    def make(self, url: str, model: str, *, silence_s: float = 60.0) -> OllamaProvider:
        return OllamaProvider(model, host=url, silence_s=silence_s)

    async def models(self, url: str) -> list[ModelInfo]:
        return await models(host=url)


class TestOllamaWithCallsOnTheLastLine(TestOllama):
    delivery = "native"


def line(**more: Any) -> bytes:
    return json.dumps({"message": {"role": "assistant", "content": ""}, "done": False, **more}).encode() + b"\n"


# ------------------------------------------------------------------------------------------------ what is sent


async def test_whole_schemas_ids_and_the_window_are_sent() -> None:
    schema = {
        "type": "object",
        "properties": {
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "place": {"type": "object", "properties": {"town": {"type": "string"}, "any": True}, "required": ["town"]},
            "free": True,
        },
        "required": ["when"],
        "additionalProperties": False,
    }
    with OllamaDouble() as double:
        provider = OllamaProvider(double.model, host=double.url)
        await provider.prepare()
        double.enqueue(Call("plan", {"when": "tomorrow"}))
        request = ModelRequest("rules", (Message("user", "plan it"),), tools=(ToolSpec("plan", "Plans.", schema),))
        events = await collect(provider, request)
        (call,), done = calls_in(events), done_in(events)
        assert done is not None
        answers = (Message("assistant", "", (call,), raw=done.raw), Message("tool", "", call_id=call.id, name="plan"))
        await collect(
            provider, ModelRequest("rules", (*request.messages, *answers), tools=request.tools, max_tokens=99)
        )
        await provider.close()
    first, second = double.requests
    sent = first["tools"][0]["function"]["parameters"]
    assert sent["properties"]["when"] == schema["properties"]["when"]  # type: ignore[index]
    assert sent["properties"]["place"]["properties"] == {"town": {"type": "string"}, "any": {}}
    assert sent["properties"]["free"] == {}, "the server cannot read `true` there"
    assert first["options"] == {"num_ctx": WINDOW, "num_predict": 2048}
    assert first["truncate"] is False and "shift" not in first and "think" not in first
    assert second["messages"][-2]["tool_calls"] == [
        {"id": call.id, "function": {"index": 0, "name": "plan", "arguments": {"when": "tomorrow"}}}
    ]
    assert second["messages"][-1] == {"role": "tool", "tool_name": "plan", "tool_call_id": call.id, "content": ""}
    assert second["options"] == {"num_ctx": WINDOW, "num_predict": 99}
    assert len(double.loads) == 1, "the model was loaded once"


@pytest.mark.parametrize(
    ("version", "sent"),
    [("0.29.9", True), ("0.30.0", False), ("0.30.0-rc1", False), ("0.33.0", False), ("1.0.0", False), ("dev", False)],
)
async def test_the_flag_that_makes_newer_servers_load_anew_is_sent_to_older_ones_alone(
    version: str, sent: bool
) -> None:
    with OllamaDouble(version=version) as double:
        provider = OllamaProvider(double.model, host=double.url)
        await collect(provider, ask("hello"))
        await provider.close()
        assert ("shift" in double.requests[0]) is sent


async def test_a_key_of_the_environment_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "sk-cloud")
    with OllamaDouble() as double:
        provider = OllamaProvider(double.model, host=double.url)
        await collect(provider, ask("hello"))
        await provider.close()
    assert all("authorization" not in call.headers for call in double.calls)


async def test_a_redirect_is_not_followed() -> None:
    with OllamaDouble() as double, OllamaDouble() as other:
        provider = OllamaProvider(double.model, host=double.url)
        await provider.prepare()
        always(double, Reply({}, 307, {"location": other.url + "/api/chat"}))
        await until_error(provider, ask("hello"))
        await provider.close()
    assert not other.calls


# ------------------------------------------------------------------------------------------------ what is read


async def test_calls_on_lines_of_both_kinds_are_read_and_get_ids() -> None:
    call = {"function": {"name": "lookup", "arguments": {"town": "Oslo"}}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    with OllamaDouble() as double:
        double.enqueue(Raw(line(message=message) + b"\n\r\n" + line(message=message, done=True, done_reason="stop")))
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask("both?", tools=(LOOKUP,)))
        await provider.close()
    first, second = calls_in(events)
    assert first.id and second.id and first.id != second.id
    assert done_in(events) is not None


@pytest.mark.parametrize(
    ("call", "arguments", "problem"),
    [
        ({"function": {"name": "lookup", "arguments": '{"town": "Oslo"}'}}, {"town": "Oslo"}, False),
        ({"function": {"name": "lookup", "arguments": None}}, {}, False),
        ({"function": {"name": "lookup"}}, {}, False),
        ({"function": {"name": "lookup", "arguments": "{town"}}, {}, True),
        ({"function": {"name": "lookup", "arguments": ["Oslo"]}}, {}, True),
        ({"function": {"arguments": {}}}, {}, True),
        ("lookup", {}, True),
    ],
)
async def test_odd_calls_are_told_and_not_fatal(call: object, arguments: dict[str, Any], problem: bool) -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    with OllamaDouble() as double:
        double.enqueue(Raw(line(message=message, done=True)))
        provider = OllamaProvider(double.model, host=double.url)
        (read,) = calls_in(await collect(provider, ask("what?", tools=(LOOKUP,))))
        await provider.close()
    assert dict(read.arguments) == arguments and bool(read.problem) is problem


async def test_reasoning_between_tags_is_kept_apart_and_not_sent_again() -> None:
    with OllamaDouble() as double:
        double.inline = True
        double.enqueue(Think("they mean Otto"), Say("One moment."), Call("lookup", {"town": "Oslo"}))
        provider = OllamaProvider(double.model, host=double.url)
        request = ask("where?", tools=(LOOKUP,))
        events = await collect(provider, request)
        done = done_in(events)
        assert done is not None
        said = Message("assistant", text_of(events), tuple(calls_in(events)), raw=done.raw)
        await collect(provider, ModelRequest("", (*request.messages, said, Message("tool", "x", name="lookup"))))
        await provider.close()
    assert (thought_in(events), text_of(events)) == ("they mean Otto", "One moment.")
    assert "they mean Otto" not in json.dumps(double.requests[1])


async def test_a_model_that_reasons_is_asked_to_and_gets_room_for_it() -> None:
    with OllamaDouble(capabilities=("completion", "thinking")) as double:
        double.enqueue(Think("hm"), Say("Yes: </think> closes it."))
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask("is it?", tools=(LOOKUP,)))
        assert provider.tools is False
        await provider.close()
    (sent,) = double.requests
    assert sent["think"] is True and "tools" not in sent
    assert sent["options"]["num_predict"] > 2048
    assert (thought_in(events), text_of(events)) == ("hm", "Yes: </think> closes it.")


async def test_a_reply_that_was_cut_says_so_and_counts_may_be_missing() -> None:
    with OllamaDouble() as double:
        double.enqueue(Raw(line(message={"content": "half"}) + line(done=True, done_reason="length")))
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask("all of it?"))
        await provider.close()
    assert events[-1] == StreamEnd("length") and not any(isinstance(event, Usage) for event in events)


async def test_letters_that_other_readers_take_for_line_ends_are_none() -> None:
    text = "a\u0085b\u2028c\x0bd\x1ce"
    whole = json.dumps({"message": {"content": text}, "done": True}, ensure_ascii=False).encode()
    with OllamaDouble() as double:
        double.enqueue(Raw(b"\n \n" + whole + b"\n"))
        provider = OllamaProvider(double.model, host=double.url)
        assert text_of(await collect(provider, ask("odd?"))) == text
        await provider.close()


async def test_half_a_letter_does_no_harm() -> None:
    with OllamaDouble() as double:
        double.enqueue(Raw(b'{"message": {"content": "a \\ud83d b \\ud83e\\udda6"}}\n'))
        provider = OllamaProvider(double.model, host=double.url)
        assert text_of(await collect(provider, ask("odd?"))) == "a \ufffd b 🦦"
        await provider.close()


async def test_half_a_last_line_is_an_answer_that_was_cut() -> None:
    with OllamaDouble() as double:
        double.enqueue(Raw(line(message={"content": "half"}) + b'{"message": {"con'), Cut())
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask("whole?"))
        await provider.close()
    assert text_of(events) == "half" and done_in(events) is None


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsd.providers.ollama_server.LINE_BYTES", 100)
    lines = LineBuffer()
    with pytest.raises(AnswerCut):
        for _ in range(20):
            assert not list(lines.feed(b"x" * 10))


# ------------------------------------------------------------------------------------------------ the window


@pytest.mark.parametrize(
    ("context", "trained", "there", "window"),
    [
        (0, 131_072, (), WINDOW),
        (0, 8192, (), 8192),
        (0, 0, (), WINDOW),
        (32_768, 131_072, (ENOUGH,), 32_768),
        (2048, 131_072, (65_536,), 2048),
        (1_000_000, 131_072, (), 131_072),
        (0, 131_072, (0, 4096), WINDOW),
        (0, 131_072, (2048, 32_768), 32_768),
        (0, 131_072, (24_576, 32_768), 24_576),
        (0, 8192, (32_768,), 8192),
    ],
)
def test_the_window_is_chosen(context: int, trained: int, there: tuple[int, ...], window: int) -> None:
    assert choose_window(context, trained, there) == window


@pytest.mark.parametrize(
    ("double", "context", "window"),
    [
        (OllamaDouble(context=8192), 0, 8192),
        (OllamaDouble(num_ctx=24_576, loaded={"gemma3:4b": 32_768}), 0, 24_576),
        (OllamaDouble(loaded={"gemma3:4b": 32_768}), 0, 32_768),
        (OllamaDouble(loaded={"gemma3:4b": 4096}), 0, WINDOW),
        (OllamaDouble(loaded={"other:4b": 32_768}), 0, WINDOW),
        (OllamaDouble(num_ctx=24_576), 12_000, 12_000),
    ],
)
async def test_the_window_stays_the_same_for_a_model(double: OllamaDouble, context: int, window: int) -> None:
    with double:
        provider = OllamaProvider(double.model, host=double.url, context=context)
        await provider.prepare()
        assert provider.window == window
        await collect(provider, ask("one"))
        double.loaded[double.model] = 4096  # somebody else has loaded it in between
        await provider.close()
        await provider.prepare()
        await collect(provider, ask("two"))
        assert [request["options"]["num_ctx"] for request in double.requests] == [window, window]
        await provider.close()


async def test_a_name_without_a_tag_is_found_among_the_loaded_ones() -> None:
    with OllamaDouble(model="gemma3:latest", loaded={"Gemma3:latest": WINDOW}) as double:
        provider = OllamaProvider("gemma3", host=double.url)
        events = await collect(provider, ask("hello"))
        await provider.close()
    assert not any(isinstance(event, Waiting) for event in events)


async def test_a_model_that_is_not_loaded_is_waited_for_in_words() -> None:
    with OllamaDouble() as double:
        provider = OllamaProvider(double.model, host=double.url)
        first, *_ = await collect(provider, ask("hello"))
        assert isinstance(first, Waiting) and "gemma3:4b is being loaded" in first.text
        assert not any(isinstance(event, Waiting) for event in await collect(provider, ask("again")))
        await provider.close()


async def test_a_model_that_is_loaded_with_too_little_room_is_waited_for_too() -> None:
    with OllamaDouble(loaded={"gemma3:4b": 4096}) as double:
        provider = OllamaProvider(double.model, host=double.url)
        first, *_ = await collect(provider, ask("hello"))
        assert isinstance(first, Waiting) and "again" in first.text
        await provider.close()


@pytest.mark.parametrize(("digest", "loading"), [("dgemma3:4b", False), ("another", True), ("", True)])
async def test_weights_that_are_loaded_under_another_name_need_no_loading(digest: str, loading: bool) -> None:
    others = [entry("mine:latest", digest=digest)]
    with OllamaDouble(loaded={"mine:latest": WINDOW}, others=others) as double:
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask("hello"))
        await provider.close()
    waiting = [event.text for event in events if isinstance(event, Waiting)]
    assert ["being loaded" in text for text in waiting] == ([True] if loading else [])


async def test_a_question_behind_another_one_says_what_it_waits_for() -> None:
    with OllamaDouble(loaded={"gemma3:4b": WINDOW}) as double:
        double.enqueue(Say("slow"))
        provider = OllamaProvider(double.model, host=double.url)
        async with contextlib.aclosing(provider.stream(ask("one"))) as first:
            assert await anext(first) == Text("slow")
            second = [event.text for event in await collect(provider, ask("two")) if isinstance(event, Waiting)]
        third = [event for event in await collect(provider, ask("three")) if isinstance(event, Waiting)]
        await provider.close()
    assert second == ["gemma3:4b is busy with another question; this one may have to wait …"]
    assert third == [], "the first was left in the middle, and is no more in the way"


LONG = "The harbour master writes the tides of every day into the book that lies at the quay. " * 200


async def test_what_fits_is_read_whole_and_nothing_is_said() -> None:
    with OllamaDouble(cuts=True) as double:
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask(LONG, "yes", "and?", system="MARKER"))
        await provider.close()
    assert double.prompts[0].startswith("MARKER")
    assert not any(isinstance(event, Notice) for event in events)


@pytest.mark.parametrize("ignores", [512, 2048, 3500])
async def test_a_server_that_reads_only_the_end_is_told_of(ignores: int) -> None:
    with OllamaDouble(cuts=True, ignores=ignores) as double:
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask(LONG, system="MARKER"))
        await provider.close()
    assert "MARKER" not in double.prompts[0]
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert "left out" in notice.text and isinstance(events[-1], StreamEnd)


async def test_a_prompt_over_the_window_that_is_halved_is_told_of() -> None:
    with OllamaDouble(cuts=True) as double:
        double.enqueue(Raw(line(done=True, prompt_eval_count=WINDOW // 2 + 2)))
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask(LONG * 4))
        await provider.close()
    assert any(isinstance(event, Notice) for event in events)


async def test_servers_that_do_not_count_what_they_had_read_before_are_not_accused() -> None:
    with OllamaDouble(version="0.29.4") as double:
        double.enqueue(Raw(line(done=True, prompt_eval_count=20)))
        provider = OllamaProvider(double.model, host=double.url)
        events = await collect(provider, ask(LONG))
        await provider.close()
    assert not any(isinstance(event, Notice) for event in events)


async def test_a_prompt_that_does_not_fit_is_refused_with_its_size() -> None:
    with OllamaDouble(context=2048) as double:
        provider = OllamaProvider(double.model, host=double.url)
        _, error = await until_error(provider, ask(LONG))
        await provider.close()
    assert isinstance(error, ContextTooLong) and "2,048" in error.message
    assert not double.prompts


# ------------------------------------------------------------------------------------------------ what goes wrong


async def test_a_model_that_was_never_pulled_is_told_with_the_command() -> None:
    with OllamaDouble() as double:
        provider = OllamaProvider("qwen3:8b", host=double.url)
        with pytest.raises(ChatModelMissing) as caught:
            await provider.prepare()
        await provider.close()
    assert caught.value.hint == "Run `ollama pull qwen3:8b`."


async def test_an_embedding_model_is_no_chat_model() -> None:
    with OllamaDouble(capabilities=("embedding",)) as double:
        provider = OllamaProvider(double.model, host=double.url)
        with pytest.raises(ProviderRefused, match="used as the chat model"):
            await provider.prepare()
        await provider.close()


async def test_a_refusal_without_a_word_is_explained() -> None:
    with OllamaDouble() as double:
        provider = OllamaProvider(double.model, host=double.url)
        await provider.prepare()
        always(double, Reply(status=403, stream=[b""]))
        _, error = await until_error(provider, ask("hello"))
        await provider.close()
    assert isinstance(error, ProviderRefused) and "127.0.0.1" in error.hint


@pytest.mark.parametrize("ability", ["tools", "thinking"])
async def test_an_ability_that_a_model_turns_out_not_to_have_is_not_asked_for_again(ability: str) -> None:
    with OllamaDouble(capabilities=("completion", "tools", "thinking")) as double:
        double.enqueue(Fail(400, f'"gemma3:4b" does not support {ability}'))
        provider = OllamaProvider(double.model, host=double.url)
        first = await collect(provider, ask("hello", tools=(LOOKUP,)))
        again = await collect(provider, ask("hello", tools=(LOOKUP,)))
        await provider.close()
    assert done_in(first) is not None and done_in(again) is not None
    assert [sum(isinstance(event, Notice) for event in events) for events in (first, again)] == [ability == "tools", 0]
    key = {"tools": "tools", "thinking": "think"}[ability]
    assert [key in request for request in double.requests] == [True, False, False]


async def test_a_model_without_tools_and_reasoning_after_all_is_asked_without_both() -> None:
    with OllamaDouble(capabilities=("completion", "tools", "thinking")) as double:
        double.enqueue(Fail(400, '"m" does not support thinking'))
        double.enqueue(Fail(400, '"m" does not support tools'))
        provider = OllamaProvider(double.model, host=double.url)
        assert done_in(await collect(provider, ask("hello", tools=(LOOKUP,)))) is not None
        await provider.close()
    assert not {"tools", "think"} & set(double.requests[-1])


async def test_a_model_that_refuses_without_tools_too_is_not_asked_for_ever() -> None:
    with OllamaDouble(capabilities=("completion", "tools")) as double:
        double.enqueue(Fail(400, '"m" does not support tools'))
        double.enqueue(Fail(400, '"m" does not support tools'))
        provider = OllamaProvider(double.model, host=double.url)
        _, error = await until_error(provider, ask("hello", tools=(LOOKUP,)))
        await provider.close()
    assert isinstance(error, ProviderRefused) and len(double.requests) == 2


@pytest.mark.parametrize(
    ("fail", "kind", "words"),
    [
        (Fail(400, "the prompt is longer than the context length currently available"), ContextTooLong, ""),
        (Fail(404, 'model "m" not found, try pulling it first'), ChatModelMissing, "ollama pull"),
        (Fail(500, "model requires more system memory (9.1 GiB) than there is"), ProviderError, "chat.context"),
        (Fail(500, "model runner has unexpectedly stopped"), ProviderError, "unexpectedly stopped"),
        (Fail(400, '"m" does not support chat'), ProviderRefused, "chat.model"),
        (Fail(403, "ollama cloud is disabled: remote model is unavailable"), ProviderRefused, "OLLAMA_NO_CLOUD"),
        (Fail(500, 'returned invalid tool call arguments for "x": {secret'), ProviderError, "Ask again"),
    ],
)
async def test_errors_say_what_to_do(fail: Fail, kind: type[ProviderError], words: str) -> None:
    for before in ((), (Say("half "),)):
        with OllamaDouble() as double:
            double.enqueue(*before, fail)
            provider = OllamaProvider(double.model, host=double.url)
            _, error = await until_error(provider, ask("hello"))
            await provider.close()
        if before and fail.status == 404:
            continue
        assert type(error) is kind and words in error.message + error.hint
        assert "secret" not in error.message


def test_a_host_that_is_none_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ConfigError):
        OllamaProvider("m", host="http://:99999")


# ------------------------------------------------------------------------------------------------ which models


async def test_a_model_that_runs_elsewhere_is_not_local() -> None:
    with OllamaDouble(model="gpt-oss:120b", remote="https://ollama.com:443") as double:
        provider = OllamaProvider(double.model, host=double.url)
        await provider.prepare()
        assert provider.local is False and provider.window == 131_072
        assert not any(isinstance(event, Waiting) for event in await collect(provider, ask("hello")))
        await provider.close()
    assert OllamaProvider("gpt-oss:120b-cloud", host="http://127.0.0.1:11434").local is False
    assert OllamaProvider("gemma3:4b", host="http://192.168.1.5:11434").local is False
    assert OllamaProvider("gemma3:4b", host="localhost").local is True


async def test_chat_models_are_listed_the_newest_first() -> None:
    others = (
        entry("embeddinggemma:latest", capabilities=("embedding",)),
        entry("nomic-embed-text:latest", capabilities=None),
        entry("newer:1b", capabilities=("completion",), modified="2026-11-01T12:00:00Z", context=8192),
        entry("big:cloud", remote_host="https://ollama.com:443", modified="2026-01-01T12:00:00Z"),
        entry("old:1b", capabilities=None, modified="2025-01-01T12:00:00Z"),
    )
    with OllamaDouble(others=others) as double:
        listed = await models(host=double.url)
    assert [one.id for one in listed] == ["ollama:newer:1b", "ollama:gemma3:4b", "ollama:big:cloud", "ollama:old:1b"]
    assert [one.local for one in listed] == [True, True, False, True]
    assert [one.tools for one in listed] == [False, True, True, None]
    assert listed[0].context == 8192


def test_what_we_do_not_know_of_a_call_or_message_goes_back_as_it_came() -> None:
    answer = ReplyDecoder()
    call = {"id": "a", "function": {"index": 0, "name": "t", "arguments": {"x": 1}}, "signature": "c2ln"}
    answer.read({"message": {"role": "assistant", "content": "", "tool_calls": [call, 3], "more": [1]}, "done": False})
    answer.read({"message": {"role": "assistant", "content": ""}, "done": True})
    back = message_json(Message("assistant", "", raw=answer.done("stop").raw))
    assert back["more"] == [1] and back["tool_calls"][0] == call
    assert set(back["tool_calls"][1]) == {"id", "function"}
