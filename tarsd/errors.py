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
└── ClientError            seen by the clients of the socket
    └── NoDaemon           nobody listens
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_OK, EXIT_NOTHING, EXIT_USAGE, EXIT_NO_DAEMON, EXIT_REFUSED, EXIT_CONFIG = 0, 1, 2, 3, 4, 78


class TarsdError(Exception):
    """Base of all errors a person can meet: a sentence, a hint, a code for machines.

    `code` and `status` are the wire code and the HTTP status; `exit_code` is what the CLI ends with.
    """

    code = "error"
    status = 500
    exit_code = EXIT_REFUSED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_json(self) -> dict[str, str]:
        """The body of an error reply: code, message, hint."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class ConfigError(TarsdError):
    """The configuration has faults; `problems` holds one sentence each, with line and key."""

    code = "bad_config"
    exit_code = EXIT_CONFIG

    def __init__(self, problems: Sequence[str], hint: str = "") -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = tuple(problems)


class BadRequest(TarsdError):
    """A request that cannot be meant; `field` names what is wrong with it."""

    code = "bad_request"
    status = 422
    exit_code = EXIT_USAGE

    def __init__(self, message: str, hint: str = "", *, field: str = "") -> None:
        super().__init__(message, hint)
        self.field = field

    def as_json(self) -> dict[str, str]:
        """As the base, with the field where one is to blame."""
        return super().as_json() | ({"field": self.field} if self.field else {})


class PathRefused(BadRequest):
    """A path that is absolute, leaves the vault, or is no path at all."""

    code = "path_refused"
    status = 400


class NotFound(TarsdError):
    """There is no such thing."""

    code = "not_found"
    status = 404
    exit_code = 1


class Conflict(TarsdError):
    """The thing changed since it was read, or is already settled or taken."""

    code = "conflict"
    status = 409


class Refused(TarsdError):
    """Not allowed, or not without a yes that nobody is there to give."""

    code = "refused"
    status = 403


class VaultUnavailable(TarsdError):
    """The vault cannot be read now; the index is kept as it is."""

    code = "vault_unavailable"
    status = 503


class StoreError(TarsdError):
    """The index cannot be used."""

    code = "index_unavailable"
    status = 503


class DiskFull(StoreError):
    """No space is left where the index lies."""

    code = "disk_full"


class EmbedError(TarsdError):
    """An embedding model did not deliver.

    `permanent` means that trying the same text again is useless; `retry_after` is the server's wish in seconds.
    """

    code = "embedding_failed"
    status = 503

    def __init__(
        self, message: str, hint: str = "", *, permanent: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.permanent = permanent
        self.retry_after = retry_after


class EmbedderUnreachable(EmbedError):
    """The embedding server does not answer."""

    code = "embedder_unreachable"


class ModelMissing(EmbedError):
    """The server answers, and has no such model."""

    code = "model_missing"


class RateLimited(EmbedError):
    """The server asks us to wait."""

    code = "rate_limited"


class ProviderError(TarsdError):
    """A chat model did not deliver; `retry_after` is the server's wish in seconds."""

    code = "model_failed"
    status = 502

    def __init__(self, message: str, hint: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class ProviderUnreachable(ProviderError):
    """No server answers, or it broke the connection before it had said anything."""

    code = "model_unreachable"


class ProviderBusy(ProviderError):
    """Overloaded, or a rate limit."""

    code = "model_busy"
    status = 503


class ProviderRefused(ProviderError):
    """No key, a wrong key, no credit, or a request that is not taken."""

    code = "model_refused"


class ChatModelMissing(ProviderError):
    """The server answers, and has no such model."""

    code = "model_missing"


class ContextTooLong(ProviderError):
    """The request is more than the model can read, though all that may be left out was left out."""

    code = "context_too_long"
    status = 413


class AnswerCut(ProviderError):
    """The stream of a chat model ended before the model was finished."""

    code = "answer_cut"


class ToolError(TarsdError):
    """A tool failed; its message goes to the model, and the turn goes on."""

    code = "tool_failed"


class ClientError(TarsdError):
    """What a client of the socket meets; `code` is the daemon's own when it answered with one."""

    def __init__(self, message: str, hint: str = "", *, code: str = "error", exit_code: int = EXIT_REFUSED) -> None:
        super().__init__(message, hint)
        self.code = code
        self.exit_code = exit_code


class NoDaemon(ClientError):
    """Nobody listens on the socket."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint, code="no_daemon", exit_code=EXIT_NO_DAEMON)
