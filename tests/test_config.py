"""One configuration, resolved in layers, each value knowing its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from kace.config import Price, load_config, profile_of, profile_text, tree_path, user_cache
from kace.errors import UsageError
from kace.ladder.tiers import TierName
from kace.learning.study import Settings
from kace.runs.manifest import manifest_of


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def test_the_default_is_the_embedded_model():
    config = load_config(env={})
    assert config.model == "local/qwen2.5-coder-0.5b"
    assert config.preset == "starter"
    assert config.sources["model"] == "preset"
    assert config.sources.get("seed") is None


def test_the_defaults_of_the_classes_are_the_shipped_ones():
    retrieval, learning = load_config(env={}).retrieval, Settings()
    assert (retrieval.router, retrieval.relevance_threshold, retrieval.es_policy) == ("cards", 0.3, "locked")
    assert (retrieval.placement, retrieval.prompts, retrieval.max_cards) == ("demonstrations", "default", None)
    assert (learning.epochs, learning.add_runs, learning.refine, learning.confident) == (1, 1, 0, True)
    assert (learning.evidence, learning.keep_above) == ("posterior", 0.8)
    assert (learning.impact, learning.impact_runs, learning.examples) == ("dropout", 4, 2)
    assert (learning.wordings, learning.max_harm, learning.max_overlap) == (16, 0.5, 0.55)
    assert profile_of(None) == profile_of("default") == {}, "no profile repeats them"


def test_a_tree_that_is_a_file_is_read_by_the_profile_beside_it(tmp_path: Path):
    ours = load_config({"tree": "starter"}, env={}).retrieval
    beside = load_config({"profile": str(tree_path("starter").with_suffix(".toml"))}, env={}).retrieval
    assert ours == beside, "the bundled tree is read as it was measured"
    assert ours.max_cards == 1
    assert load_config({"tree": "starter", "profile": "default"}, env={}).retrieval.max_cards is None
    cards, profile = tmp_path / "mine.jsonl", tmp_path / "mine.toml"
    cards.write_text("")
    assert load_config({"tree": cards}, env={}).retrieval.max_cards is None
    profile.write_text("[retrieval]\nmax_cards = 3\n")
    assert load_config({"tree": cards}, env={}).retrieval.max_cards == 3


def test_the_papers_way_is_one_profile():
    paper = load_config({"profile": "paper"}, env={}).retrieval
    assert (paper.router, paper.relevance_threshold, paper.placement) == ("model", 0.0, "instructions")
    assert (paper.prompts, paper.refine_domain, paper.es_policy) == ("paper", False, "locked")
    learning = Settings.model_validate(profile_of("paper")["learning"])
    assert (learning.epochs, learning.add_runs, learning.refine) == (2, 2, 2)
    assert (learning.confident, learning.failures, learning.examples) == (False, "final", 0)
    assert (learning.impact, learning.imagine) == ("leave_one_out", False)
    assert load_config(env={}).retrieval.prompts == "default"


def test_a_tree_is_read_by_the_profile_it_remembers_unless_told_otherwise(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    kept = load_config({"max_cards": 2, "router": "words"}, env={}).retrieval
    (tree / "profile.toml").write_text(profile_text(kept.model_dump(mode="json"), {"epochs": 3}))
    assert load_config({"tree": tree}, env={}).retrieval == kept
    assert load_config({"tree": tree / "snapshots" / "epoch-1.jsonl"}, env={}).retrieval == kept
    assert load_config({"tree": tree, "max_cards": 5}, env={}).retrieval.max_cards == 5
    assert load_config({"tree": tree, "profile": "paper"}, env={}).retrieval.router == "model"
    assert load_config({"tree": tree}, env={}).sources["retrieval.router"] == "profile"


@pytest.mark.parametrize(
    ("text", "said"), [("[reading]\n", "'reading'"), ("[retrieval]\nmax_card = 1\n", "max_card"), ("x = 1\n", "'x'")]
)
def test_a_profile_that_cannot_be_read_is_one_error(tmp_path: Path, text: str, said: str):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load_config({"profile": str(tmp_path / "mine.toml")}, env={})
    with pytest.raises(UsageError, match="unknown profile 'papper'; did you mean 'paper'"):
        load_config({"profile": "papper"}, env={})


def test_another_model_gets_the_papers_caps():
    config = load_config({"model": "openai/gpt-4.1-mini"}, env={})
    draws = [(draw.temperature, draw.max_tokens) for draw in config.tier_sampling().values()]
    assert (config.preset, draws) == ("aime25", [(0.6, 6000), (0.6, 12000), (0.8, 12000)])
    sampling = load_config({"preset": "math-hard"}, env={}).tier_sampling()
    assert {draw.max_tokens for draw in sampling.values()} == {2000}


def test_flags_beat_the_environment_which_beats_the_file(tmp_path: Path):
    (tmp_path / "kace.toml").write_text('seed = 1\ntimeout = 5\nmodel = "scripted/steady"\n')
    config = load_config({"seed": 3, "timeout": None}, env={"KACE_SEED": "2", "KACE_TIMEOUT": "6"})
    assert (config.seed, config.sources["seed"]) == (3, "flag")
    assert (config.timeout, config.sources["timeout"]) == (6.0, "env")
    assert (config.model, config.sources["model"]) == ("scripted/steady", "file")


def test_a_tier_is_set_in_the_file_and_the_rest_stays_the_presets(tmp_path: Path):
    (tmp_path / "kace.toml").write_text("[sampling.HS]\ntemperature = 1.0\n")
    sampling = load_config({"preset": "aime25"}, env={}).tier_sampling()
    assert sampling[TierName.HS].temperature == 1.0
    assert sampling[TierName.HS].max_tokens == 12000
    assert sampling[TierName.ES].temperature == 0.6


def test_our_own_variable_beats_the_shared_one_and_a_key_is_never_written():
    config = load_config(
        env={"OPENAI_BASE_URL": "http://a", "KACE_BASE_URL": "http://b", "OPENAI_API_KEY": "sk-canary-123"}
    )
    assert config.base_url == "http://b"
    assert "canary" not in config.model_dump_json() + repr(config)


def key(secret: object) -> str | None:
    return None if secret is None else secret.get_secret_value()


def test_a_teacher_with_nothing_of_its_own_is_asked_where_the_solver_is():
    env = {"OPENAI_BASE_URL": "http://ours/v1", "OPENAI_API_KEY": "sk-ours", "ANTHROPIC_API_KEY": "sk-ant"}
    teacher = load_config({"model": "openai/small", "teacher": "openai/large"}, env=env).for_teacher()
    assert (teacher.model, teacher.base_url, key(teacher.api_key)) == ("openai/large", "http://ours/v1", "sk-ours")
    teacher = load_config({"teacher": "anthropic/m", "ray": "auto"}, env=env).for_teacher()
    assert teacher.ray is None, "the workers of a cluster are the solver's"
    assert (teacher.anthropic_base_url, key(teacher.anthropic_api_key)) == (None, "sk-ant")


def test_a_teachers_own_server_never_gets_a_key_that_was_meant_for_another():
    env = {"OPENAI_API_KEY": "sk-ours", "ANTHROPIC_API_KEY": "sk-ant"}
    for name in ("openai/large", "anthropic/m"):
        flags = {"teacher": name, "teacher_base_url": "http://theirs/v1"}
        teacher = load_config(flags, env=env).for_teacher()
        assert (teacher.base_url, key(teacher.api_key)) == ("http://theirs/v1", None)
        assert (teacher.anthropic_base_url, key(teacher.anthropic_api_key)) == ("http://theirs/v1", None)
        teacher = load_config(flags, env={**env, "KACE_TEACHER_API_KEY": "sk-theirs"}).for_teacher()
        assert key(teacher.api_key) == key(teacher.anthropic_api_key) == "sk-theirs"


def test_no_teacher_says_how_to_name_one():
    with pytest.raises(UsageError, match="no teacher is named") as caught:
        load_config(env={}).for_teacher()
    assert "KACE_TEACHER" in caught.value.fix


def test_what_a_solve_depends_on_holds_nothing_of_the_teacher_and_no_secret():
    plain = load_config({"model": "scripted/dice"}, env={})
    env = {"KACE_TEACHER": "anthropic/m", "KACE_TEACHER_BASE_URL": "http://user:canary@theirs"}
    env |= {"KACE_TEACHER_API_KEY": "canary-teacher", "KACE_TEACHER_MAX_TOKENS": "99", "ANTHROPIC_API_KEY": "canary-an"}
    taught = load_config({"model": "scripted/dice"}, env=env)
    assert manifest_of(taught)["config"] == manifest_of(plain)["config"]
    gateway = manifest_of(load_config(env={"ANTHROPIC_BASE_URL": "http://user:canary@gateway/"}))
    assert gateway["config"]["anthropic_base_url"] == "http://gateway"


@pytest.mark.parametrize(
    ("flags", "env", "complaint"),
    [
        ({"modle": "x"}, {}, "unknown setting 'modle' from flag; did you mean 'model'?"),
        ({"preset": "aime"}, {}, "unknown preset 'aime'; did you mean 'aime25'?"),
        ({}, {"KACE_SEED": "many"}, "setting 'seed' (from env)"),
        ({}, {"KACE_ROUTER": "many"}, "setting 'retrieval.router' (from env)"),
        ({"temperature": -1}, {}, "setting 'temperature' (from flag)"),
        ({"max_connections": 0}, {}, "setting 'max_connections'"),
    ],
)
def test_bad_settings_are_one_line_with_the_source(flags: dict[str, object], env: dict[str, str], complaint: str):
    with pytest.raises(UsageError) as caught:
        load_config(flags, env=env)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["seed = ", "sampling.XS.temperature = 1", "[sampling.ES]\nheat = 1", "unheard = 1"])
def test_a_bad_file_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(UsageError):
        load_config(file=path, env={})


def test_where_the_cache_lives(tmp_path: Path):
    assert load_config(env={"KACE_CACHE_DIR": str(tmp_path)}).cache_dir == tmp_path
    assert user_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "kace"
    assert user_cache({}) == Path.home() / ".cache" / "kace"


def test_an_unknown_variable_of_ours_warns_and_stops_nothing(caplog: pytest.LogCaptureFixture):
    assert load_config(env={"KACE_SEDE": "1", "KACE_HOME": "/x"}).seed == 0
    assert caplog.messages == [f"kace: {name} names no setting" for name in ("KACE_SEDE", "KACE_HOME")]


def test_common_models_come_with_prices_and_ones_own_win(tmp_path: Path):
    assert load_config(env={}).prices["openai/gpt-4.1-mini"] == Price(0.4, 1.6, 0.1)
    text = '[prices."openai/gpt-4.1-mini"]\ninput = 1\ncached = 0.3\nwritten = 3.75\noutput = 2\n'
    (tmp_path / "kace.toml").write_text(text)
    prices = load_config(env={}).prices
    assert prices["openai/gpt-4.1-mini"] == Price(1, 2, 0.3, 3.75)
    assert prices["openai/gpt-4o-mini"].output == 0.6
