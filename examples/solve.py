"""Solve one problem and print every attempt: python examples/solve.py."""

import kace

solution = kace.solve("How many diagonals does a 9-gon have?", tree="starter")
for attempt in solution.attempts:
    print(attempt.tier.value, attempt.answer)
print(solution.exit.value, solution.answer)
