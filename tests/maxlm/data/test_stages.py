"""Mixtures that change at a step: no row skipped or repeated, the past untouched."""

import numpy as np
import pytest

from maxlm.config import ConfigError, MixtureStage, TokenSource
from maxlm.data.plan import Plan
from tests import token_corpora
from tests.maxlm.data.plans import LENGTHS, PACKINGS, config, equal, passes, source_order


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    return path, token_corpora.random_split(path, "train", LENGTHS)




def mixture(path, **weights):
    return tuple(TokenSource(path=str(path), source=name, weight=weight)
                 for name, weight in weights.items())


def staged(path, first, *stages, seed=0, **fields):
    return Plan.build(config(path, tokens=first, stages=tuple(
        MixtureStage(after_step=step, tokens=tokens) for step, tokens in stages), **fields), seed)


STAGES = {
    "weights": lambda path: (mixture(path, web=0.7, code=0.3),
                             [(5, mixture(path, web=0.3, code=0.7))]),
    "a new source": lambda path: (mixture(path, web=1.0), [(3, mixture(path, web=0.5, law=0.5)),
                                                           (11, mixture(path, code=1.0))]),
    "back again": lambda path: (mixture(path, web=1.0), [(4, mixture(path, code=1.0)),
                                                         (6, mixture(path, web=1.0))]),
    "all by tokens, then weights": lambda path: (str(path), [(7, mixture(path, law=9.0, web=1.0))]),
    "weights, then all by tokens": lambda path: (mixture(path, web=1.0), [(2, str(path))]),
}


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("packing", PACKINGS)
def test_within_a_source_no_row_is_skipped_or_repeated_over_a_stage(corpus, name, packing):
    """Each source's rows are those of the source read alone, in the same order."""
    path = corpus[0]
    first, stages = STAGES[name](path)
    plan = staged(path, first, *stages, packing=packing)
    assert len(plan.describe()["stages"]) == len(stages) + 1
    for source in plan.sources:
        alone = Plan.build(config(path, tokens=mixture(path, **{source: 1.0}), packing=packing), 0)
        mine = source_order(plan, source, 120)
        assert mine == source_order(alone, source, 120)[:len(mine)]
        assert len(mine) > 5


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_changes_nothing_before_it_begins(corpus, name):
    path = corpus[0]
    first, stages = STAGES[name](path)
    plan = staged(path, first, *stages)
    for number, (step, _) in enumerate(stages):
        without = staged(path, first, *stages[:number])
        for before in range(step):
            assert equal_texts(plan, without, before)
        assert not all(equal_texts(plan, without, after) for after in range(step, step + 8))


def equal_texts(one, two, step):
    """The same rows, though the plans may number their sources differently."""
    return all(np.array_equal(one.rows(step)[name], two.rows(step)[name])
               for name in one.rows(step) if name != "source")


def test_a_stage_with_the_weights_of_the_one_before_changes_nothing(corpus):
    path = corpus[0]
    for same in (mixture(path, web=0.7, code=0.2, law=0.1), str(path)):
        plain, plan = staged(path, same), staged(path, same, (3, same), (10, same))
        assert all(equal(plain.rows(step), plan.rows(step)) for step in range(30))


def test_a_source_of_one_name_in_two_directories_keeps_its_label(corpus, tmp_path):
    token_corpora.random_split(tmp_path / "t", "train", LENGTHS, seed=5)
    path = corpus[0]
    plan = staged(path, mixture(path, web=1.0), (2, mixture(tmp_path / "t", web=1.0)),
                  (4, mixture(path, web=1.0)))
    assert plan.sources == ("web", "web#2")
    assert [plan.locate(step * 4).source for step in range(6)] == [
        "web", "web", "web#2", "web#2", "web", "web"]


def test_stages_far_away_are_counted_in_64_bits(corpus):
    path, far = corpus[0], 10**12
    plan = staged(path, mixture(path, web=0.5, code=0.5), (far, mixture(path, code=1.0)),
                  batch_size=4096)
    row = far * 4096
    before = [plan.locate(r) for r in range(row - 4, row)]
    after = [plan.locate(r) for r in range(row, row + 4)]
    assert {location.source for location in after} == {"code"}
    sizes = {source["name"]: source["rows_per_epoch"] for source in plan.describe()["sources"]}
    last = max(location.epoch for location in before if location.source == "code")
    assert last <= after[0].epoch <= last + 1
    assert after[0].epoch == pytest.approx(far * 2048 * 1.0 / sizes["code"], rel=0.5)


def test_hosts_agree_across_a_stage(corpus):
    path = corpus[0]
    first, stages = STAGES["a new source"](path)
    data = {"batch_size": 7}
    whole = staged(path, first, *stages, **data)
    for step in (2, 3, 10, 11):
        parts = [staged(path, first, *stages, **data).rows(step, range(host, 7, 3))
                 for host in range(3)]
        for name, array in whole.rows(step).items():
            joined = np.empty_like(array)
            for host, part in enumerate(parts):
                joined[host::3] = part[name]
            np.testing.assert_array_equal(joined, array)


def test_epochs_are_counted_over_stages(corpus):
    path = str(corpus[0])
    stages = (MixtureStage(after_step=10, tokens=mixture(path, web=1.0, law=0.2)),
              MixtureStage(after_step=25, tokens=mixture(path, law=1.0)))
    plan = Plan.build(config(path, tokens=mixture(path, web=1.0), stages=stages), 0, steps=40)
    assert plan.passed_epochs() == passes(plan, 40) != {}
    possible = min(step for step, marks in passes(plan, 40).items() if marks.get("law") == 16) - 1
    with pytest.raises(ConfigError, match=f"'law' more than 16 times; {possible} steps are"):
        Plan.build(config(path, tokens=mixture(path, web=1.0), stages=stages, epochs=16), 0,
                   steps=40)


def test_mistakes_in_stages_are_named(corpus, tmp_path):
    path = corpus[0]
    with pytest.raises(ConfigError, match=r"data\.stages\[0\]\.tokens\[1\]: no directory"):
        staged(path, str(path), (3, (TokenSource(path=str(path), source="web"),
                                     TokenSource(path=str(tmp_path / "none")))))
    with pytest.raises(ConfigError, match=r"config\.data\.stages\[1\]\.tokens: must be set"):
        staged(path, str(path), (3, str(path)), (4, ""))
    with pytest.raises(ConfigError, match=r"data\.stages\[0\]\.tokens: the list is empty"):
        staged(path, str(path), (3, ()))
    with pytest.raises(ConfigError, match=r"stages\[0\]\.tokens\[1\].*'web'.*listed twice"):
        staged(path, str(path), (3, mixture(path, web=1.0) + mixture(path, web=2.0)))
    with pytest.raises(ConfigError, match="no source 'cod'; did you mean 'code'"):
        staged(path, str(path), (3, mixture(path, cod=1.0)))
