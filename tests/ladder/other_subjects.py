"""Cards of other subjects: true enough to read, and nothing that a problem of mathematics needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

from kace.cards.card import Card, Example
from kace.cards.tree import Domain
from tests.card_samples import card

THINGS = (  # noqa: SIM905
    "copper tin zinc nickel cobalt sulfur carbon helium argon iodine quartz basalt granite marble slate limestone "
    "amber topaz obsidian pumice maple birch willow cedar juniper lavender rosemary saffron cinnamon vanilla "
    "sparrow heron falcon otter badger salmon trout herring lobster walrus violin cello oboe trumpet organ "
    "harpsichord sonata fugue ballad sonnet novel fable"
).split()
ASKED = (
    ("geology", "hardness", "Where does {0} lie on the scale of hardness that mineralogists use?",
     "Scratch {0} with a known mineral and see which one yields. It yields to the harder one. \\boxed{{softer}}"),
    ("trade", "origin", "From which region did merchants of the Middle Ages bring {0}?",
     "Name the route by sea and by land, then the port at which {0} was unloaded. \\boxed{{the east}}"),
    ("chemistry", "solvent", "Does {0} dissolve in vinegar, in alcohol or in neither?",
     "Think of polar and unpolar solvents: like dissolves like, and {0} follows. \\boxed{{neither}}"),
    ("grammar", "plural", "What is the plural of the noun {0}, and is it countable?",
     "A substance is uncountable, a single creature or object is countable; {0} is judged so. \\boxed{{countable}}"),
    ("law", "ownership", "Who owns {0} that a tenant finds under the floor of a rented house?",
     "Tell apart lost, mislaid and abandoned goods, then apply it to {0}. \\boxed{{the landlord}}"),
    ("medicine", "allergy", "A patient reports a rash after touching {0}. Which test comes first?",
     "Take the history, then a patch test with {0} on unbroken skin. \\boxed{{patch test}}"),
    ("cooking", "storage", "How should a kitchen keep {0} so that it does not spoil or tarnish?",
     "Dry, dark and cool is safe for most stores, and {0} is no exception. \\boxed{{dry and dark}}"),
    ("music", "timbre", "Which instrument would a composer choose to suggest {0} in an overture?",
     "Compare bright with dark timbres; tradition ties {0} to one of them. \\boxed{{clarinet}}"),
    ("history", "symbol", "On which coat of arms does {0} appear as a charge, and why?",
     "Heraldry puns on names; look for a family or a town called after {0}. \\boxed{{a pun}}"),
    ("biology", "habitat", "In which biome is {0} found, if it occurs in nature at all?",
     "Tell living from mineral and made things, then place {0} by climate. \\boxed{{temperate}}"),
    ("painting", "pigment", "Which pigment imitates the colour of {0} in an oil painting?",
     "Name hue, then opacity; glaze thinly over the ground where {0} shines. \\boxed{{umber}}"),
    ("religion", "ritual", "What part does {0} play in a harvest festival?",
     "Ask whether {0} is offered, worn or played. \\boxed{{offered}}"),
    ("language", "etymology", "From which language did English borrow the word {0}?",
     "Compare the oldest spelling of {0} with Latin, Norse and French. \\boxed{{Latin}}"),
    ("ecology", "threat", "Which human activity threatens the supply of {0} most?",
     "Weigh mining, farming, fishing and trade against one another for {0}. \\boxed{{trade}}"),
    ("design", "texture", "Which fabric has a texture that reminds the hand of {0}?",
     "Rough or smooth, warm or cold: {0} decides between wool and silk. \\boxed{{silk}}"),
    ("politics", "tariff", "Why might a parliament put a tariff on imported {0}?",
     "Ask who produces {0} at home and who votes for whom. \\boxed{{protection}}"),
    ("literature", "metaphor", "What does {0} stand for when a poet sets it against the sea?",
     "The lasting against the restless: read {0} with the verse around it. \\boxed{{patience}}"),
    ("philosophy", "essence", "Would {0} still be {0} if every property that we can see were changed?",
     "Part essence from accident, as the schoolmen did, and apply it to {0}. \\boxed{{no}}"),
    ("psychology", "memory", "Why do people who hear the word {0} recall a childhood scene?",
     "Association by smell and sound comes before reasoning; {0} is a cue. \\boxed{{association}}"),
    ("photography", "light", "Which light brings out the surface of {0} in a photograph?",
     "Raking light shows relief, soft light shows colour; {0} wants one of them. \\boxed{{raking}}"),
)  # fmt: skip


def other_subjects(domains: Sequence[Domain], count: int) -> list[Card]:
    """So many cards, dealt out to the tree's own domains, where a router would find them."""
    pairs = islice(product(THINGS, ASKED), count)
    return [_card(number, thing, asked, domains) for number, (thing, asked) in enumerate(pairs)]


def _card(number: int, thing: str, asked: tuple[str, str, str, str], domains: Sequence[Domain]) -> Card:
    subject, topic, question, worked = asked
    other = THINGS[(THINGS.index(thing) + 1) % len(THINGS)]
    made = card(
        f"EXACT_{subject}_{topic}_{thing}".upper(),
        payload=f"Useful when:\n- {subject}: the {topic} of {thing}\n\nName what is known of {thing}, then judge.",
        domain_tags=(domains[number % len(domains)].name,),
    )
    return made.illustrated([Example(question.format(each), worked.format(each)) for each in (thing, other)])
