"""Text from outside, quoted in a prompt so that it cannot end its own quotation."""

from __future__ import annotations

import re

TAGS = ("problem", "attempt", "card", "cards", "domain", "facts", "revision", "gap", "ruling", "notes", "example")
"""Every tag a prompt of ours opens or closes."""
BARRED = "‹"  # stands where a `<` would have begun one of our tags. A reader still sees what was meant

_OURS = re.compile(rf"<(?=[^\w<>]*(?:{'|'.join(TAGS)})(?![^\W_]))|<(?=\|\w+\|>)", re.IGNORECASE)


def fenced(tag: str, text: str) -> str:
    """The text between `<tag>` and `</tag>`, which it cannot contain."""
    if tag not in TAGS:
        raise ValueError(f"'{tag}' is not one of our tags")
    return f"<{tag}>\n{neutral(text.strip())}\n</{tag}>"


def neutral(text: str) -> str:
    """The text without our tags, however spaced, and without turn markers such as `<|im_end|>`.

    Local engines read turn markers anywhere in a prompt. Other signs, `<` in an inequality too, stay as they are.
    """
    return _OURS.sub(BARRED, text)


def quoted_line(text: str, limit: int = 300) -> str:
    """Text from outside on one line of ours, where it can begin no line of its own."""
    return neutral(shortened(" ".join(text.split()), limit))


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters: the beginning and the end, since what is asked mostly stands last."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[len(text) - (limit - 3 - head) :]}"
