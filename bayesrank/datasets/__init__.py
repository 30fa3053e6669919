"""Bundled examples."""

from bayesrank.datasets.attempts import load_attempts
from bayesrank.datasets.case_study import load_rankllm_case_study
from bayesrank.datasets.olympiad import load_olympiad

__all__ = ["load_attempts", "load_olympiad", "load_rankllm_case_study"]
