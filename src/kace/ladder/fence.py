"""Text from outside, quoted in a prompt so that it cannot end its own quotation."""

from __future__ import annotations

import re

TAGS = (
    "problem",
    "attempt",
    "card",
    "cards",
    "domain",
    "facts",
    "revision",
    "gap",
    "ruling",
    "notes",
    "example",
)
"""Every tag a prompt of ours opens or closes."""
BARRED = "‹"  # stands where a `<` or `[` would have begun one of these. A reader still sees what was meant
_TURNS = (
    r"<(?=\|\w+\|>)",  # Qwen, Llama 3 and later, Phi, gpt-oss
    r"<(?=｜[^<>｜]{1,40}｜>)",  # DeepSeek
    r"<(?=(?:start_of_turn|end_of_turn|bos|eos|\|turn|turn\|)>)",  # Gemma
    r"<(?=/s>|</?SYS>>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",  # Llama 2, Mistral
)

_OURS = re.compile(
    rf"<(?=[^\w<>]*(?:{'|'.join(TAGS)})(?![^\W_]))|{'|'.join(_TURNS)}", re.IGNORECASE
)


def fenced(tag: str, text: str) -> str:
    """The text between `<tag>` and `</tag>`, which it cannot contain."""
    if tag not in TAGS:
        raise ValueError(f"'{tag}' is not one of our tags")
    return f"<{tag}>\n{neutral(text.strip())}\n</{tag}>"


def neutral(text: str) -> str:
    """The text without our tags, however spaced, and without the turn markers of chat templates, such as `<|im_end|>`.

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
