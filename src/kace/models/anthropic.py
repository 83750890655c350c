"""Anthropic's Messages API through its own SDK, an extra: the system prompt is cached, and priced as such."""

from __future__ import annotations

from importlib.util import find_spec

from pydantic import AliasPath, BaseModel, Field, ValidationError

from kace.errors import UsageError
from kace.models.base import Finish, Reply, Request, Role, Usage
from kace.models.openai import TokenCount, inner_error, parsed
from kace.models.remote import Remote

KEY = "ANTHROPIC_API_KEY"
HOTTEST = 1.0  # the API refuses a higher temperature
NOTHING = "(empty)"  # stands for a turn without text, which the API refuses
CUT_OFF = dict.fromkeys(("max_tokens", "model_context_window_exceeded"), Finish.LENGTH)
STOP_REASONS = {**CUT_OFF, "refusal": Finish.FILTERED}


class AnthropicModel(Remote):
    """A Claude model. It draws without a seed, and newer models without a temperature too."""

    SDK, CLIENT, PATH = "anthropic", "AsyncAnthropic", "/v1/messages"
    CLIENT_OPTIONS = {"open_telemetry": False}  # noqa: RUF012 - never changed
    URL, KEY = "https://api.anthropic.com", KEY
    KEY_FIX = f"export {KEY}=..., or name another model, such as exchange/FOLDER"
    URL_HINT = "which ends before /v1"
    OPTIONAL = ("temperature",)

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None, timeout: float, name: str) -> None:
        require_sdk()
        super().__init__(model, base_url=base_url, api_key=api_key, timeout=timeout, name=name)

    def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, object]:
        turns = [(m.role, m.content if m.content.strip() else "") for m in request.messages]
        said = [{"role": role.value, "content": text or NOTHING} for role, text in turns if role is not Role.SYSTEM]
        blocks = [{"type": "text", "text": text} for role, text in turns if role is Role.SYSTEM and text]
        body: dict[str, object] = {"model": self._model, "max_tokens": request.sampling.max_tokens, "messages": said}
        if blocks:  # the last carries the mark up to which the provider caches the prompt
            body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
        if "temperature" not in left_out:
            body["temperature"] = min(request.sampling.temperature, HOTTEST)
        return body

    def _read(self, body: bytes, seconds: float) -> Reply:
        """The text of a message, without what the model only thought."""
        message = parsed(_Reply, body)
        if message.content is None:
            kind = message.error_type
            raise inner_error(message.error or kind, limited=kind == "rate_limit_error", lacking="content")
        text = "".join(block.text or "" for block in message.content if block.type == "text")
        return Reply(text, STOP_REASONS.get(message.stop_reason or "", Finish.STOP), _usage(message.usage), seconds)


def require_sdk() -> None:
    """Raise with the fix where the extra is not installed."""
    if find_spec("anthropic") is None:
        raise UsageError("anthropic/ models need Anthropic's SDK", fix="pip install 'kace[anthropic]'")


class _Block(BaseModel):
    type: str = ""
    text: str | None = None


class _Usage(BaseModel):
    input_tokens: TokenCount = 0  # neither read from a cache nor written to one
    cache_read_input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    output_tokens: TokenCount = 0


class _Reply(BaseModel):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: object = None
    error: str | None = Field(None, validation_alias=AliasPath("error", "message"))
    error_type: str | None = Field(None, validation_alias=AliasPath("error", "type"))


def _usage(raw: object) -> Usage:
    try:
        usage = _Usage.model_validate(raw)
    except ValidationError:  # absent or nonsense: no reason to lose a reply that was paid for
        return Usage()
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(usage.input_tokens + cached + written, cached, usage.output_tokens, written)
