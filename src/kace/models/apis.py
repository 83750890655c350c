"""The two HTTP APIs: OpenAI's chat completions (vLLM, llama.cpp, Ollama, OpenRouter too) and Anthropic's messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ValidationError

from kace.errors import one_line
from kace.models.base import (
    Finish,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Role,
    Transient,
    Usage,
)
from kace.models.confidence import LOGPROBS, confidence_of
from kace.models.remote import Remote

CUT_OFF = dict.fromkeys(
    ("length", "max_tokens", "model_context_window_exceeded"), Finish.LENGTH
)
FINISH = {**CUT_OFF, "content_filter": Finish.FILTERED, "refusal": Finish.FILTERED}
HOTTEST = 1.0  # Anthropic refuses a higher temperature
NOTHING = "(empty)"  # stands for a turn without text, which Anthropic refuses


class OpenAIModel(Remote):
    """A model behind an OpenAI-compatible server."""

    PROVIDER = "openai"
    PATH = "/chat/completions"
    URL = "https://api.openai.com/v1"
    KEY = "OPENAI_API_KEY"
    KEY_FIX = (
        f"export {KEY}=..., or point --base-url at your own server, or try: kace demo"
    )
    URL_HINT = "which mostly ends in /v1"
    # The first has a newer name; the others are left out, the last two together.
    OPTIONAL = ("max_tokens", "seed", "temperature", *LOGPROBS)
    service_tier: str | None = (
        None  # one that the server does not take stops the run: it would cost more
    )

    def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, object]:
        sampling = request.sampling
        optional: dict[str, object] = {
            "seed": sampling.seed,
            "temperature": sampling.temperature,
        }
        if request.logprobs and left_out.isdisjoint(LOGPROBS):
            optional |= LOGPROBS
        return {
            "model": self._model,
            "messages": [
                {"role": m.role.value, "content": m.content} for m in request.messages
            ],
            "max_completion_tokens"
            if "max_tokens" in left_out
            else "max_tokens": sampling.max_tokens,
            **{key: value for key, value in optional.items() if key not in left_out},
            **({"service_tier": self.service_tier} if self.service_tier else {}),
        }

    def _read(self, body: bytes, seconds: float) -> Reply:
        return read_completion(body, seconds)


class AnthropicModel(Remote):
    """A Claude model. It draws without a seed, newer ones without a temperature too; the system prompt is cached."""

    PROVIDER = "anthropic"
    PATH = "/v1/messages"
    HEADERS = {"anthropic-version": "2026-10-21"}  # noqa: RUF012 - never changed
    URL = "https://api.anthropic.com"
    KEY = "ANTHROPIC_API_KEY"
    KEY_FIX = f"export {KEY}=..., or name another model, such as exchange/FOLDER"
    URL_HINT = "which ends before /v1"
    OPTIONAL = ("temperature",)

    def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, object]:
        turns = [
            (m.role, m.content if m.content.strip() else "") for m in request.messages
        ]
        said = [
            {"role": role.value, "content": text or NOTHING}
            for role, text in turns
            if role is not Role.SYSTEM
        ]
        blocks = [
            {"type": "text", "text": text}
            for role, text in turns
            if role is Role.SYSTEM and text
        ]
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": request.sampling.max_tokens,
            "messages": said,
        }
        if (
            blocks
        ):  # the last carries the mark up to which the provider caches the prompt
            body["system"] = [
                *blocks[:-1],
                {**blocks[-1], "cache_control": {"type": "ephemeral"}},
            ]
        if "temperature" not in left_out:
            body["temperature"] = min(request.sampling.temperature, HOTTEST)
        return body

    def _read(self, body: bytes, seconds: float) -> Reply:
        """The text of a message, without what the model only thought."""
        message = _parsed(body)
        if message.content is None:
            raise message.fault("content")
        text = "".join(
            block.text or "" for block in message.content if block.type == "text"
        )
        return Reply(
            text,
            FINISH.get(message.stop or "", Finish.STOP),
            read_usage(message.usage),
            seconds,
        )


TokenCount = Annotated[int, Field(ge=0, le=10**9)]


class _Usage(BaseModel):
    prompt_tokens: TokenCount | None = None  # all of them, as OpenAI counts
    input_tokens: TokenCount = (
        0  # neither read from a cache nor written to one, as Anthropic counts
    )
    cached: TokenCount | None = Field(
        None,
        validation_alias=AliasChoices(
            AliasPath("prompt_tokens_details", "cached_tokens"),
            "cache_read_input_tokens",
        ),
    )
    written: TokenCount | None = Field(
        None, validation_alias="cache_creation_input_tokens"
    )
    output: TokenCount | None = Field(
        None, validation_alias=AliasChoices("completion_tokens", "output_tokens")
    )


class _Block(BaseModel):
    type: str = ""
    text: str | None = None


class _Body(BaseModel):
    message: dict[str, object] | None = Field(
        None, validation_alias=AliasPath("choices", 0, "message")
    )  # OpenAI's
    text: str | None = Field(
        None, validation_alias=AliasPath("choices", 0, "message", "content")
    )
    refusal: str | None = Field(
        None, validation_alias=AliasPath("choices", 0, "message", "refusal")
    )
    content: list[_Block] | None = None  # Anthropic's
    stop: str | None = Field(
        None,
        validation_alias=AliasChoices(
            AliasPath("choices", 0, "finish_reason"), "stop_reason"
        ),
    )
    logprobs: object = Field(
        None, validation_alias=AliasPath("choices", 0, "logprobs", "content")
    )
    usage: object = None
    error: str | None = Field(None, validation_alias=AliasPath("error", "message"))
    error_code: int | str | None = Field(
        None, validation_alias=AliasPath("error", "code")
    )
    error_type: str | None = Field(None, validation_alias=AliasPath("error", "type"))

    def fault(self, lacking: str) -> ModelError:
        """The fault of a provider behind a router or gateway, which reports it inside a 200."""
        said = self.error or self.error_code or self.error_type
        if said is None:
            return Transient(f"unreadable reply: no {lacking}")
        line = one_line(f"error in the reply: {said}")
        limited = str(self.error_code) == "429" or self.error_type == "rate_limit_error"
        return RateLimited(line) if limited else Transient(line)


def read_completion(body: bytes, seconds: float) -> Reply:
    """The first choice of a completion. Raises `Transient` for a body that holds none."""
    completion = _parsed(body)
    if completion.message is None or completion.stop == "error":
        raise completion.fault("choices")
    # A refusal is paid for like any reply, so it comes back as one: its tokens are counted, and it is kept.
    finish = (
        Finish.FILTERED
        if completion.refusal
        else FINISH.get(completion.stop or "", Finish.STOP)
    )
    text = completion.text or completion.refusal or ""
    confidence = confidence_of(completion.logprobs)
    return Reply(
        text, finish, read_usage(completion.usage), seconds, confidence=confidence
    )


def read_usage(raw: object) -> Usage:
    """The tokens that a reply of either API counts."""
    try:
        usage = _Usage.model_validate(raw)
    except (
        ValidationError
    ):  # absent or nonsense: no reason to lose a reply that was paid for
        return Usage()
    cached = usage.cached or 0
    written = usage.written or 0
    prompt = usage.prompt_tokens
    return Usage(
        usage.input_tokens + cached + written if prompt is None else prompt,
        cached,
        usage.output or 0,
        written,
    )


def _parsed(body: bytes) -> _Body:
    try:
        return _Body.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise Transient(
            one_line(f"unreadable reply: {where}: {first['msg']}")
        ) from None
