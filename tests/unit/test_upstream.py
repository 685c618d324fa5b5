"""What the errors of servers mean, in every form that they come in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarsd.upstream import fault

QUOTA = "You exceeded your current quota, please check your plan and billing details."


def google(message: str, code: int = 429, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}


@pytest.mark.parametrize(
    "wrap", [list, tuple, lambda body: body[0], json.dumps, lambda body: json.dumps(body).encode()]
)
@pytest.mark.parametrize("code", [0, 429])
def test_an_error_in_a_list_is_read(wrap: Any, code: int) -> None:
    body = wrap([google("Resource has been exhausted.", 429, DELAY)])
    told = fault(code, list(body) if isinstance(body, tuple) else body)
    assert (told.kind, told.status, told.text, told.wait_s) == ("busy", 429, "Resource has been exhausted.", 31)


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("Please retry in 31 s.", 31),
        ("Please retry in 31.5s.", 31.5),
        ("Please try again in 1m30s.", 90),
        ("Try again in 250ms", 0.25),
        ("Retry after 7 seconds", 7),
        ("Please wait 12 seconds", 12),
        ("Please wait for the page", None),
        ("retry in a moment", None),
    ],
)
def test_a_wait_in_the_words_is_one(text: str, wait_s: float | None) -> None:
    assert fault(429, {"error": {"message": text}}).wait_s == wait_s


@pytest.mark.parametrize("details", [None, "odd", [None, 7], [{"retryDelay": None}], [{"retryDelay": "soon"}]])
def test_odd_details_are_no_wait(details: object) -> None:
    assert fault(429, {"error": {"message": "slow down", "details": details}}).wait_s is None


def test_a_quota_with_a_wait_is_busy_and_without_is_credit() -> None:
    assert fault(429, google(QUOTA, 429, DELAY)).kind == "busy"
    assert fault(429, google(f"{QUOTA} Please retry in 31.2s.")).kind == "busy"
    assert fault(429, google(QUOTA), {"retry-after": "5"}).kind == "busy"
    assert fault(429, google(QUOTA)).kind == "credit"
    assert fault(429, {"error": {"message": QUOTA, "code": "insufficient_quota"}}).kind == "credit"


@pytest.mark.parametrize(
    "message",
    ["API key not valid. Please pass a valid API key.", "Invalid API key provided", "API key expired. Renew it."],
)
def test_a_key_that_is_not_valid_is_told_whatever_the_status(message: str) -> None:
    for status in (400, 401):
        assert fault(status, [google(message, status)]).kind == "key"


@pytest.mark.parametrize("message", ["The key 'x' of the arguments is missing", "Invalid value for a parameter"])
def test_other_faults_of_a_request_are_not_the_key(message: str) -> None:
    assert fault(400, [google(message, 400)]).kind == "refused"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (503, "Loading model", "loading"),
        (503, "The model is still loading", "loading"),
        (503, "Service unavailable", "busy"),
        (500, "error loading model", "failed"),
        (404, "No models loaded", "missing"),
        (403, "ollama cloud is disabled", "no cloud"),
        (403, "ollama cloud is disabled: remote model details are unavailable", "no cloud"),
        (403, "Forbidden", "denied"),
    ],
)
def test_loading_is_told_from_busy_and_broken(status: int, message: str, kind: str) -> None:
    assert fault(status, {"error": {"message": message}}).kind == kind


@pytest.mark.parametrize(
    ("told", "when"),
    [("9", "a moment"), ("60", "a moment"), ("61", "2 min"), ("7200", "120 min"), ("99999", "28 h")],
)
def test_a_long_wait_is_named(told: str, when: str) -> None:
    error = fault(429, {"error": {"message": "Too many"}}, {"retry-after": told}).chat_error("it", "m", {})
    assert error.hint == f"Ask again in {when}, or set chat.fallback."
