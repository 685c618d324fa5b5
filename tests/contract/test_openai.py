"""OpenAI's chat format as its many servers speak it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tarsd.config.settings import ChatSettings
from tarsd.errors import (
    AnswerCut,
    ChatModelMissing,
    ContextTooLong,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
)
from tarsd.providers import make
from tarsd.providers.base import (
    Message,
    ModelInfo,
    ModelRequest,
    Notice,
    ProviderEvent,
    Usage,
    Waiting,
)
from tarsd.providers.openai import OpenAIProvider, models
from tarsd.providers.openai_wire import AssistantMessage
from tests.support.doubles.openai import OpenAIDouble, sse
from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Think
from tests.support.doubles.server import ABORT, Double, Reply
from tests.support.doubles.server import Call as HttpCall
from tests.support.provider_contract import (
    KEY,
    LOOKUP,
    ProviderContract,
    Silence,
    always,
    ask,
    calls_in,
    collect,
    dead_url,
    done_in,
    eventually,
    text_of,
    thought_in,
    until_error,
)


class TestOpenAI(ProviderContract):
    """The contract, spoken as llama.cpp does."""

    dialect = "llamacpp"
    too_long = Fail(
        400,
        "request (9001 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "exceed_context_size_error",
    )

    def double(self) -> OpenAIDouble:
        return OpenAIDouble(dialect=self.dialect)

    def make(self, url: str, model: str, *, silence_s: float = 60.0) -> OpenAIProvider:
        return OpenAIProvider(model, base_url=f"{url}/v1", key=KEY, silence_s=silence_s)

    async def models(self, url: str) -> list[ModelInfo]:
        return await models(base_url=f"{url}/v1", key=KEY)


class TestVllm(TestOpenAI):
    """The contract, spoken as vLLM does."""

    dialect = "vllm"
    too_long = Fail(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 9001 tokens in the messages.",
        "BadRequestError",
    )


class TestLmStudio(TestOpenAI):
    """The contract, spoken as LM Studio does."""

    dialect = "lmstudio"
    too_long = Fail(
        400,
        "Trying to keep the first 4104 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        "",
    )


@asynccontextmanager
async def server(
    dialect: str = "llamacpp", key: str | None = None
) -> AsyncIterator[tuple[OpenAIDouble, OpenAIProvider]]:
    """A stand-in and a provider for it."""
    with OpenAIDouble(dialect=dialect) as double:
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=key, silence_s=60, loading_s=0)
        yield double, provider
        await provider.close()


LOADS = [
    Fail(503, "Loading model", "unavailable_error"),
    Fail(500, "llm server loading model"),
    Fail(503, "Model m is currently loading"),
    Fail(503, "The model is being loaded, please wait"),
    Fail(429, "model is still loading"),
]


@pytest.mark.parametrize("fail", LOADS, ids=lambda fail: fail.message)
async def test_a_server_that_loads_its_model_is_waited_for(fail: Fail) -> None:
    with OpenAIDouble(dialect="llamacpp") as double:
        for _ in range(2):
            double.enqueue(replace(fail, headers={"retry-after-ms": "10"}))
        double.enqueue(Say("ready"))
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None, quiet_s=0.0)
        events = await collect(provider, ask("hello"))
        await provider.close()
    assert text_of(events) == "ready" and "loading" in next(e.text for e in events if isinstance(e, Waiting))


@pytest.mark.parametrize("fail", LOADS, ids=lambda fail: fail.message)
async def test_a_server_that_loads_for_ever_is_told_as_such(fail: Fail) -> None:
    with OpenAIDouble(dialect="llamacpp") as double:
        for _ in range(5):
            double.enqueue(replace(fail, headers={"retry-after-ms": "10"}))
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None, loading_s=0.03)
        _, error = await until_error(provider, ask("hello"))
        await provider.close()
    assert isinstance(error, ProviderBusy) and "is loading" in error.message


# ------------------------------------------------------------------------------------------------ streams


async def test_ollama_sends_whole_calls_and_ends_a_broken_stream_without_a_word() -> None:
    async with server("ollama") as (double, provider):
        double.enqueue(Think("hm"), Call("lookup", {"town": "Oslo"}), Call("lookup", {"town": "Bergen"}))
        events = await collect(provider, ask("both?", tools=(LOOKUP,)))
        assert [call.arguments["town"] for call in calls_in(events)] == ["Oslo", "Bergen"]
        assert thought_in(events) == "hm"
        double.enqueue(Say("half"), Fail(500, "out of memory"))
        assert done_in(await collect(provider, ask("whole?"))) is None


async def test_tokens_are_counted_with_those_from_the_cache() -> None:
    async with server() as (double, provider):
        events = await collect(provider, ask("hello"))
        assert Usage(12, 5, 4) in events
        assert double.requests[0]["stream_options"] == {"include_usage": True}


async def test_what_breaks_after_the_end_was_told_breaks_nothing() -> None:
    finish = sse({"choices": [{"index": 0, "delta": {"content": "all"}, "finish_reason": "stop"}]})
    async with server() as (double, provider):
        double.enqueue(Raw(finish), Say("", 0.0), Cut())
        assert done_in(await collect(provider, ask("hello"))) is not None
        always(double, Reply(stream=[finish, 0.2, ABORT], content_type="text/event-stream"))
        assert text_of(await collect(provider, ask("hello"))) == "all"


@pytest.mark.report("https://github.com/danny-avila/LibreChat/issues/4844")
@pytest.mark.parametrize("usage", [True, False], ids=["with a count", "without a count"])
@pytest.mark.parametrize("pings", [True, False], ids=["with pings", "silent"])
async def test_a_server_that_leaves_the_stream_open_after_the_end_is_not_waited_for(
    usage: bool, pings: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsd.providers.openai.REST_S", 0.2)
    over = threading.Event()

    def stream() -> Iterator[bytes]:
        yield sse({"choices": [{"index": 0, "delta": {"content": "all"}, "finish_reason": "stop"}]})
        if usage:
            yield sse({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}})
        while not over.wait(0.05):
            if pings:
                yield b": ping\n\n"

    async with server() as (double, provider):
        always(double, Reply(stream=stream(), content_type="text/event-stream"))
        try:
            async with asyncio.timeout(30):
                events = await collect(provider, ask("hello"))
        finally:
            over.set()
        assert text_of(events) == "all" and done_in(events) is not None
        assert any(isinstance(event, Usage) for event in events) == usage


async def test_a_local_server_that_takes_its_time_is_explained() -> None:
    async with server() as (double, _):
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None, quiet_s=0.0)
        held, answer = threading.Event(), double.reply
        setattr(double, "reply", lambda call: held.wait(30) and answer(call))  # noqa: B010
        events: list[ProviderEvent] = []
        async for event in provider.stream(ask("hello")):
            events.append(event)
            held.set()
        assert isinstance(events[0], Waiting) and double.url in events[0].text
        assert text_of(events) == "ok"
        await provider.close()


async def test_who_leaves_while_it_is_explained_closes_the_connection() -> None:
    silence = Silence()
    async with silence() as url:
        provider = OpenAIProvider("m", base_url=f"{url}/v1", key=None, quiet_s=0.2)
        stream = provider.stream(ask("hello"))
        assert isinstance(await anext(stream), Waiting)
        await eventually(lambda: silence.asked == 1)
        await stream.aclose()
        await eventually(lambda: silence.left == 1)
        await provider.close()


# ------------------------------------------------------------------------------------------------ requests


async def test_reasoning_goes_back_between_calls_under_its_own_name() -> None:
    async with server("vllm") as (double, provider):
        double.enqueue(Think("two steps"), Call("lookup", {"town": "Oslo"}))
        events = await collect(provider, ask("weather?", tools=(LOOKUP,)))
        (call,), done = calls_in(events), done_in(events)
        assert done is not None and isinstance(done.raw, AssistantMessage)
        messages = (
            Message("user", "weather?"),
            Message("assistant", "", calls=(call,), raw=done.raw),
            Message("tool", "broken", call_id=call.id, name="lookup", failed=True),
        )
        await collect(provider, ModelRequest("Rules.", messages, tools=(LOOKUP,)))
        system, user, said, answer = double.requests[1]["messages"]
    assert (system, user["role"]) == ({"role": "system", "content": "Rules."}, "user")
    assert said["reasoning"] == "two steps" and said["content"] is None
    assert said["tool_calls"][0]["id"] == answer["tool_call_id"] == call.id
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"town": "Oslo"}
    assert answer["content"] == "Error: broken"


async def test_the_raw_form_of_another_provider_is_not_sent() -> None:
    raw = {"role": "assistant", "content": [{"type": "thinking", "signature": "s"}]}
    messages = (Message("user", "a"), Message("assistant", "b", raw=raw), Message("user", "c"))
    async with server() as (double, provider):
        await collect(provider, ModelRequest("", messages))
        assert [one["content"] for one in double.requests[0]["messages"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "Unrecognized request argument supplied: max_tokens",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_tokens'), 'msg': 'Extra inputs are not permitted'}]",
    ],
)
async def test_the_other_name_of_the_limit_is_tried_once_and_kept(message: str) -> None:
    async with server() as (double, provider):
        double.refuse = lambda body: Fail(400, message, "invalid_request_error") if "max_tokens" in body else None
        assert text_of(await collect(provider, ask("hello"))) == "ok"
        assert text_of(await collect(provider, ask("again"))) == "ok"
        assert ["max_tokens" in body for body in double.requests] == [True, False, False]
        double.refuse = lambda body: Fail(400, message, "invalid_request_error")
        _, error = await until_error(provider, ask("more"))
        assert isinstance(error, ProviderRefused) and len(double.requests) == 5


async def test_a_limit_that_is_too_large_is_no_matter_of_its_name() -> None:
    async with server() as (double, provider):
        double.enqueue(Fail(400, "max_tokens must be at most 1024", "invalid_request_error"))
        _, error = await until_error(provider, ask("hello"))
        assert isinstance(error, ProviderRefused) and "1024" in error.message and len(double.requests) == 1


@pytest.mark.parametrize(
    "fail",
    [
        Fail(500, "tools param requires --jinja flag", "server_error"),
        Fail(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        Fail(400, "registry.ollama.ai/library/gemma:2b does not support tools", "invalid_request_error"),
        Fail(404, "No endpoints found that support tool use. Try disabling tools."),
        Fail(422, "Tool calling is not supported by this model"),
    ],
    ids=["llama.cpp", "vLLM", "Ollama", "a router", "another"],
)
async def test_a_server_that_takes_no_tools_is_asked_without_them(fail: Fail) -> None:
    async with server() as (double, provider):
        double.refuse = lambda body: fail if "tools" in body else None
        await provider.prepare()
        assert provider.tools
        events = await collect(provider, ask("hello", tools=(LOOKUP,)))
        notices = [event for event in events if isinstance(event, Notice)]
        assert text_of(events) == "ok" and len(notices) == 1 and "tools" in notices[0].text
        assert not provider.tools
        events = await collect(provider, ask("hello", tools=(LOOKUP,)))
        assert not any(isinstance(event, Notice) for event in events)
        assert ["tools" in body for body in double.requests] == [True, False, False]


async def test_a_server_that_cannot_count_is_not_asked_to() -> None:
    async with server() as (double, provider):
        refusal = Fail(400, "Unknown field: stream_options")
        double.refuse = lambda body: refusal if "stream_options" in body else None
        assert text_of(await collect(provider, ask("hello"))) == "ok"


async def test_several_things_are_left_out_one_after_the_other() -> None:
    def refuse(body: Mapping[str, Any]) -> Fail | None:
        if "stream_options" in body:
            return Fail(400, "stream_options is not allowed")
        if "tools" in body:
            return Fail(400, "tools are not supported")
        return Fail(400, "unknown argument max_tokens") if "max_tokens" in body else None

    async with server() as (double, provider):
        double.refuse = refuse
        assert text_of(await collect(provider, ask("hello", tools=(LOOKUP,)))) == "ok"
        assert len(double.requests) == 4


@pytest.mark.parametrize(("key", "sent"), [(None, "Bearer none"), ("", "Bearer none"), ("sk-1", "Bearer sk-1")])
async def test_only_the_key_it_was_given_is_sent(key: str | None, sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", dead_url())
    async with server(key=key) as (double, provider):
        await provider.prepare()
        await collect(provider, ask("hello"))
        assert {call.headers["authorization"] for call in double.calls} == {sent}
        assert "from-the-environment" not in json.dumps([dict(call.headers) for call in double.calls])


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        (Fail(429, "You exceeded your current quota, see billing.", "insufficient_quota"), ProviderRefused),
        (Fail(402, "Insufficient credits"), ProviderRefused),
        (Fail(503, "Loading model", "unavailable_error"), ProviderBusy),
        (Fail(529, "overloaded"), ProviderBusy),
        (Fail(502, "bad gateway"), ProviderUnreachable),
        (Fail(403, "not for you"), ProviderRefused),
        (Fail(400, "The model `gone` does not exist", "model_not_found"), ChatModelMissing),
        (Fail(400, "No models loaded. Please load a model in the developer page."), ChatModelMissing),
        (Fail(404, ""), ChatModelMissing),
        (Fail(413, "ModelRequest too large"), ContextTooLong),
        (Fail(400, "bad schema", "invalid_request_error"), ProviderRefused),
    ],
)
async def test_statuses_become_our_errors(fail: Fail, expected: type[ProviderError]) -> None:
    async with server() as (double, provider):
        double.enqueue(fail)
        _, error = await until_error(provider, ask("hello"))
        assert type(error) is expected and error.hint


async def test_what_a_gateway_says_in_place_of_an_answer_is_told() -> None:
    async with server() as (double, provider):
        always(double, Reply({"code": 1001, "message": "No balance left", "success": False}))
        _, error = await until_error(provider, ask("hello"))
        assert "No balance left" in error.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("Please try again in 1.5s.", 1.5), ("try again in 2m3s", 123), ("try again in 250ms", 0.25), ("soon", None)],
)
async def test_how_long_to_wait_may_stand_in_the_text(text: str, seconds: float | None) -> None:
    async with server() as (double, provider):
        double.enqueue(Fail(429, f"Rate limit reached. {text}", "requests"))
        _, error = await until_error(provider, ask("hello"))
        assert isinstance(error, ProviderBusy) and error.retry_after == seconds


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 500, "message": "CUDA out of memory", "type": "server_error"}},
        {"error": "CUDA out of memory"},
        {"object": "error", "message": "CUDA out of memory", "type": "InternalError", "code": 500},
        {"error": ["odd"]},
    ],
    ids=["object", "string", "at the top", "list"],
)
async def test_an_error_in_a_stream_of_any_shape_is_told(body: dict[str, Any]) -> None:
    async with server() as (double, provider):
        for before, expected in (((Say("half"),), AnswerCut), ((), ProviderError)):
            pieces = [sse({"choices": [{"index": 0, "delta": {"content": say.text}}]}) for say in before]
            always(double, Reply(stream=[*pieces, sse(body)], content_type="text/event-stream"))
            events, error = await until_error(provider, ask("hello"))
            assert type(error) is expected and text_of(events) == "".join(say.text for say in before)
            assert "memory" in error.message or "odd" in json.dumps(body)


async def test_an_overflow_told_in_the_stream_is_one() -> None:
    fault = b"event: error\n" + sse({"error": {"message": "The prompt exceeds the context length of 4096 tokens."}})
    async with server() as (double, provider):
        always(double, Reply(stream=[fault], content_type="text/event-stream"))
        _, error = await until_error(provider, ask("hello"))
        assert isinstance(error, ContextTooLong) and provider.window == 4096


@pytest.mark.parametrize("body", [{"error": {"message": "model crashed"}}, {"error": "model crashed"}])
async def test_an_error_with_a_good_status_is_told(body: dict[str, Any]) -> None:
    async with server() as (double, provider):
        always(double, Reply(body))
        _, error = await until_error(provider, ask("hello"))
        assert "model crashed" in error.message


async def test_a_server_that_does_not_stream_is_read_too() -> None:
    message = {"role": "assistant", "content": "all at once", "reasoning_content": "hm"}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    async with server() as (double, provider):
        always(double, Reply(reply))
        events = await collect(provider, ask("hello"))
        assert (thought_in(events), text_of(events)) == ("hm", "all at once") and done_in(events) is not None


async def test_an_empty_stream_is_no_answer_and_an_overflow_when_the_prompt_is_long() -> None:
    async with server() as (double, provider):
        always(double, Reply(stream=[b"data: [DONE]\n\n"], content_type="text/event-stream"))
        _, error = await until_error(provider, ask("hello"))
        assert isinstance(error, AnswerCut)
        _, error = await until_error(provider, ask("word " * 8000))
        assert isinstance(error, ContextTooLong)


async def test_the_size_told_in_an_overflow_is_kept() -> None:
    async with server() as (double, provider):
        await provider.prepare()
        assert provider.window == 8192
        double.enqueue(Fail(400, "request (9001 tokens) exceeds the available context size (2048 tokens)"))
        await until_error(provider, ask("hello"))
        await provider.prepare()
        assert provider.window == 2048


async def test_a_key_that_the_server_repeats_is_not_shown() -> None:
    async with server(key=KEY) as (double, provider):
        double.enqueue(Fail(400, f"the header Bearer {KEY} is odd"))
        _, error = await until_error(provider, ask("hello"))
        assert KEY not in error.message and "odd" in error.message


async def test_a_key_that_can_be_none_is_refused_here() -> None:
    async with server(key="schlüssel") as (double, provider):
        _, error = await until_error(provider, ask("hello"))
        assert isinstance(error, ProviderRefused) and double.calls == []


async def test_nothing_is_sent_to_where_a_server_points() -> None:
    with OpenAIDouble() as other:
        async with server() as (double, provider):
            target = f"{other.url}/v1/chat/completions"
            always(double, Reply({}, 307, {"location": target}))
            await until_error(provider, ask("a private question"))
            assert other.calls == []


# ------------------------------------------------------------------------------------------------ what is known


MODEL = {"id": "small-model", "object": "model"}


@pytest.mark.parametrize(
    ("entry", "native", "window"),
    [
        ({**MODEL, "owned_by": "llamacpp", "meta": {"n_ctx": 2048, "n_ctx_train": 40960}}, {}, 2048),
        (
            {**MODEL, "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}},
            {"/props": {"default_generation_settings": {"n_ctx": 4096}}},
            4096,
        ),
        ({**MODEL, "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}}, {}, 40960),
        ({**MODEL, "id": "anything", "owned_by": "llamacpp", "meta": {"n_ctx": 2048}}, {}, 2048),
        ({**MODEL, "owned_by": "vllm", "max_model_len": 16384}, {}, 16384),
        ({**MODEL, "context_length": 65536}, {}, 65536),
        (
            {**MODEL, "owned_by": "organization_owner"},
            {
                "/api/v1/models": {
                    "models": [
                        {"key": "other"},
                        {
                            "key": "small-model",
                            "max_context_length": 131072,
                            "loaded_instances": [{"id": "small-model", "config": {"context_length": 4096}}],
                        },
                    ]
                }
            },
            4096,
        ),
        (
            {**MODEL, "owned_by": "library"},
            {"/api/ps": {"models": [{"name": "small-model", "context_length": 4096}]}},
            4096,
        ),
        ({**MODEL, "owned_by": "library"}, {"/api/ps": {"models": []}}, 4096),
        (MODEL, {}, 8192),
        ({**MODEL, "meta": "odd", "max_model_len": "many", "context_length": True}, {}, 8192),
    ],
    ids=[
        "llama.cpp",
        "props",
        "trained",
        "any name",
        "vLLM",
        "a router",
        "LM Studio",
        "Ollama",
        "not loaded",
        "none",
        "odd",
    ],
)
async def test_the_context_is_found_where_the_server_tells_it(
    entry: dict[str, Any], native: dict[str, Any], window: int
) -> None:
    async with server() as (double, provider):
        double.listed, double.native = [entry], native
        await provider.prepare()
        assert provider.window == window
        asked, known = len(double.calls), window != 8192 and native != {"/api/ps": {"models": []}}
        await provider.prepare()
        assert len(double.calls) == asked or not known, "what is known is not asked again"


@pytest.mark.parametrize(
    ("named", "listed"),
    [
        ("smol", "smol:latest"),
        ("smol:latest", "smol"),
        ("Smol", "smol:latest"),
        ("hf.co/someone/smol", "hf.co/someone/smol:latest"),
        ("smol:135m", "smol:135m"),
    ],
)
async def test_ollama_lists_a_model_by_its_whole_name(named: str, listed: str) -> None:
    with OpenAIDouble(dialect="ollama", model=named) as double:
        double.listed = [{"id": "other:latest", "owned_by": "library"}, {"id": listed, "owned_by": "library"}]
        double.native = {"/api/ps": {"models": [{"name": "other:latest"}, {"name": listed, "context_length": 5000}]}}
        provider = OpenAIProvider(named, base_url=f"{double.url}/v1", key=None)
        await provider.prepare()
        await provider.close()
    assert provider.window == 5000


@pytest.mark.parametrize("listed", [None, [], [None], "odd"])
async def test_a_server_that_lists_nothing_can_be_asked_all_the_same(listed: Any) -> None:
    async with server() as (double, provider):
        double.listed = listed
        await provider.prepare()
        assert provider.window == 8192 and text_of(await collect(provider, ask("hello"))) == "ok"


@pytest.mark.parametrize(("context", "told", "window"), [(4000, 8192, 4000), (9000, 8192, 8192), (20_000, 0, 20_000)])
async def test_the_setting_bounds_the_window_and_stands_for_one_that_is_not_told(
    context: int, told: int, window: int
) -> None:
    with OpenAIDouble(dialect="llamacpp") as double:
        always(double, Reply({"data": [{"id": "m", "max_model_len": told}]}))
        settings = ChatSettings(openai_base_url=f"{double.url}/v1", context=context)
        provider = make("openai:m", settings)
        await provider.prepare()
        assert provider.window == window
        await provider.close()


async def test_a_server_without_a_list_is_asked_again_next_time() -> None:
    async with server() as (double, provider):
        answer = double.reply
        always(double, Reply({"error": {"message": "Loading model"}}, 503))
        await provider.prepare()
        assert provider.window == 8192
        setattr(double, "reply", answer)  # noqa: B010
        double.listed = [{**MODEL, "max_model_len": 1234}]
        await provider.prepare()
        assert provider.window == 1234


async def test_a_server_at_work_is_not_waited_for_to_tell_its_size() -> None:
    silence = Silence()
    async with silence() as url:
        provider = OpenAIProvider("m", base_url=f"{url}/v1", key=None, silence_s=0.5)
        await provider.prepare()
        assert provider.window == 8192
        await provider.close()


async def test_a_server_that_repeats_the_prompt_in_its_error_is_cut_short() -> None:
    async with server() as (double, provider):
        double.enqueue(Fail(400, "[{'type': 'missing', 'input': 'my secret question', 'msg': 'no'}]"))
        _, error = await until_error(provider, ask("my secret question"))
        assert "secret" not in error.message and "missing" in error.message


async def test_a_server_that_is_gone_is_told_and_forgotten() -> None:
    async with server() as (double, provider):
        double.listed = [{**MODEL, "max_model_len": 1234}]
        await provider.prepare()
        port = double.port
    await until_error(provider, ask("hello"))
    with pytest.raises(ProviderUnreachable):
        await provider.prepare()
    with OpenAIDouble(port) as double:
        double.listed = [{**MODEL, "max_model_len": 4321}]
        await provider.prepare()
        assert provider.window == 4321
    await provider.close()


async def test_openai_itself_is_not_asked_without_a_key() -> None:
    provider = OpenAIProvider("gpt-5", base_url="https://api.openai.com/v1", key=None)
    assert (provider.local, provider.window, provider.name) == (False, 128_000, "openai:gpt-5")
    for attempt in (provider.prepare(), models(base_url="https://api.openai.com/v1", key=None)):
        with pytest.raises(ProviderRefused) as caught:
            await attempt
        assert "tarsd key set openai" in caught.value.hint
    _, error = await until_error(provider, ask("hello"))
    assert isinstance(error, ProviderRefused)


@pytest.mark.parametrize(
    ("url", "model", "local"),
    [
        ("http://127.0.0.1:1234/v1", "m", True),
        ("http://localhost:8080/v1/", "m", True),
        ("http://[::1]:8080/v1", "m", True),
        ("http://192.168.1.7:8080/v1", "m", False),
        ("https://localhost.example.org/v1", "m", False),
        ("http://127.0.0.1:11434/v1", "big:120b-cloud", False),
        ("http://127.0.0.1:11434/v1", "big:cloud", False),
    ],
)
def test_local_is_what_stays_on_this_machine(url: str, model: str, local: bool) -> None:
    assert OpenAIProvider(model, base_url=url, key=None).local is local


def test_a_password_in_the_url_is_not_shown() -> None:
    provider = OpenAIProvider("m", base_url="http://ann:secret@127.0.0.1:1/v1", key=None)
    assert "secret" not in repr(provider)


async def test_a_password_in_the_url_stands_in_no_error() -> None:
    host = dead_url().removeprefix("http://")
    provider = OpenAIProvider("m", base_url=f"http://ann:secret@{host}/v1", key=None)
    _, error = await until_error(provider, ask("hello"))
    await provider.close()
    assert isinstance(error, ProviderUnreachable) and "secret" not in error.message and host in error.message


async def test_models_that_cannot_chat_are_not_listed() -> None:
    with OpenAIDouble() as double:
        double.listed = [
            {"id": "qwen", "meta": {"n_ctx_train": 40960}},
            {"id": "vicuna", "max_model_len": 8192},
            {"id": "text-embedding-3-small"},
            {"id": "bge", "capabilities": ["embedding"]},
            {"id": "whisper-1"},
            {"id": 7},
            {"id": "big:120b-cloud"},
        ]
        listed = await models(base_url=f"{double.url}/v1", key=None)
    assert listed == [
        ModelInfo("openai:qwen", True, 40960),
        ModelInfo("openai:vicuna", True, 8192),
        ModelInfo("openai:big:120b-cloud", False),
    ]


async def test_what_is_no_list_is_no_models() -> None:
    class Odd(Double):
        def reply(self, call: HttpCall) -> Reply:
            return Reply({"data": "none"})

    with Odd() as double:
        assert await models(base_url=f"{double.url}/v1", key=None) == []
        always(double, Reply(status=502, stream=[b"<html>"], content_type="text/html"))  # type: ignore[arg-type]
        with pytest.raises(ProviderError):
            await models(base_url=f"{double.url}/v1", key=None)
