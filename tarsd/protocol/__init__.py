"""The words on the socket: routes, requests, events and their JSON, version 1.

A request is read once, strictly, into a frozen struct: a wrong type or size is a `BadRequest` naming the field, an
unknown field is ignored. Replies are plain JSON made by `encode`, which no value can break.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarsd.protocol.codec import decode, encode, error_json, query_number
from tarsd.protocol.events import Event, read_event
from tarsd.protocol.limits import (
    HEARTBEAT_S,
    LAST_EVENTS,
    MAX_BODY,
    MAX_ID,
    MAX_NUMBERS,
    MAX_PATH,
    MAX_ROWS,
    MAX_WAIT_S,
    PROTOCOL,
    SLASH_COMMANDS,
    Audience,
    EventType,
    Mode,
    Writer,
)
from tarsd.protocol.requests import (
    Approval,
    ChatRequest,
    CheckRequest,
    Decision,
    DigestRequest,
    FeedbackRequest,
    ForgetRequest,
    PromptAddRequest,
    QueryRequest,
    ReindexRequest,
    RelatedRequest,
    RememberRequest,
    RenameRequest,
    RequestBody,
    ReviewDecisions,
    SearchRequest,
    TaskChangeRequest,
    TasksRequest,
    TurnRequest,
    VectorsRequest,
    WhyRequest,
    WriteReport,
    read_audience,
)

__all__ = [
    "FEATURES", "HEARTBEAT_S", "LAST_EVENTS", "MAX_BODY", "MAX_ID", "MAX_NUMBERS", "MAX_PATH",
    "MAX_ROWS", "MAX_WAIT_S", "PROTOCOL", "ROUTES", "SLASH_COMMANDS", "Approval", "Audience", "ChatRequest",
    "CheckRequest", "Decision", "DigestRequest", "Event", "EventType", "FeedbackRequest", "ForgetRequest",
    "Mode", "PromptAddRequest", "QueryRequest", "ReindexRequest", "RelatedRequest", "RememberRequest", "RenameRequest",
    "RequestBody", "ReviewDecisions", "Route", "SearchRequest", "TaskChangeRequest", "TasksRequest", "TurnRequest",
    "VectorsRequest", "WhyRequest",
    "WriteReport", "Writer", "decode", "encode", "error_json", "query_number", "read_audience", "read_event",
]  # fmt: skip


class Route(NamedTuple):
    """One line of the socket's table of contents; `name` is the handler's name in `server`."""

    method: str
    path: str
    name: str


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/hello", "hello"),
    Route("GET", "/v1/status", "status"),
    Route("POST", "/v1/reindex", "reindex"),
    Route("POST", "/v1/check", "check"),
    Route("GET", "/v1/vectors", "vectors"),
    Route("POST", "/v1/vectors", "add_vectors"),
    Route("POST", "/v1/search", "search"),
    Route("POST", "/v1/related", "related"),
    Route("POST", "/v1/query", "query"),
    Route("POST", "/v1/tasks", "tasks"),
    Route("POST", "/v1/digest", "digest"),
    Route("POST", "/v1/why", "why"),
    Route("POST", "/v1/turns", "start_turn"),
    Route("GET", "/v1/turns/{turn}/events", "turn_events"),
    Route("POST", "/v1/turns/{turn}/stop", "stop_turn"),
    Route("POST", "/v1/turns/{turn}/approvals/{call}", "approve"),
    Route("POST", "/v1/writes/{write}/claim", "claim_write"),
    Route("POST", "/v1/writes/{write}", "report_write"),
    Route("POST", "/v1/writes/{write}/undo", "undo_write"),
    Route("POST", "/v1/tasks/change", "change_task"),
    Route("GET", "/v1/conversations", "conversations"),
    Route("GET", "/v1/conversations/{conversation}", "conversation"),
    Route("PATCH", "/v1/conversations/{conversation}", "rename_conversation"),
    Route("DELETE", "/v1/conversations/{conversation}", "delete_conversation"),
    Route("POST", "/v1/conversations/{conversation}/close", "close_conversation"),
    Route("POST", "/v1/conversations/{conversation}/save", "save_conversation"),
    Route("GET", "/v1/memory", "memory"),
    Route("POST", "/v1/memory", "remember"),
    Route("POST", "/v1/memory/forget", "forget"),
    Route("POST", "/v1/memory/undo", "undo_memory"),
    Route("POST", "/v1/feedback", "feedback"),
    Route("POST", "/v1/review", "review"),
    Route("POST", "/v1/review/apply", "apply_review"),
    Route("GET", "/v1/notes", "notes"),
    Route("GET", "/v1/notes/{path:.*}", "note"),
    Route("GET", "/v1/prompts", "prompts"),
    Route("POST", "/v1/prompts", "add_prompt"),
    Route("GET", "/v1/models", "models"),
    Route("GET", "/v1/usage", "usage"),
    Route("POST", "/v1/shutdown", "shutdown"),
    Route("POST", "/chat", "plain_chat"),
    Route("GET", "/conversations", "conversations"),
    Route("DELETE", "/conversations/{conversation}", "delete_conversation"),
    Route("POST", "/index", "plain_index"),
)

FEATURES: Final = (
    "search", "related", "why", "turns", "long-poll", "conversations", "notes", "approvals", "writes", "memory",
    "feedback", "review", "audience", "check", "vectors", "query", "prompts", "digest", "usage",
)  # fmt: skip
