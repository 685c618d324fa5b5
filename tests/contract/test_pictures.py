"""Pictures go to models that see, bare and bounded; to others goes what was read in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.errors import ProviderError
from tarsd.providers.anthropic import AnthropicProvider
from tarsd.providers.base import Message, ModelRequest, Notice, Picture
from tarsd.providers.ollama import OllamaProvider
from tarsd.providers.openai import OpenAIProvider
from tarsd.providers.openai_wire import tells_pictures
from tests.support.derived import Stage
from tests.support.doubles.anthropic import AnthropicDouble, model
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Fail
from tests.support.provider_contract import collect, text_of
from tests.unit.extract.test_bare import SECRET, picture

pil = pytest.importorskip("PIL.Image", reason="pictures are made with Pillow, of tarsd[ocr]")

GARDEN = "# Garden\n\nThe plan: ![[plan.png]] and ![the gate](../pics/old%20gate.jpg), ![](https://example.org/x.png)\n"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, {"House/Garden.md": GARDEN, "Ferry.md": "# Ferry\n\nIt leaves at 06:12.\n"})
    for path, kind in (
        ("House/plan.png", "PNG"),
        ("pics/old gate.jpg", "JPEG"),
        ("pics/sea.webp", "WEBP"),
        ("Private/face.jpg", "JPEG"),
    ):
        (stage.vault / path).parent.mkdir(exist_ok=True)
        (stage.vault / path).write_bytes(picture(kind))
    yield stage
    stage.stop()


def shown(stage: Stage) -> list[str]:
    """The names of the pictures that the last request has."""
    return [picture.name for picture in stage.model.requests[-1].messages[-1].pictures]


def notices(turn: Any) -> str:
    return " ".join(turn.notices)


async def test_attached_named_and_embedded_pictures_go_along(stage: Stage) -> None:
    stage.model.sees = True
    await stage.ask("What is this?", notes=("pics/sea.webp",))
    assert shown(stage) == ["sea.webp"]
    await stage.ask("What is on ![[sea.webp]], and on [[Private/face.jpg]]?")
    assert shown(stage) == ["sea.webp", "face.jpg"]
    await stage.ask("What is growing there?", notes=("House/Garden.md",))
    assert shown(stage) == ["plan.png", "old gate.jpg"]
    message = stage.model.requests[-1].messages[-1]
    assert all(SECRET not in one.data for one in message.pictures)
    assert "plan.png\nold gate.jpg" in message.text


async def test_no_more_go_along_than_the_settings_say(stage: Stage) -> None:
    stage.model.sees = True
    for number in range(6):
        (stage.vault / f"pics/{number}.png").write_bytes(picture("PNG"))
    turn = await stage.ask("Which is best?", notes=tuple(f"pics/{number}.png" for number in range(6)))
    assert shown(stage) == ["0.png", "1.png", "2.png", "3.png"]
    assert "2 more pictures were not sent" in notices(turn)


async def test_a_private_picture_stays_here(stage: Stage) -> None:
    (stage.vault / "Open.md").write_text("# Open\n\n![[face.jpg]]\n", encoding="utf-8")
    stage.index()
    stage.elsewhere().sees = True
    for message, notes in (("Who is this?", ("Private/face.jpg",)), ("And [[face.jpg]]?", ()), ("So?", ("Open.md",))):
        turn = await stage.ask(message, notes=notes)
        assert shown(stage) == []
        assert "private" in notices(turn)


async def test_what_was_said_of_a_picture_stays_here_once_that_is_private(stage: Stage) -> None:
    stage.model.sees = True
    stage.model.enqueue("A walled garden with a quince tree.")
    await stage.ask("What is this?", notes=("House/plan.png",))
    (stage.vault / "House/plan.png").rename(stage.vault / "Private/plan.png")
    model = stage.elsewhere()
    await stage.ask("please say that again")
    assert "quince" not in json.dumps([message.text for one in model.requests for message in one.messages])


async def test_what_is_no_picture_is_told_and_the_question_goes_on(stage: Stage) -> None:
    stage.model.sees = True
    (stage.vault / "pics/torn.png").write_bytes(picture("PNG")[:60])
    (stage.vault / "pics/large.jpg").write_bytes(picture("JPEG") + bytes(5_000_000))
    turn = await stage.ask("And these?", notes=("pics/torn.png", "pics/large.jpg", "pics/none.png"))
    assert shown(stage) == []
    for said in ("damaged", "larger than 5 MB", "There is no picture “pics/none.png”"):
        assert said in notices(turn)


async def test_a_model_that_does_not_see_gets_none(stage: Stage) -> None:
    turn = await stage.ask("What is this?", notes=("pics/sea.webp",))
    assert shown(stage) == []
    assert "does not look at pictures" in notices(turn)


# ------------------------------------------------------------------------------------------------ on the wire

SEEN = Picture("plan.png", "image/png", b"\x89PNG not really")
CODED = base64.b64encode(SEEN.data).decode()
ASKED = ModelRequest("Rules.", (Message("user", "What is this?", pictures=(SEEN,)),))


@pytest.mark.parametrize(("able", "sees"), [(("completion", "vision"), True), (("completion",), False), (None, False)])
async def test_ollama_is_asked_whether_a_model_sees(able: tuple[str, ...] | None, sees: bool) -> None:
    with OllamaDouble(capabilities=able) as double:
        provider = OllamaProvider(double.model, host=double.url)
        await provider.prepare()
        assert provider.sees is sees
        await collect(provider, ASKED)
        assert double.requests[-1]["messages"][-1] == {"role": "user", "content": "What is this?", "images": [CODED]}
        await provider.close()


@pytest.mark.parametrize("told", [True, False, None])
async def test_anthropic_is_asked_whether_a_model_sees(told: bool | None) -> None:
    with AnthropicDouble() as double:
        able = None if told is None else {"image_input": {"supported": told}}
        double.models = [model(double.model, capabilities=able)]
        provider = AnthropicProvider(double.model, base_url=double.url, key="k")
        await provider.prepare()
        assert provider.sees is (told is True)
        await collect(provider, ASKED)
        first, second = double.requests[-1]["messages"][-1]["content"]
        assert first == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": CODED}}
        assert second["text"] == "What is this?"
        await provider.close()


@pytest.mark.parametrize(
    ("entry", "sees"),
    [
        ({"architecture": {"input_modalities": ["text", "image"]}}, True),
        ({"architecture": {"input_modalities": ["text"]}}, False),
        ({"capabilities": {"vision": True, "function_calling": True}}, True),
        ({"capabilities": {"vision": False}}, False),
        ({"capabilities": ["completion", "multimodal"]}, True),
        ({"capabilities": ["completion"]}, False),
        ({"type": "vlm"}, True),
        ({"type": "llm"}, False),
        ({"id": "m", "object": "model"}, None),
        ({"capabilities": None, "architecture": "llama"}, None),
    ],
)
def test_servers_say_it_in_several_ways(entry: dict[str, Any], sees: bool | None) -> None:
    assert tells_pictures(entry) is sees


async def test_openai_gets_pictures_as_addresses_of_data() -> None:
    with OpenAIDouble() as double:
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key="k")
        await provider.prepare()
        assert provider.sees
        await collect(provider, ASKED)
        text, image = double.requests[-1]["messages"][-1]["content"]
        assert text == {"type": "text", "text": "What is this?"}
        assert image == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{CODED}"}}
        await provider.close()


@pytest.mark.parametrize(
    "fail",
    [
        Fail(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        Fail(400, "/models/text-only is not a multimodal model None"),
        Fail(404, "No endpoints found that support image input"),
        Fail(400, "Model does not support images. Please use a model that does."),
        Fail(422, "messages.1.content: Input should be a valid string"),
        Fail(400, "this model is missing data required for image input"),
    ],
    ids=["llama.cpp", "vLLM", "a router", "LM Studio", "a gateway", "Ollama"],
)
async def test_a_server_that_takes_no_pictures_is_asked_without_them(fail: Fail) -> None:
    with OpenAIDouble() as double:
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key="k")
        double.refuse = lambda body: fail if "image_url" in json.dumps(body) else None
        events = await collect(provider, ASKED)
        told = [event.text for event in events if isinstance(event, Notice)]
        assert text_of(events) == "ok" and len(told) == 1 and "cannot look at pictures" in told[0]
        assert not provider.sees
        await provider.close()


async def test_another_refusal_is_told_and_not_taken_for_that() -> None:
    with OpenAIDouble() as double:
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key="k")
        double.refuse = lambda body: Fail(400, "Invalid value for temperature")
        with pytest.raises(ProviderError):
            await collect(provider, ASKED)
        assert provider.sees
        await provider.close()
