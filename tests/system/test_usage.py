"""What models cost, over the real socket: two kinds of servers, stops, failures, the ceiling, a restart."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

from tarsd.client import Client
from tarsd.errors import ClientError
from tests.conftest import Daemon
from tests.support.conversation import Talk
from tests.support.doubles.anthropic import AnthropicDouble
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Cut, Say, Think
from tests.support.stub import Run

SETTINGS = """
[openai]
base_url = "{url}/v1"
[usage]
currency = "€"
monthly_ceiling = {ceiling}
[usage.prices."anthropic:claude-sonnet-5-5"]
input = 3000
output = 15000
cache_read = 300
cache_write = 3750
[usage.prices."openai:big-cloud"]
input = 100000
output = 0
"""


def test_what_is_used_is_counted_priced_and_bounded(
    daemon: Callable[..., Daemon], home: Path, vault: Path, run: Run
) -> None:
    with AnthropicDouble() as claude, OpenAIDouble(model="big-cloud") as big:
        # a server that only passes its work on counts as one elsewhere
        talk = Talk(claude, daemon, home, vault, settings=SETTINGS.format(url=big.url, ceiling=1000))
        client = talk.client
        claude.enqueue(Think("hm"), Call("memory_search", {"query": "Carrow Slip"}))
        claude.enqueue(Say("The wedge holds the ramp [1]."))
        events = talk.whole(talk.ask("what is a quorl?"))
        rounds = [event for event in events if event["type"] == "usage"]
        assert [(one["model"], one["local"], one["estimated"]) for one in rounds] == [
            ("anthropic:claude-sonnet-5-5", False, False)
        ] * 2
        assert rounds[0]["cache_write_tokens"] and rounds[1]["cached_tokens"]
        total = client.get("/v1/usage?conversation=c")["conversation"]
        for name in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"):
            assert total[name] == sum(one[name] for one in rounds)
        plain = total["input_tokens"] - total["cached_tokens"] - total["cache_write_tokens"]
        cost = (
            plain * 3 + total["cached_tokens"] * 0.3 + total["cache_write_tokens"] * 3.75 + total["output_tokens"] * 15
        )
        assert abs(total["cost"] - cost / 1000) < 1e-5
        assert events[-1]["usage"].endswith(" €") and events[-1]["month"].endswith(" of 1,000.00 €")

        # one that is stopped, and one that breaks off, have been read all the same
        claude.enqueue(Say("one "), Say("two", pause=600))
        stopped = talk.ask("count")
        next(event for event in talk.follow(stopped) if event["type"] == "token")
        client.post(f"/v1/turns/{stopped}/stop")
        claude.enqueue(Say("half"), Cut())
        for turn, last in ((stopped, "done"), (talk.ask("and now?"), "failed")):
            *_, used, end = talk.whole(turn)
            assert (used["type"], used["estimated"], end["type"]) == ("usage", True, last)
            assert used["input_tokens"] > 100 and end["usage"].startswith("About ")
        assert client.get("/v1/usage")["total"]["requests"] == 4

        # a summary is paid for, too, and a conversation that is deleted was
        before = client.get("/v1/usage")["total"]
        client.post("/v1/conversations/c/close")
        talk.daemon.wait(lambda status: len(claude.requests) == 5 and status["usage"]["tokens"] > 0)
        talk.daemon.wait(lambda status: client.get("/v1/usage?conversation=c")["conversation"]["requests"] == 5)
        client.request("DELETE", "/v1/conversations/c")
        spent = client.get("/v1/usage")
        assert spent["total"]["cost"] > before["cost"]
        kept = "".join(file.read_text() for file in (talk.daemon.config.paths.usage).iterdir())
        assert "quorl" not in kept and '"c"' not in kept

        # killed, and started with another model: it goes on from there, for one month has one ceiling
        ceiling = spent["total"]["cost"] + 1.0
        text = (home / "config.toml").read_text().replace("monthly_ceiling = 1000", f"monthly_ceiling = {ceiling}")
        (home / "config.toml").write_text(text)
        talk.daemon.env |= {"TARSD_CHAT": "openai:big-cloud", **big.env()}
        talk.daemon.restart(signal.SIGKILL)
        assert client.get("/v1/usage")["total"] == spent["total"]
        big.enqueue(Call("memory_search", {"query": "Carrow Slip"}))
        *events, end = talk.whole(talk.ask("once more?", conversation="d"))
        (used,) = [event for event in events if event["type"] == "usage"]
        assert (used["model"], used["input_tokens"], used["cached_tokens"]) == ("openai:big-cloud", 12, 4)
        assert len(big.requests) == 1, "it is looked at before each round"
        assert (end["type"], end["error"]["code"]) == ("failed", "ceiling_reached")
        for ask in (lambda: talk.whole(talk.ask("again?", conversation="e"))[-1]["error"], lambda: _review(client)):
            error = ask()
            assert error["code"] == "ceiling_reached" and error["message"].endswith("was spent this month.")
            assert "usage.monthly_ceiling" in error["hint"]
        assert len(big.requests) == 1

        # without a model all goes on, and says what was spent
        assert client.post("/v1/search", {"query": "quorl"})["hits"]
        shown = talk.whole(talk.ask("/usage", conversation="d"))[-1]["text"]
        assert "| This conversation | 12 | 5 | 1.20 € |" in shown and "`openai:big-cloud`" in shown
        code, out, _ = run("usage")
        assert code == 0 and "openai:big-cloud" in out and "This month: about " in out
        assert json.loads(run("usage", "--json")[1])["total"]["requests"] == 6
        assert "This month: about " in run("status")[1]
        text = (home / "config.toml").read_text().replace("[chat]\n", '[chat]\nfallback = "extractive"\n')
        (home / "config.toml").write_text(text)
        status = talk.daemon.restart()
        assert status["chat"]["problem"]["code"] == "ceiling_reached"
        quoted = talk.whole(talk.ask("what is a quorl?", conversation="f"))[-1]
        assert quoted["citations"] and "ceiling" in quoted["notices"][0]


def _review(client: Client) -> dict[str, str]:
    client.post("/v1/memory", {"kind": "noticed", "text": "Likes tea"})
    try:
        client.post("/v1/review")
    except ClientError as error:
        return {"code": error.code, "message": error.message, "hint": error.hint}
    raise AssertionError("it was made")
