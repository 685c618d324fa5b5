"""A server that tells everybody what it was sent: the headers and the whole request, in the body of an error."""

from __future__ import annotations

import json

from tests.support.doubles.server import Call, Double, Reply


class EchoDouble(Double):
    """`with EchoDouble() as server`: any request is answered with `status` and all of itself; paths in `fine` are not.

    `inside`: the error comes in a reply of status 200. `stray`: after it, once more as headers of the reply.
    """

    def __init__(self, port: int = 0, *, status: int = 400, inside: bool = False) -> None:
        super().__init__(port)
        self.status = status
        self.inside = inside
        self.fine: dict[str, Reply] = {}

    def reply(self, call: Call) -> Reply:
        """As `Double.reply`."""
        if call.path in self.fine:
            return self.fine[call.path]
        words = f"cannot take {json.dumps(dict(call.headers))} {json.dumps(call.body)} {json.dumps(dict(call.query))}"
        body = {"error": {"message": words, "type": "invalid_request_error", "code": self.status}, "reason": words}
        headers = {"retry-after": call.headers.get("authorization", ""), "x-echo": words[:200]}
        return Reply(body, 200 if self.inside else self.status, headers)
