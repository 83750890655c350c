"""Write arms as records of Every Eval Ever: one JSON per arm, and its solves as JSON lines.

The form is its schema 0.2.3, of which 0.3.0 only changes the number. Paths are those of
its datastore: data/BENCHMARK/DEVELOPER/MODEL/UUID.json and UUID_samples.jsonl.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from kace.files import write_atomic
from kace.ladder.record import Solution
from kace.runs.metrics import Metrics
from kace.runs.table import Table

SCHEMA = "0.2.3"
UNKNOWN = "unknown"
LEVEL = 0.95
DEPLOYED = {
    "local": "self_deployed",
    "openai": "externally_managed",
    "anthropic": "externally_managed",
}
"""Who runs the models of a provider, where it is not a server of the user's."""


def write_records(
    tables: Sequence[Table], arms: Sequence[Metrics], out: Path
) -> list[Path]:
    """Write the arms that have an accuracy, and return the files, samples last.

    A run that is written again replaces its record. Samples need a run's texts.
    """
    paths = []
    for table, arm in zip(tables, arms, strict=True):
        if arm.accuracy is not None:
            paths += _write_record(table, arm, out)
    return paths


def _write_record(table: Table, arm: Metrics, out: Path) -> list[Path]:
    manifest = table.manifest
    benchmark = _part(f"{manifest.data}-{manifest.split}".strip("-"))
    developer, _, model = (manifest.model or table.name).rpartition("/")
    model_id = f"{_part(developer)}/{_part(model)}"
    now = f"{time.time():.3f}"
    evaluation_id = f"{benchmark}.{_part(table.name)}/{model_id}/{now}"
    facts = json.dumps([manifest.content, table.name, arm.solves, arm.accuracy])
    digest = hashlib.sha256(facts.encode()).digest()
    name = str(uuid.UUID(bytes=digest[:16], version=4))
    folder = f"data/{benchmark}/{model_id}"
    record = _record(table, arm, benchmark, model_id)
    record |= {"evaluation_id": evaluation_id, "retrieved_timestamp": now}
    paths = [out / folder / f"{name}.json"]
    about = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id,
        "model_id": model_id,
        "evaluation_name": benchmark,
        "evaluation_result_id": f"{benchmark}/accuracy",
    }
    rows = []
    for sample in _samples(table):
        rows.append(json.dumps({**about, **sample}, ensure_ascii=False) + "\n")
    if rows:
        text = "".join(rows)
        place = f"{folder}/{name}_samples.jsonl"
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": place,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(rows),
        }
        write_atomic(out / place, text)
        paths.append(out / place)
    body = json.dumps(record, ensure_ascii=False, indent=2)
    write_atomic(paths[0], body + "\n")
    return paths


def _record(
    table: Table, arm: Metrics, benchmark: str, model_id: str
) -> dict[str, object]:
    """Return the record of an arm, but for its id and its samples."""
    manifest = table.manifest
    provider = manifest.model.partition("/")[0]
    deployed = DEPLOYED.get(provider, UNKNOWN)
    if manifest.part("config").get("base_url"):
        deployed = UNKNOWN
    weights = "open_weights" if provider == "local" else UNKNOWN
    details = {"system": table.name, "seeds": str(len(arm.seeds))}
    if arm.paper_calls:
        details["calls_per_problem"] = f"{arm.paper_calls:.2f}"
    if manifest.tree_hash:
        details["tree"] = manifest.tree_hash
    uncertainty: dict[str, object] = {"num_samples": arm.clusters}
    if arm.wilson:
        uncertainty["confidence_interval"] = {
            "lower": arm.wilson.low,
            "upper": arm.wilson.high,
            "confidence_level": LEVEL,
            "method": f"Wilson, each {arm.cluster} counted once",
        }
    metric = {
        "metric_id": "accuracy",
        "metric_name": "Accuracy",
        "metric_kind": "accuracy",
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": 1.0,
    }
    result = {
        "evaluation_result_id": f"{benchmark}/accuracy",
        "evaluation_name": benchmark,
        "source_data": {
            "dataset_name": manifest.data or benchmark,
            "source_type": "other",
        },
        "metric_config": metric,
        "score_details": {
            "score": arm.accuracy,
            "details": {"problems": str(arm.problems)},
            "uncertainty": uncertainty,
        },
        "generation_config": {"additional_details": details},
    }
    return {
        "schema_version": SCHEMA,
        "source_metadata": {
            "source_name": "kace report",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "kace",
            "version": manifest.kace or version("kace"),
        },
        "model_info": {
            "name": manifest.model or table.name,
            "id": model_id,
            "developer": model_id.partition("/")[0],
            "additional_details": {
                "deployment_type": deployed,
                "model_availability": weights,
            },
        },
        "evaluation_results": [result],
    }


def _samples(table: Table) -> Iterator[dict[str, object]]:
    """Yield the labelled solves of a run whose problems have their texts."""
    for solution in table.solutions():
        text = table.problem_text(solution.problem)
        if text is not None and solution.correct is not None:
            yield _sample(solution, text)


def _sample(solution: Solution, text: str) -> dict[str, object]:
    expected = solution.expected or ""
    usage = solution.usage
    return {
        "sample_id": solution.name,
        "sample_hash": hashlib.sha256((text + expected).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": text, "reference": [expected]},
        "output": {"raw": [attempt.text for attempt in solution.made]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": solution.answer or "",
                "extraction_method": "vote over boxed answers",
                "is_terminal": True,
            }
        ],
        "evaluation": {
            "score": float(bool(solution.correct)),
            "is_correct": bool(solution.correct),
        },
        "token_usage": {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        },
        "performance": {"latency_ms": 1000 * solution.seconds},
        "metadata": {"seed": str(solution.seed), "exit": solution.exit_name},
    }


def _part(text: str) -> str:
    """Return a text as one portable part of a path."""
    part = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return UNKNOWN if part in ("", "data") else part
