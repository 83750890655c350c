import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.errors import MARK, keep_secret, one_line, public_url, redact

CANARY = "canary/Zx81+yQ77"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abc123DEF456", "abc123DEF456"),
        ("masked sk-abcd****wxyz here", "wxyz"),
        ("Authorization: Bearer tok_12345678", "tok_12345678"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("POST https://user:hunter2@host:8000/v1/chat", "hunter2"),
        ("postgres://u:p@ss:w0rd@host/db", "w0rd"),
        ("GET /v1?api_key=abcdef12&x=1", "abcdef12"),
        ('{"api-key": "abcdef12"}', "abcdef12"),
        ("token hf_abcdefghijklmnopqrst", "hf_abcdefghijklmnopqrst"),
    ],
)
def test_anything_shaped_like_a_key_is_blotted_out(text, secret):
    assert secret not in redact(text)
    assert MARK in redact(text)


def test_a_secret_of_any_shape_is_blotted_out_in_every_spelling_a_server_may_echo():
    keep_secret(CANARY)
    echoes = f"raw {CANARY} quoted canary%2FZx81%2ByQ77 encoded Y2FuYXJ5L1p4ODEreVE3Nw=="
    assert redact(echoes) == f"raw {MARK} quoted {MARK} encoded {MARK}=="


def test_nothing_is_left_of_a_key_that_holds_another():
    keep_secret("inner-4821-words")
    assert redact("no credit left for sk-inner-4821-wordsabcdef here") == f"no credit left for {MARK} here"
    keep_secret("outer-sk-9931a7b2c4-end")
    assert redact("refused: outer-sk-9931a7b2c4-end") == f"refused: {MARK}"


def test_placeholders_and_short_words_are_not_secrets():
    for word in ("none", "EMPTY", "ollama", "", None):
        keep_secret(word)
    assert redact("none of the EMPTY sets, says ollama") == "none of the EMPTY sets, says ollama"


@pytest.mark.parametrize(
    "text",
    [
        r"\sum_{k=1}^{n} k = \frac{n(n+1)}{2}, \quad \boxed{5050}",
        "the bearer receives 10 percent; a risk-adjusted task-oriented desk-bound basic 3*4*5*6=360",
        "see https://example.org/a@b and mail a@b.org at 10:30 @ home",
        "key = 12, token: yes, sk-8, basic identity, the secret number is 123456789",
    ],
)
def test_ordinary_text_passes_unchanged(text):
    assert redact(text) == text


@given(st.text(alphabet=st.sampled_from(list("sk-_ab1:/@ =\"'.[]Bearer api_key\n")), max_size=80))
def test_redacting_twice_changes_nothing_more(text):
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("unit", ["a", "://", "sk-", "bearer ", "api_key=", "://a@", "authorization: basic ", "\x1b]"])
def test_a_long_hostile_text_is_redacted_in_one_pass(unit):
    text = unit * (1_000_000 // len(unit))
    assert len(one_line(redact(text))) <= 300  # a quadratic pattern would run into the test's time limit


def test_a_key_is_redacted_before_the_line_is_cut():
    key = "sk-" + "q" * 60
    for padding in range(240, 320):
        assert "qqq" not in one_line("x" * padding + " " + key)


def test_words_of_a_server_become_one_printable_line():
    hostile = "\x1b[31mred\x1b[0m\r\n\tbell\x07 \x1b]0;title\x07 \u202eflip\u202c \x00end"
    assert one_line(hostile) == "red bell flip end"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pass@host:8000/v1/", "https://host:8000/v1"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://u:p%40q@[::1]:9/v1?key=abc#frag", "https://[::1]:9/v1"),
    ],
)
def test_a_public_url_names_the_server_and_nothing_else(url, shown):
    assert public_url(url) == shown
