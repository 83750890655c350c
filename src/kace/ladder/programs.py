"""Attempts that compute: the solver writes a program, a sandbox runs it, and what it prints is the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kace.answers.program import Sandbox, program_of
from kace.ladder.ladder import Kit, drawn
from kace.ladder.prompt import Prompt, repair_prompt
from kace.ladder.record import Attempt, Outcome
from kace.ladder.tiers import Lens, Tier, TierName
from kace.models.base import AttemptKey

REPAIR = (
    100  # added to an attempt's index: where its second call stands among the problem's
)
MAX_SHOWN = 2_400  # characters of a failed program, or of a reply without one, that go back with the error


@dataclass(frozen=True, slots=True)
class Programs:
    """Which attempts are programs, and the sandbox that runs them."""

    lenses: Mapping[TierName, tuple[Lens | None, ...]]
    sandbox: Sandbox

    def of(self, tier: Tier) -> Tier:
        """The tier with the lenses of the policy."""
        return replace(tier, lenses=self.lenses.get(tier.name, tier.lenses))

    async def computed(
        self, attempt: Attempt, key: AttemptKey, prompt: Prompt, kit: Kit
    ) -> Attempt:
        """The attempt with what its program printed. An error goes back to the solver once.

        A reply without a program keeps what it boxed. A program that failed twice gives no answer.
        """
        attempt = await self._run(attempt)
        if (
            attempt.outcome not in (Outcome.NO_ANSWER, Outcome.TRUNCATED)
            or not attempt.text.strip()
        ):
            return attempt
        run = next(iter(attempt.programs), None)
        shown = (
            f"```python\n{run.source[:MAX_SHOWN]}\n```"
            if run
            else attempt.text[:MAX_SHOWN]
        )
        again = repair_prompt(
            prompt, shown, run.error if run else "there is no program", kit.subject
        )
        beside = replace(key, index=REPAIR + key.index)
        second = await self._run(await drawn(beside, Lens.PROGRAM, again, kit))
        usage = attempt.usage + second.usage
        return second.model_copy(
            update={
                "index": key.index,
                "prompt": attempt.prompt,
                "call": attempt.call,
                "repair": second.call,
                "input": usage.input,
                "cached": usage.cached,
                "output": usage.output,
                "seconds": round(attempt.seconds + second.seconds, 4),
                "from_cache": attempt.from_cache and second.from_cache,
                "programs": (*attempt.programs, *second.programs),
            }
        )

    async def _run(self, attempt: Attempt) -> Attempt:
        """The attempt with its program run, where it has one."""
        source = program_of(attempt.text)
        if source is None:
            return attempt
        run = await self.sandbox.run(source)
        answer = run.answer
        ended = (
            Outcome.TRUNCATED
            if attempt.outcome is Outcome.TRUNCATED
            else Outcome.NO_ANSWER
        )
        found = {
            "answer": answer,
            "outcome": ended if answer is None else Outcome.ANSWERED,
            "programs": (run,),
        }
        return attempt.model_copy(update=found)
