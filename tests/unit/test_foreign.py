"""What servers say, before it is logged, shown or kept."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest

from tarsd import foreign

KEY = "sk-canary-Zx81QpLm77"
SENTENCE = "François owes José 500 € since the harbour party"
SENT = {"model": "llama3", "messages": [{"role": "user", "content": f"So: {SENTENCE}."}], "tools": [{"name": "t"}]}


@pytest.fixture(autouse=True)
def known() -> None:
    foreign.keep_secret(KEY)


@pytest.mark.report("https://github.com/intrafind/ihub-apps/issues/705")
@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        KEY.upper(),
        KEY[:12],
        KEY[-9:],
        f"Bearer {KEY}",
        json.dumps({"authorization": f"Bearer {KEY}"}),
        quote(KEY, safe="").replace("-", "%2D"),
        base64.b64encode(KEY.encode()).decode(),
        " ".join(KEY),
        KEY.replace("-", "\\u002d"),
        KEY.replace("-", "&#45;"),
    ],
)
def test_a_key_is_taken_out_however_a_server_spells_it(spelled: str) -> None:
    for text in (spelled, f"wrong key: {spelled}, try again", f"x {spelled}"):
        for said in (foreign.told(text), foreign.without_keys(text)):
            assert not any(piece in said for piece in (KEY, KEY.upper(), "canary", "Zx81", "QpLm77", spelled)), said


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghij0123456789",
        "got Authorization: Bearer aaaa-bbbb-cccc",
        "GET https://user:hunter2@host/v1",
        "?api_key=abc123def456&x=1",
        "token=ghp_0123456789abcdefghij",
        "password: hunter2",
        "run it with --api-key Xy12345",
        "Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==",
        "jwt eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0",
    ],
)
def test_what_looks_like_a_key_is_taken_out_whoever_s_it_is(text: str) -> None:
    shown = foreign.told(text)
    for secret in ("abcdefghij", "aaaa-bbbb", "hunter2", "abc123", "ghp_", "Xy12345", "dXNlcjp", "eyJ"):
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        "model 'nomic-embed-text-v1.5-GGUF' not found, try pulling it first",
        "max_tokens: 40960 is more than 8192",
        "basic authentication is needed",
        "the token limit is exceeded: 9001 of 4096",
        "invalid value for 'temperature'",
        "digest sha256:0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f is unknown",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert foreign.told(text, SENT) == text


@pytest.mark.parametrize(
    "echo",
    [
        SENTENCE,
        SENTENCE.upper(),
        SENTENCE[4:40],
        json.dumps(SENTENCE),
        json.dumps(json.dumps(SENTENCE)),
        quote(SENTENCE),
        SENTENCE.encode("ascii", "replace").decode(),
        SENTENCE.encode().decode("latin-1"),
        " | ".join(SENTENCE.split()),
        str(SENT["messages"]),
        repr(SENTENCE.split()),
    ],
)
def test_what_was_sent_is_taken_out_however_a_server_repeats_it(echo: str) -> None:
    for text in (f"400: cannot read {echo}", f"{echo}", f"'{echo}' is no prompt of 4096 tokens"):
        said = foreign.told(text, SENT)
        for word in ("owes", "OWES", "harbour", "HARBOUR", "party", "since"):
            assert word not in said, said
    assert foreign.told(f"cannot read {echo} (9001 tokens)", SENT).startswith("cannot read")


def test_scripts_without_spaces_and_single_words_in_quotes_are_found_too() -> None:
    sent = ["第二次世界大战的秘密会议记录", "Hydra is the name of the project"]
    assert foreign.told("无法处理 第二次世界大战的秘密 !", sent) == "无法处理 … !"
    for quoted in ('"Hydra"', "'hydra'", "`Hydra`", "“Hydra”", "«Hydra»"):
        assert foreign.told(f"unknown word {quoted} at 3", sent) == "unknown word … at 3"
    assert foreign.told("invalid {'loc': 1, 'input': ['anything at all']}", sent) == "invalid {'loc': 1,"
    assert foreign.told("bad [type=x, input_value='anything', input_type=str]") == "bad [type=x,"


def test_it_is_one_short_line() -> None:
    assert foreign.told("a\n\tb  c") == "a b c"
    assert len(foreign.told("word " * 5000)) == foreign.LONGEST + 1


@pytest.mark.parametrize("piece", ["x", "-a", "A1b", "sk", "token-", "://a", "--key", "'", "%41", "bearer "])
def test_a_long_line_takes_no_longer_than_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        begun = time.process_time()
        foreign.without_keys(text)
        return time.process_time() - begun

    assert any(seconds(40_000) < 20 * max(seconds(4_000), 0.001) for _ in range(3))
