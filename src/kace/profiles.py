"""The named profiles, as data: how trees are learned and read."""

from __future__ import annotations

from collections.abc import Mapping

PROFILES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "default": {
        "retrieval": {"relevance": "background", "relevance_threshold": 0.46},
        "learning": {
            "epochs": 1,
            "add_runs": 1,
            "confident": True,
            "refine": 0,
            "impact_runs": 4,
            "max_overlap": 0.55,
            "evidence": "posterior",
            "keep": "validated",
            "calibration_runs": 3,
        },
    },
    "paper": {
        "retrieval": {
            "router": "model",
            "relevance_threshold": 0.0,
            "placement": "instructions",
            "es_policy": "locked",
            "refine_domain": False,  # the paper has it as an option
            "prompts": "paper",
        },
        "learning": {
            "epochs": 2,  # 4 for MATH-HARD: see `kace reproduce`
            "cards_per_problem": 2,
            "add_runs": 2,
            "confident": False,
            "failures": "final",
            "examples": 0,
            "impact": "leave_one_out",
            "evidence": "threshold",
            "refine": 2,
            "keep": "all",
            "imagine": False,
        },
    },
}
"""Named ways to learn and read a tree: as the published gains were measured, and the paper's. What one leaves out is at
the default of its class."""
