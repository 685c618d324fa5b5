"""What can go wrong, as one tree. Every error says what happened and what to do; nobody else formats errors.

TarsdError
├── ConfigError            the configuration has faults (all of them at once)
├── BadRequest             a request that cannot be meant: 422, names the field
│   └── PathRefused        a path that leaves the vault or is no path
├── NotFound               no such note, turn, conversation or route
├── Conflict               the thing changed, or is taken
├── Refused                not allowed without a yes, or not at all
├── VaultUnavailable       the vault folder is missing, empty all of a sudden, or not readable
├── StoreError             the index cannot be used
│   └── DiskFull           no space left for the index
├── EmbedError             an embedding model did not deliver
│   ├── EmbedderUnreachable
│   ├── ModelMissing
│   └── RateLimited
├── ProviderError          a chat model did not deliver
│   ├── ProviderUnreachable, ProviderBusy, ProviderRefused
│   └── ChatModelMissing, ContextTooLong, AnswerCut, CeilingReached
├── ToolError              a tool failed; its message goes to the model
└── ClientError            seen by the clients of the socket
    └── NoDaemon           nobody listens
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_OK, EXIT_NOTHING, EXIT_USAGE, EXIT_NO_DAEMON, EXIT_REFUSED, EXIT_CONFIG = 0, 1, 2, 3, 4, 78


class TarsdError(Exception):
    """Base of all errors a person can meet: a sentence, a hint, a code for machines.

    `code` and `status` are the wire code and the HTTP status; `exit_code` is what the CLI ends with. A class names in
    its head those that differ from its base.
    """

    code = "error"
    status = 500
    exit_code = EXIT_REFUSED

    def __init_subclass__(cls, *, code: str = "", status: int = 0, exit_code: int | None = None) -> None:
        cls.code = code or cls.code
        cls.status = status or cls.status
        cls.exit_code = cls.exit_code if exit_code is None else exit_code

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_json(self) -> dict[str, str]:
        """The body of an error reply: code, message, hint."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class ConfigError(TarsdError, code="bad_config", exit_code=EXIT_CONFIG):
    """The configuration has faults; `problems` holds one sentence each, with line and key."""

    def __init__(self, problems: Sequence[str], hint: str = "") -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = tuple(problems)


class BadRequest(TarsdError, code="bad_request", status=422, exit_code=EXIT_USAGE):
    """An invalid request; `field` names the invalid part."""

    def __init__(self, message: str, hint: str = "", *, field: str = "") -> None:
        super().__init__(message, hint)
        self.field = field

    def as_json(self) -> dict[str, str]:
        """As the base, with the field where one is to blame."""
        return super().as_json() | ({"field": self.field} if self.field else {})


class PathRefused(BadRequest, code="path_refused", status=400):
    """A path that is absolute, leaves the vault, or is no path at all."""


class NotFound(TarsdError, code="not_found", status=404, exit_code=EXIT_NOTHING):
    """There is no such thing."""


class Conflict(TarsdError, code="conflict", status=409):
    """The thing changed since it was read, or is already settled or taken."""


class Refused(TarsdError, code="refused", status=403):
    """Not allowed, or it needs an approval and nobody is there to give it."""


class VaultUnavailable(TarsdError, code="vault_unavailable", status=503):
    """The vault cannot be read now; the index is kept as it is."""


class StoreError(TarsdError, code="index_unavailable", status=503):
    """The index cannot be used."""


class DiskFull(StoreError, code="disk_full"):
    """No space is left where the index lies."""


class EmbedError(TarsdError, code="embedding_failed", status=503):
    """An embedding model did not deliver.

    `permanent` means that trying the same text again is useless; `retry_after` is the server's wish in seconds.
    """

    def __init__(
        self, message: str, hint: str = "", *, permanent: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.permanent = permanent
        self.retry_after = retry_after


class EmbedderUnreachable(EmbedError, code="embedder_unreachable"):
    """The embedding server does not answer."""


class ModelMissing(EmbedError, code="model_missing"):
    """The server answers, and has no such model."""


class RateLimited(EmbedError, code="rate_limited"):
    """The server asks us to wait."""


class ProviderError(TarsdError, code="model_failed", status=502):
    """A chat model did not deliver; `retry_after` is the server's wish in seconds.

    `said` is all that a server said against the request, as in `upstream.Fault`: to look for patterns in, and for
    nothing else.
    """

    said: str = ""

    def __init__(self, message: str, hint: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class ProviderUnreachable(ProviderError, code="model_unreachable"):
    """No server answers, or it broke the connection before it had said anything."""


class ProviderBusy(ProviderError, code="model_busy", status=503):
    """Overloaded, or a rate limit."""


class ProviderRefused(ProviderError, code="model_refused"):
    """No key, a wrong key, no credit, or a request that is not taken."""


class ChatModelMissing(ProviderError, code="model_missing"):
    """The server answers, and has no such model."""


class ContextTooLong(ProviderError, code="context_too_long", status=413):
    """The request is more than the model can read, though all that may be left out was left out.

    `asked` and `window` are its tokens and those that the model reads, 0 where the server does not tell.
    """

    asked = window = 0


class AnswerCut(ProviderError, code="answer_cut"):
    """The stream of a chat model ended before the model was finished."""


class CeilingReached(ProviderError, code="ceiling_reached", status=402):
    """What the person set as the most that models may cost in a month is spent."""


class ToolError(TarsdError, code="tool_failed"):
    """A tool failed; its message goes to the model, and the turn goes on."""


class ClientError(TarsdError):
    """What a client of the socket meets; `code` is the daemon's own when it answered with one."""

    line: str = ""
    """The remembered line that the daemon asks about, if it does."""

    def __init__(self, message: str, hint: str = "", *, code: str = "error", exit_code: int = EXIT_REFUSED) -> None:
        super().__init__(message, hint)
        self.code = code
        self.exit_code = exit_code


class NoDaemon(ClientError):
    """Nobody listens on the socket."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint, code="no_daemon", exit_code=EXIT_NO_DAEMON)
