"""One method per route, named as in `protocol.ROUTES`."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from aiohttp import web

from tarsd import protocol
from tarsd.app import Application
from tarsd.errors import TarsdError
from tarsd.protocol import Event, encode, error_json, query_number
from tarsd.search.query import check_filters

HEARTBEAT = web.AppKey("heartbeat", float)
LEFT_S = 5.0
"""A reader whose connection broke has so long to come back."""
LOOK_S = 0.25

Json = dict[str, Any]


def json_reply(value: object, status: int = 200) -> web.Response:
    """A JSON reply with a newline at its end, for terminals."""
    return web.Response(body=encode(value) + b"\n", status=status, content_type="application/json", charset="utf-8")


class Routes:
    """The handlers; they hold nothing but what they ask."""

    def __init__(self, app: Application, left_s: float = LEFT_S) -> None:
        self._app = app
        self._left_s = left_s
        self._watched: set[asyncio.Task[None]] = set()

    # -------------------------------------------------------------------------------------------- the daemon

    async def hello(self, request: web.Request) -> web.StreamResponse:
        return json_reply(self._app.hello())

    async def status(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.status))

    async def models(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.models())

    async def usage(self, request: web.Request) -> web.StreamResponse:
        month, conversation = (request.query.get(name, "") for name in ("month", "conversation"))
        return json_reply(await self._app.thread(self._app.assistant.spending.report, month, conversation))

    async def prompts(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.assistant.prompts.listing))

    async def add_prompt(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.PromptAddRequest.read(await _body(request))
        return json_reply(await self._app.assistant.prompts.add(wanted.name))

    async def shutdown(self, request: web.Request) -> web.StreamResponse:
        self._app.shutdown()
        return json_reply({"stopping": True})

    async def reindex(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.ReindexRequest.read(await _body(request))
        return await _stream(request, self._app.reindex(wanted))

    async def check(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.CheckRequest.read(await _body(request))
        return await _stream(request, self._app.check(wanted))

    async def vectors(self, request: web.Request) -> web.StreamResponse:
        return await _stream(request, self._app.vectors())

    async def add_vectors(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.VectorsRequest.read(await _body(request))
        return json_reply(await self._app.thread(self._app.add_vectors, wanted))

    async def plain_index(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.ReindexRequest.read(await _body(request))
        last: Json = {}
        async with contextlib.aclosing(self._app.reindex(wanted)) as steps:
            async for step in steps:
                last = step
        return json_reply({key: value for key, value in last.items() if key != "type"})

    # -------------------------------------------------------------------------------------------- search

    async def search(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.SearchRequest.read(await _body(request))
        check_filters(wanted.query)
        return json_reply(await self._app.thread(self._app.search, wanted))

    async def related(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.RelatedRequest.read(await _body(request))
        return json_reply(await self._app.thread(self._app.related, wanted))

    async def query(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.query, protocol.QueryRequest.read(await _body(request))))

    async def tasks(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.tasks, protocol.TasksRequest.read(await _body(request))))

    async def digest(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.digest, protocol.DigestRequest.read(await _body(request))))

    async def why(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.WhyRequest.read(await _body(request))
        check_filters(wanted.query)
        return json_reply(await self._app.thread(self._app.why, wanted))

    async def notes(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.thread(self._app.notes, dict(request.query)))

    async def note(self, request: web.Request) -> web.StreamResponse:
        path, audience = request.match_info["path"], protocol.read_audience(request.query)
        return json_reply(await self._app.thread(self._app.note, path, audience))

    # -------------------------------------------------------------------------------------------- turns

    async def start_turn(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.TurnRequest.read(await _body(request))
        turn = await self._app.chat.start(wanted)
        if wanted.stop_when_left:
            watch = asyncio.create_task(self._stop_when_left(turn), name=f"watch {turn}")
            self._watched.add(watch)
            watch.add_done_callback(self._watched.discard)
        return json_reply({"turn": turn}, 202)

    async def _stop_when_left(self, id: str) -> None:
        with contextlib.suppress(TarsdError, ReferenceError):  # it was deleted meanwhile, or the daemon ends
            if await (await self._app.chat.turn(id)).left(self._left_s, min(LOOK_S, self._left_s)):
                await self._app.chat.stop(id)

    async def turn_events(self, request: web.Request) -> web.StreamResponse:
        after = query_number(request.query.get("after"), "after", 0, 10**15)
        wait = query_number(request.query.get("wait"), "wait", 0, protocol.MAX_WAIT_S)
        turn = await self._app.chat.turn(request.match_info["turn"])
        if "wait" not in request.query:
            return await _stream(request, _as_json(turn.follow(after)))
        events: list[Event] = turn.events[after:]
        if wait and not events:
            with contextlib.suppress(TimeoutError):
                events = await asyncio.wait_for(turn.wait(after), wait)
        ended = turn.ended and after + len(events) >= len(turn.events)
        return json_reply({"events": [event.as_json() for event in events], "ended": ended})

    async def stop_turn(self, request: web.Request) -> web.StreamResponse:
        turn = await self._app.chat.stop(request.match_info["turn"])
        return json_reply({"turn": turn.id, "stopped": bool(turn.events[-1].data.get("stopped"))})

    async def approve(self, request: web.Request) -> web.StreamResponse:
        answer = protocol.Approval.read(await _body(request))
        await self._app.chat.approve(request.match_info["turn"], request.match_info["call"], answer)
        return json_reply({"allow": answer.allow})

    async def plain_chat(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.ChatRequest.read(await _body(request))
        # whoever posts here sees nothing but the reply, and cannot be asked
        question = protocol.TurnRequest(wanted.conversation, wanted.message, str(uuid.uuid4()), approvals=False)
        turn = await self._app.chat.turn(await self._app.chat.start(question))
        seen = 0
        while not turn.ended:
            with contextlib.suppress(TimeoutError):
                seen += len(await asyncio.wait_for(turn.wait(seen), LOOK_S))
            if has_left(request):
                await self._app.chat.stop(turn.id)
        last = turn.events[-1].data
        if "error" in last:
            error = TarsdError(str(last["error"].get("message")), str(last["error"].get("hint")))
            return json_reply({"error": last["error"], "reply": last.get("text", "")}, error.status)
        notices = [f"({notice})" for notice in last.get("notices", [])]
        return json_reply(
            {
                "reply": "\n\n".join([str(last["text"]), *notices]),
                "sources": last["citations"],
                "conversation_id": wanted.conversation,
                "turn": turn.id,
            }
        )

    # -------------------------------------------------------------------------------------------- writes and memory

    async def claim_write(self, request: web.Request) -> web.StreamResponse:
        return json_reply(self._app.assistant.claim(request.match_info["write"]))

    async def report_write(self, request: web.Request) -> web.StreamResponse:
        report = protocol.WriteReport.read(await _body(request))
        return json_reply(self._app.assistant.report(request.match_info["write"], report))

    async def undo_write(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.undo(request.match_info["write"]))

    async def change_task(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.TaskChangeRequest.read(await _body(request))
        return json_reply(await self._app.assistant.change_task(wanted))

    async def memory(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.memory())

    async def remember(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.RememberRequest.read(await _body(request))
        return json_reply(await self._app.assistant.remember(wanted))

    async def forget(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.forget(protocol.ForgetRequest.read(await _body(request)).line))

    async def undo_memory(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.undo_memory())

    async def feedback(self, request: web.Request) -> web.StreamResponse:
        wanted = protocol.FeedbackRequest.read(await _body(request))
        return json_reply(await self._app.assistant.feedback(wanted))

    async def review(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.review())

    async def apply_review(self, request: web.Request) -> web.StreamResponse:
        decisions = protocol.ReviewDecisions.read(await _body(request))
        return json_reply(await self._app.assistant.apply_review(decisions))

    # -------------------------------------------------------------------------------------------- conversations

    async def close_conversation(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.close_conversation(request.match_info["conversation"]))

    async def save_conversation(self, request: web.Request) -> web.StreamResponse:
        return json_reply(await self._app.assistant.save_conversation(request.match_info["conversation"]))

    async def conversations(self, request: web.Request) -> web.StreamResponse:
        found = await self._app.thread(self._app.chat.sessions.summaries)
        return json_reply({"conversations": [summary.as_json() for summary in found]})

    async def conversation(self, request: web.Request) -> web.StreamResponse:
        found = await self._app.chat.conversation(request.match_info["conversation"])
        return json_reply(found.as_json())

    async def rename_conversation(self, request: web.Request) -> web.StreamResponse:
        title = protocol.RenameRequest.read(await _body(request)).title.strip()
        rename = self._app.chat.sessions.rename
        return json_reply((await self._app.thread(rename, request.match_info["conversation"], title)).as_json())

    async def delete_conversation(self, request: web.Request) -> web.StreamResponse:
        await self._app.chat.delete(request.match_info["conversation"])
        return json_reply({"deleted": request.match_info["conversation"]})


# ------------------------------------------------------------------------------------------------ bodies and streams


async def _body(request: web.Request) -> Mapping[str, Any]:
    return protocol.decode(await request.read())


async def _as_json(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Json, None]:
    async with contextlib.aclosing(events):
        async for event in events:
            yield event.as_json()


def has_left(request: web.Request) -> bool:
    """Whether the connection that a request came on is closed."""
    return request.transport is None or request.transport.is_closing()


async def _is_done(step: asyncio.Future[Json], request: web.Request) -> bool:
    """Waits as long as a heartbeat takes for the next line. Raises `ConnectionError` when nobody reads any more."""
    left = request.app[HEARTBEAT]
    while left > 0:
        done, _ = await asyncio.wait({step}, timeout=min(LOOK_S, left))
        if done:
            return True
        if has_left(request):
            raise ConnectionResetError
        left -= LOOK_S
    return False


async def _stream(request: web.Request, source: AsyncGenerator[Json, None]) -> web.StreamResponse:
    """NDJSON with a heartbeat while nothing happens and an end line; a reader may go away."""
    step: asyncio.Future[Json] = asyncio.ensure_future(anext(source))
    try:
        await asyncio.wait({step}, timeout=0.05)
        if step.done() and isinstance(error := step.exception(), TarsdError):
            raise error  # before the first line there is still a status to tell it with
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        try:
            await response.prepare(request)
            while True:
                if not await _is_done(step, request):
                    await response.write(b'{"type":"heartbeat"}\n')
                    continue
                try:
                    line = step.result()
                except StopAsyncIteration:
                    break
                except TarsdError as error:
                    await response.write(encode({"type": "error", **error_json(error)}) + b"\n")
                    break
                await response.write(encode(line) + b"\n")
                step = asyncio.ensure_future(anext(source))
            await response.write(b'{"type":"end"}\n')
            await response.write_eof()
        except ConnectionError:
            pass
        return response
    finally:
        step.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await step
        await source.aclose()
