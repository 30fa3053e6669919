import sys

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table


def test_arrays_and_labels_are_read_as_they_are(tmp_path):
    outcomes = np.array([[[1, 0], [1, -1]], [[0, 0], [1, 1]]], dtype=np.int8)
    path = tmp_path / "runs.npz"
    np.savez(path, R=outcomes, models=["b", "a"], questions=["q2", "q1"], R0=[[1], [0]], other=[7])
    data = read_responses(path)
    np.testing.assert_array_equal(data.outcomes, outcomes)
    assert data.systems == ("b", "a")
    assert data.questions == ("q2", "q1")
    assert data.paired
    np.testing.assert_array_equal(data.prior_outcomes, [[1], [0]])


def test_systems_is_another_name_of_models_and_labels_are_optional(tmp_path):
    np.savez(tmp_path / "named.npz", R=[[1], [0]], systems=["x", "y"])
    np.savez(tmp_path / "bare.npz", R=[[1], [0]])
    assert read_responses(tmp_path / "named.npz").systems == ("x", "y")
    assert read_responses(tmp_path / "bare.npz").systems == ("system 1", "system 2")


def test_weights_come_from_the_caller_or_the_archive(tmp_path, caplog):
    stored, bare = tmp_path / "stored.npz", tmp_path / "bare.npz"
    np.savez(stored, R=[[0, 1, 2]], weights=[0.0, 0.2, 1.0])
    np.savez(bare, R=[[0, 1, 2]])
    assert read_responses(stored).weights.tolist() == [0.0, 0.2, 1.0]
    assert read_responses(stored, weights=[0, 0.9, 1]).weights.tolist() == [0.0, 0.9, 1.0]
    with caplog.at_level("INFO", logger="bayesrank"):
        read_responses(bare, weights=[0, 0.5, 1])
    assert caplog.messages[-1].endswith("0 of 3 outcomes missing; categories 0..2 worth 0, 0.5, 1")
    with pytest.raises(DataError, match=r"got 2 for system 'system 1', .* weights=\(w0, w1"):
        read_responses(bare)


def test_a_scale_replaces_what_the_archive_says_of_categories(tmp_path, caplog):
    path = tmp_path / "ratings.npz"
    np.savez(path, R=[[[4, -1], [1, 5]]], weights=[0, 0.2, 1], R0=[[1], [2]])
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_responses(path, scale=(1, 5))
    np.testing.assert_array_equal(data.scores, [[[0.75, np.nan], [0, 1]]])
    assert data.prior_outcomes is None
    assert caplog.messages[-1].endswith("1 of 4 outcomes missing; scores from 1 to 5")


def test_table_of_an_archive_has_the_same_outcomes(tmp_path):
    path = tmp_path / "runs.npz"
    np.savez(path, R=[[[1, 0], [1, -1]]], models=["a"], questions=["p", "q"])
    table = read_table(path)
    assert table.frame["outcome"].tolist()[:3] == [1.0, 0.0, 1.0]
    assert np.isnan(table.frame["outcome"].iloc[3])
    assert (table.source, table.paired, table.n_missing) == ("npz", True, 1)
    assert table.message == "1 system, 2 questions, 2 trials; 1 of 4 outcomes missing"


def test_truncated_archive(tmp_path):
    path = tmp_path / "cut.npz"
    np.savez(path, R=np.zeros((3, 4, 5), dtype=np.int8))
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(DataError, match=r"paths must be complete archives; got .* in .*/cut\.npz"):
        read_responses(path)


def test_archive_of_objects_is_refused(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, R=np.array([[None, 1]], dtype=object))
    with pytest.raises(DataError, match=r"without pickled objects"):
        read_responses(path)


def test_plain_array_under_the_name_of_an_archive(tmp_path):
    path = tmp_path / "plain.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DataError, match=r"paths must be complete archives"):
        read_responses(path)


def test_archive_without_outcomes_lists_its_arrays(tmp_path):
    np.savez(tmp_path / "other.npz", score=[1], names=["a"])
    with pytest.raises(DataError, match=r"array R; got score, names in other\.npz"):
        read_responses(tmp_path / "other.npz")


def test_two_archives_are_refused(tmp_path):
    for name in ("a.npz", "b.npz"):
        np.savez(tmp_path / name, R=[[1]])
    with pytest.raises(DataError, match=r"one file in format npz; got 2"):
        read_responses(tmp_path)


def test_two_systems_of_one_name_are_refused(tmp_path):
    np.savez(tmp_path / "twins.npz", R=[[1], [0]], models=["a", "a"])
    with pytest.raises(DataError, match=r"systems must be unique; got 'a' twice"):
        read_responses(tmp_path / "twins.npz")


def test_archives_are_read_without_pandas(tmp_path, monkeypatch):
    np.savez(tmp_path / "runs.npz", R=[[1], [0]])
    for module in ("pandas", "pyarrow", "zipfile_zstd"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it now raises
    assert read_responses(tmp_path / "runs.npz").shape == (2, 1, 1)


def test_ragged_runs_have_the_means_of_the_raw_array(shared):
    path = shared / "data" / "misguided_attention_ragged.npz"
    with np.load(path, allow_pickle=False) as archive:
        raw, models = archive["R"], archive["models"].tolist()
    data = read_responses(path, weights=[0, 0.5, 1])
    assert data.systems == tuple(models)
    assert data.n_missing == 6236 == int((raw == -1).sum())
    for i in range(len(models)):
        cells = [[worth / 2 for worth in cell if worth >= 0] for cell in raw[i].tolist()]
        means = [sum(cell) / len(cell) for cell in cells if cell]
        assert np.nanmean(data.grades[i]) == pytest.approx(sum(means) / len(means), abs=1e-12)


@pytest.mark.parametrize("name", ["misguided_attention", "farel_paired_sys", "gsm8k_openai2021"])
def test_shared_archive_keeps_its_shape(shared, name):
    with np.load(shared / "data" / f"{name}.npz", allow_pickle=False) as archive:
        outcomes = archive["R"]
    np.testing.assert_array_equal(
        read_responses(shared / "data" / f"{name}.npz").outcomes, outcomes
    )


@pytest.fixture
def scorio_archive(tmp_path):
    """Return an archive in the layout of Scorio's: an array per task, and their join."""
    rng = np.random.default_rng(1)
    tasks = {name: rng.integers(0, 2, (3, 4, 5)) for name in ("aime24", "aime25")}
    path = tmp_path / "R_top_p.npz"
    np.savez_compressed(path, **tasks, combined=np.concatenate(list(tasks.values()), axis=1))
    return path


def test_archive_of_several_tasks(scorio_archive):
    with np.load(scorio_archive) as archive:
        expected = archive["aime25"]
    np.testing.assert_array_equal(read_responses(scorio_archive, task="aime25").outcomes, expected)
    assert read_responses(scorio_archive, task="combined").shape == (3, 8, 5)
    assert read_table(scorio_archive, task="aime24").n_missing == 0
    with pytest.raises(DataError, match=r"task must name one of aime24, aime25, combined for R_to"):
        read_responses(scorio_archive)


def test_labels_beside_several_tasks_are_used_where_they_fit(tmp_path):
    path = tmp_path / "tasks.npz"
    labels = {"models": ["a", "b"], "questions": ["p", "q"], "R0": [[1], [0]]}
    np.savez(path, short=np.ones((2, 2, 1)), long=np.ones((2, 3, 1)), **labels)
    data = read_responses(path, task="short")
    assert (data.systems, data.questions) == (("a", "b"), ("p", "q"))
    assert data.prior_outcomes.tolist() == [[1], [0]]
    data = read_responses(path, task="long")
    assert data.questions == ("question 1", "question 2", "question 3")
    assert data.prior_outcomes is None


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (3, 2), (1, 3, 2)])
def test_earlier_outcomes_of_every_shape_are_read(tmp_path, shape):
    earlier = np.arange(np.prod(shape)).reshape(shape) % 2
    np.savez(tmp_path / "one.npz", R=np.ones((2, 3, 1)), R0=earlier)
    np.savez(tmp_path / "tasks.npz", long=np.ones((2, 3, 1)), short=np.ones((2, 2, 1)), R0=earlier)
    expected = Responses(np.ones((2, 3, 1), int), prior_outcomes=earlier).prior_outcomes
    for path, task in (("one.npz", None), ("tasks.npz", "long")):
        found = read_responses(tmp_path / path, task=task).prior_outcomes
        np.testing.assert_array_equal(found, expected)


def test_archive_of_one_task_has_no_choice(tmp_path):
    np.savez(tmp_path / "one.npz", R=[[1]])
    with pytest.raises(DataError, match=r"task must be left out for archives with an array R"):
        read_responses(tmp_path / "one.npz", task="x")
