"""OpenTelemetry spans: one for each solve and, in it, one for each call that is made. Only where `otel` is set.

A call's attributes have the names of the GenAI conventions. What is asked and answered is in no span.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from kace.config import span_exporters
from kace.errors import UsageError
from kace.models.base import ChatModel, ModelError, Reply, Request, Wrapper
from kace.problems import Problem
from kace.redact import one_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue

    from kace.ladder.ladder import Kit
    from kace.ladder.record import Solution

log = logging.getLogger(__name__)
MAX_REASON = 160  # characters


class Spans:
    """Starts spans of a tracer. A span that begins inside another is its child."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, AttributeValue],
        *,
        client: bool = False,
    ) -> Iterator[Span]:
        """A span that tells why it ended early, in one line without keys."""
        from opentelemetry.trace import SpanKind, StatusCode

        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                failure = (
                    error.failure.value
                    if isinstance(error, ModelError)
                    else type(error).__name__
                )
                span.set_attribute("error.type", failure)
                span.set_status(StatusCode.ERROR, one_line(str(error)))
                raise
            except BaseException:  # called off: no fault of anybody's
                span.set_attribute("kace.cancelled", True)
                raise

    @contextmanager
    def under(self, headers: Mapping[str, str]) -> Iterator[None]:
        """Spans that begin here are children of the one that a client names in its headers, where it names one."""
        from opentelemetry import context, propagate

        token = context.attach(propagate.extract(headers))
        try:
            yield
        finally:
            context.detach(token)


class Spanned(Wrapper):
    """A model whose every call is a span."""

    def __init__(self, model: ChatModel, role: str, spans: Spans) -> None:
        super().__init__(model)
        self._role = role
        self._spans = spans

    async def complete(self, request: Request) -> Reply:
        """Answer one request."""
        provider, _, name = self.name.partition("/")
        asked: Mapping[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name,
            "gen_ai.request.temperature": request.sampling.temperature,
            "gen_ai.request.max_tokens": request.sampling.max_tokens,
            "gen_ai.request.seed": request.sampling.seed,
            "kace.role": self._role,
            "kace.problems": request.attempt.problem,
            "kace.tier": request.attempt.tier,
            "kace.attempt": request.attempt.index,
        }
        with self._spans.span(f"chat {name}", asked, client=True) as span:
            reply = await self.model.complete(request)
            usage = reply.usage
            told: Mapping[str, AttributeValue] = {
                "gen_ai.response.finish_reasons": (reply.finish.value,),
                "gen_ai.usage.input_tokens": usage.input,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cached,
                "gen_ai.usage.cache_creation.input_tokens": usage.written,
            }
            span.set_attributes(told)
            return reply


def spanned(
    solve: Callable[[Problem, Kit], Coroutine[Any, Any, Solution]],
) -> Callable[[Problem, Kit], Coroutine[Any, Any, Solution]]:
    """A way to solve whose every solve is a span, where the kit has spans."""

    @wraps(solve)
    async def solving(problem: Problem, kit: Kit) -> Solution:
        if kit.spans is None:
            return await solve(problem, kit)
        with kit.spans.span(
            "solve", {"kace.problems": problem.id, "kace.seed": kit.seed}
        ) as span:
            solution = await solve(problem, kit)
            told = {
                "kace.exit": solution.exit.value if solution.exit else None,
                "kace.tier": solution.attempts[-1].tier.value,
                "kace.attempts": len(solution.made),
                "kace.calls.cached": solution.cached_calls,
                "kace.cards.shown": tuple(
                    dict.fromkeys(
                        card for each in solution.recalls for card in each.cards
                    )
                ),
                "kace.cards.abstained": solution.abstained,
                "kace.failed": solution.failed,
                "kace.correct": solution.correct,
            }
            span.set_attributes(
                {name: value for name, value in told.items() if value is not None}
            )
            return solution

    return solving


def open_spans() -> Spans:
    """Spans by the provider of the program around us, where it has one; else they go where OTEL_* variables say."""
    try:
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        ours = isinstance(
            provider, trace.ProxyTracerProvider
        )  # which stands there until somebody sets one
        return Spans((_provider() if ours else provider).get_tracer("kace"))
    except ImportError:
        raise UsageError(
            "otel needs an extra that is not installed", fix="pip install 'kace[otel]'"
        ) from None


@cache
def _provider() -> TracerProvider:
    """One for the process. Spans are sent by a thread of their own; what is left at the end is sent then."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "kace"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    faults = _Faults()
    for name in span_exporters():
        found = entry_points(group="opentelemetry_traces_exporter", name=name)
        if not found:
            fix = f"pip install opentelemetry-exporter-{name.replace('_', '-')}, or unset OTEL_TRACES_EXPORTER and"
            raise UsageError(
                f"there is no exporter of spans called '{name}'",
                fix=f"{fix} OTEL_EXPORTER_OTLP_PROTOCOL",
            )
        exporter = next(iter(found)).load()()
        faults.on_end.append(exporter.shutdown)
        provider.add_span_processor(BatchSpanProcessor(exporter))

    def end() -> None:
        faults.ending = True
        provider.shutdown()

    atexit.register(end)
    return provider


class _Faults(logging.Handler):
    """Hears what OpenTelemetry complains of, and says the first of it: a collector that is away is no fault of a run.

    At the end of the process a fault also ends the sending, which would be tried again for some time.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.ending = False
        self.on_end = list[Callable[[], None]]()
        self._said = False
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, once; at the end, stop."""
        if not self._said:
            self._said = True
            log.warning(
                "spans may be missing, and all else goes on: %s",
                one_line(record.getMessage(), MAX_REASON),
            )
        if self.ending:
            self.ending = False
            for stop in self.on_end:
                stop()
