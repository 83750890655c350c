"""Learn a tree from a JSONL file: python examples/learn.py TRAIN.jsonl TREE TEACHER."""

import sys

import kace

train, out, teacher = sys.argv[1:]
tree = kace.learn(train, out, teacher, quick=True)
for card_id in tree.cards:
    print(card_id)
