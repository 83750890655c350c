"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, llama.cpp, Ollama, OpenRouter."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AliasPath, BaseModel, Field, ValidationError

from kace.models.base import Finish, RateLimited, Reply, Request, Transient, Usage
from kace.models.remote import Remote
from kace.redact import one_line

DEFAULT_URL, KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
FINISH_REASONS = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "content_filter": Finish.FILTERED}

T = TypeVar("T", bound=BaseModel)
TokenCount = Annotated[int, Field(ge=0, le=10**9)]


class OpenAIModel(Remote):
    """A model behind an OpenAI-compatible server."""

    SDK, CLIENT, PATH = "openai", "AsyncOpenAI", "/chat/completions"
    URL, KEY = DEFAULT_URL, KEY
    KEY_FIX = f"export {KEY}=..., or point --base-url at your own server, or try: kace demo"
    URL_HINT = "which mostly ends in /v1"
    OPTIONAL = ("max_tokens", "seed", "temperature")  # the first has a newer name; the others are left out

    def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, object]:
        sampling = request.sampling
        optional = {"seed": sampling.seed, "temperature": sampling.temperature}
        return {
            "model": self._model,
            "messages": [{"role": m.role.value, "content": m.content} for m in request.messages],
            "max_completion_tokens" if "max_tokens" in left_out else "max_tokens": sampling.max_tokens,
            **{key: value for key, value in optional.items() if key not in left_out},
        }

    def _read(self, body: bytes, seconds: float) -> Reply:
        return read_completion(body, seconds)


class _Usage(BaseModel):
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None
    cached: TokenCount | None = Field(None, validation_alias=AliasPath("prompt_tokens_details", "cached_tokens"))


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = []
    usage: object = None
    error: str | None = Field(None, validation_alias=AliasPath("error", "message"))
    error_code: int | str | None = Field(None, validation_alias=AliasPath("error", "code"))


def read_completion(body: bytes, seconds: float) -> Reply:
    """The first choice of a completion. Raises `Transient` for a body that holds none."""
    completion = parsed(_Completion, body)
    choice = completion.choices[0] if completion.choices else None
    if choice is None or choice.finish_reason == "error":
        code = completion.error_code
        raise inner_error(completion.error or code, limited=str(code) == "429", lacking="choices")
    refusal = choice.message.refusal
    # A refusal is paid for like any reply, so it comes back as one: its tokens are counted, and it is kept.
    finish = Finish.FILTERED if refusal else FINISH_REASONS.get(choice.finish_reason or "", Finish.STOP)
    return Reply(choice.message.content or refusal or "", finish, read_usage(completion.usage), seconds)


def read_usage(raw: object) -> Usage:
    """The tokens that a completion counts."""
    try:
        usage = _Usage.model_validate(raw)
    except ValidationError:  # absent or nonsense: no reason to lose a reply that was paid for
        return Usage()
    return Usage(usage.prompt_tokens or 0, usage.cached or 0, usage.completion_tokens or 0)


def parsed(kind: type[T], body: bytes) -> T:
    """A body as what it should be; raises `Transient` where it is not."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise Transient(one_line(f"unreadable reply: {where}: {first['msg']}")) from None


def inner_error(said: object, *, limited: bool, lacking: str) -> RateLimited | Transient:
    """The fault of a provider behind a router or gateway, which reports it inside a 200."""
    if said is None:
        return Transient(f"unreadable reply: no {lacking}")
    line = one_line(f"error in the reply: {said}")
    return RateLimited(line) if limited else Transient(line)
