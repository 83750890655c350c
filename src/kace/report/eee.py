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
from kace.runs.metrics import Metrics
from kace.runs.stats import LEVEL
from kace.runs.table import Table

SCHEMA = {"schema_version": "0.2.3"}
UNKNOWN = "unknown"
SOURCE = {
    "source_name": "kace report",
    "source_type": "evaluation_run",
    "source_organization_name": UNKNOWN,
    "evaluator_relationship": "other",
}
MODEL_DETAILS = {"deployment_type": UNKNOWN, "model_availability": UNKNOWN}
ACCURACY = {
    "metric_id": "accuracy",
    "metric_name": "Accuracy",
    "metric_kind": "accuracy",
    "metric_unit": "proportion",
    "lower_is_better": False,
    "score_type": "continuous",
    "min_score": 0.0,
    "max_score": 1.0,
}
VOTED = {
    "turn_idx": 0,
    "source": "output.raw",
    "extraction_method": "vote over boxed answers",
    "is_terminal": True,
}


def write_records(
    tables: Sequence[Table], arms: Sequence[Metrics], out: Path
) -> list[Path]:
    """Write the arms that have an accuracy, and return the files.

    A run that is written again replaces its record. Samples need a run's texts.
    """
    paths = []
    for table, arm in zip(tables, arms, strict=True):
        if arm.accuracy is not None:
            paths += _write_record(table, arm, out)
    return paths


def _write_record(table: Table, arm: Metrics, out: Path) -> list[Path]:
    manifest = table.manifest
    model = manifest.model or table.name
    benchmark = _part(f"{manifest.data} {manifest.split}")
    developer, _, name = model.rpartition("/")
    model_id = f"{_part(developer)}/{_part(name)}"
    now = f"{time.time():.3f}"
    about = {
        **SCHEMA,
        "evaluation_id": f"{benchmark}.{_part(table.name)}/{model_id}/{now}",
    }
    facts = json.dumps([manifest.content, table.name, arm.solves, arm.accuracy])
    digest = hashlib.sha256(facts.encode()).digest()
    place = (
        f"data/{benchmark}/{model_id}/{uuid.UUID(bytes=digest[:16], version=4)}"
    )
    record = {
        **about,
        "retrieved_timestamp": now,
        "source_metadata": SOURCE,
        "eval_library": {
            "name": "kace",
            "version": manifest.kace or version("kace"),
        },
        "model_info": {
            "name": model,
            "id": model_id,
            "additional_details": MODEL_DETAILS,
        },
        "evaluation_results": [_result(table, arm, benchmark)],
    }
    paths = [out / f"{place}.json"]
    about |= {"model_id": model_id, "evaluation_name": benchmark}
    rows = []
    for sample in _samples(table):
        rows.append(json.dumps({**about, **sample}, ensure_ascii=False) + "\n")
    if rows:
        text = "".join(rows)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{place}_samples.jsonl",
            "total_rows": len(rows),
        }
        paths.append(out / f"{place}_samples.jsonl")
        write_atomic(paths[1], text)
    body = json.dumps(record, ensure_ascii=False, indent=2)
    write_atomic(paths[0], body + "\n")
    return paths


def _result(table: Table, arm: Metrics, benchmark: str) -> dict[str, object]:
    """Return the accuracy of an arm, with its interval."""
    low, high = arm.wilson or (0.0, 1.0)
    interval = {
        "lower": low,
        "upper": high,
        "confidence_level": LEVEL,
        "method": f"Wilson, each {arm.cluster} counted once",
    }
    details = {"system": table.name}
    return {
        "evaluation_name": benchmark,
        "source_data": {"dataset_name": benchmark, "source_type": "other"},
        "metric_config": ACCURACY,
        "score_details": {
            "score": arm.accuracy,
            "uncertainty": {
                "confidence_interval": interval,
                "num_samples": arm.clusters,
            },
        },
        "generation_config": {"additional_details": details},
    }


def _samples(table: Table) -> Iterator[dict[str, object]]:
    """Yield the labelled solves of a run whose problems have their texts."""
    for solution in table.solutions():
        text = table.problem_text(solution.problem)
        if text is None or solution.correct is None:
            continue
        yield {
            "sample_id": solution.name,
            "interaction_type": "single_turn",
            "input": {"raw": text, "reference": [solution.expected]},
            "output": {"raw": [attempt.text for attempt in solution.made]},
            "answer_attribution": [
                {**VOTED, "extracted_value": solution.answer or ""}
            ],
            "evaluation": {
                "score": float(solution.correct),
                "is_correct": solution.correct,
            },
            "metadata": {"seed": str(solution.seed)},
        }


def _part(text: str) -> str:
    """Return a text as one portable part of a path."""
    part = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return UNKNOWN if part in ("", "data") else part
