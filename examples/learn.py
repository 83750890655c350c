"""Learn a tree from a JSONL file: python examples/learn.py TRAIN.jsonl TREE [TEACHER].

Without a teacher, the problems' own worked solutions (field `solution`) become cards.
"""

import sys

import kace

train, out, *teacher = sys.argv[1:]
tree = kace.learn(
    train, out, teacher[0] if teacher else "solutions", quick=True
)
for card_id in tree.cards:
    print(card_id)
