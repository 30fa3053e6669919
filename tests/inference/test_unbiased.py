"""Draws around unbiased estimates of metrics of k trials."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from bayesrank import METHODS, Responses, draw_scores, point_estimate, rank
from bayesrank.errors import DataError
