"""Fields, types, bounds, overrides and help, on a small schema made for them."""

import dataclasses
import json

import ml_collections
import pytest

from maxlm.config import (
    Config,
    ConfigError,
    build,
    from_config_dict,
    override,
    setting,
    to_config_dict,
    to_plain,
)
from maxlm.config.overrides import describe


@dataclasses.dataclass(frozen=True, kw_only=True)
class Item:
    path: str = setting(dataclasses.MISSING, "where it is")
    weight: float = setting(1.0, "its share", above=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine:
    steps: int = setting(10, "how often", minimum=1, maximum=1000)
    rate: float = setting(0.5, "how fast", minimum=0, maximum=1)
    kind: str = setting("steam", "what drives it", choices=("steam", "diesel"))
    loud: bool = setting(False, "can be heard")
    limit: int | None = setting(None, "an end, or none", minimum=1)
    fuel: str | tuple[Item, ...] = setting("", "a path or a list of them")
    sizes: tuple[int, ...] = setting((1, 2), "some sizes")

    def check(self, path):
        if self.loud and self.kind == "steam":
            raise ConfigError(f"{path}.loud: steam is quiet")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train:
    engine: Engine = setting(Engine(), "in front")
    cars: int = setting(3, "behind", minimum=0)


def message(values) -> str:
    with pytest.raises(ConfigError) as caught:
        build(Train, values)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"engine": {"stepz": 3}}, "config.engine.stepz: no such field; did you mean 'steps'?"),
        ({"zzz": 3}, "config.zzz: no such field; valid names: cars, engine"),
        ({"engine": {"steps": "many"}}, "config.engine.steps: expected an integer, got 'many'"),
        ({"engine": {"steps": True}}, "config.engine.steps: expected an integer, got True"),
        ({"engine": {"steps": 2.5}}, "config.engine.steps: expected an integer, got 2.5"),
        ({"engine": {"steps": None}}, "config.engine.steps: expected an integer, got None"),
        ({"engine": {"steps": 0}}, "config.engine.steps: must be at least 1, got 0"),
        ({"engine": {"steps": 1001}}, "config.engine.steps: must be at most 1000, got 1001"),
        ({"engine": {"rate": "x"}}, "config.engine.rate: expected a number, got 'x'"),
        ({"engine": {"rate": float("nan")}},
         "config.engine.rate: must be a finite number, got nan"),
        ({"engine": {"rate": 1e999}}, "config.engine.rate: must be a finite number, got inf"),
        ({"engine": {"rate": 3.5e38}}, "config.engine.rate: 3.5e+38 is not a float32 "
         "number; use 0, or a magnitude from 1.18e-38 to 3.4e+38"),
        ({"engine": {"rate": 1e-39}}, "config.engine.rate: 1e-39 is not a float32 "
         "number; use 0, or a magnitude from 1.18e-38 to 3.4e+38"),
        ({"engine": {"steps": 1e999}}, "config.engine.steps: expected an integer, got inf"),
        ({"engine": {"kind": "deisel"}},
         "config.engine.kind: 'deisel' is not one of steam, diesel; did you mean 'diesel'?"),
        ({"engine": {"loud": 1}}, "config.engine.loud: expected True or False, got 1"),
        ({"engine": {"loud": True}}, "config.engine.loud: steam is quiet"),
        ({"engine": {"limit": 0}}, "config.engine.limit: must be at least 1, got 0"),
        ({"engine": {"limit": "x"}}, "config.engine.limit: expected an integer or None, got 'x'"),
        ({"engine": 5}, "config.engine: expected a table with fields steps, rate, kind, loud, "
         "limit, fuel, sizes, got 5"),
        ({"engine": {"fuel": [{"path": "a", "weigth": 2}]}},
         "config.engine.fuel[0].weigth: no such field; did you mean 'weight'?"),
        ({"engine": {"fuel": [{"path": "a"}, {"weight": 2}]}},
         "config.engine.fuel[1].path: must be set (where it is)"),
        ({"engine": {"fuel": [{"path": "a", "weight": 0}]}},
         "config.engine.fuel[0].weight: must be above 0, got 0.0"),
        ({"engine": {"fuel": 7}}, "config.engine.fuel: expected a text or a list of a table with "
         "fields path, weight, got 7"),
        ({"engine": {"sizes": [1, "b"]}}, "config.engine.sizes[1]: expected an integer, got 'b'"),
        ({"engine": {"fuel": {"path": "a"}}}, "config.engine.fuel: expected a list, got one Item; "
         "put it in brackets with a comma, as in (Item(...),)"),
        ({"engine": {"fuel": {"a": 1}}}, "config.engine.fuel: expected a text or a list of a table "
         "with fields path, weight, got {'a': 1}"),
        ({"cars": "a\n" * 999}, "config.cars: expected an integer, got "
         + ("'" + r"a\n" * 999)[:200] + "..."),
    ],
)
def test_each_mistake_is_one_line_that_names_the_field(values, expected):
    assert message(values) == expected


def test_defaults_and_conversions():
    assert build(Train, {}) == Train()
    train = build(Train, {"engine": {"steps": 1e2, "rate": 1, "sizes": [4]}, "cars": 0})
    assert train.engine.steps == 100 and isinstance(train.engine.steps, int)
    assert train.engine.rate == 1.0 and isinstance(train.engine.rate, float)
    assert train.engine.sizes == (4,)


def test_one_item_for_a_list_is_one_line_through_a_config_file_too():
    for fuel in (Item(path="a"), [[Item(path="a")]], {"path": Item(path="a")}):
        config = to_config_dict(Train(engine=Engine(fuel=fuel)))  # pyright: ignore
        with pytest.raises(ConfigError) as caught:
            from_config_dict(Train, config)
        text = str(caught.value)
        assert "\n" not in text and text.startswith("config.engine.fuel")
        assert ("as in (Item(...),)" in text) == (not isinstance(fuel, list))


FULL = Train(
    engine=Engine(steps=7, kind="diesel", loud=True, limit=3, sizes=(5,),
                  fuel=(Item(path="a"), Item(path="b", weight=2.5))),
    cars=9)


def test_round_trips_through_config_dict_and_json():
    assert from_config_dict(Train, to_config_dict(FULL)) == FULL
    assert build(Train, json.loads(json.dumps(to_plain(FULL)))) == FULL
    assert json.loads(to_config_dict(FULL).to_json_best_effort()) == to_plain(FULL)


def test_the_config_dict_is_locked_at_every_level():
    config = to_config_dict(FULL)
    with pytest.raises(KeyError):
        config["car"] = 3
    with pytest.raises(AttributeError):
        config.engine.step = 3
    config.engine.steps = 3  # an existing field can be changed
    assert from_config_dict(Train, config).engine.steps == 3


def overridden(name: str, text: str) -> Train:
    config = to_config_dict(Train())
    override(config, Train, name, text)
    assert config.is_locked and config.engine.is_locked
    return from_config_dict(Train, config)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("engine.steps", "12", 12),
        ("engine.steps", "1e2", 100),
        ("engine.steps", "1_00", 100),
        ("engine.rate", "1", 1.0),
        ("engine.rate", "2.5e-1", 0.25),
        ("engine.kind", "diesel", "diesel"),
        ("engine.loud", "false", False),
        ("engine.loud", "False", False),
        ("engine.loud", "0", False),
        ("engine.limit", "none", None),
        ("engine.limit", "None", None),
        ("engine.limit", "4", 4),
        ("engine.fuel", "some/path", "some/path"),
        ("engine.fuel", "1e5", "1e5"),
        ("engine.fuel", '[{"path": "a"}, {"path": "b", "weight": 2}]',
         (Item(path="a"), Item(path="b", weight=2.0))),
        ("engine.sizes", "[3, 4]", (3, 4)),
    ],
)
def test_override_parses_by_the_type_of_the_field(name, text, value):
    result = getattr(overridden(name, text).engine, name.partition(".")[2])
    assert result == value and type(result) is type(value)


def test_override_true():
    config = to_config_dict(Train())
    override(config, Train, "engine.kind", "diesel")
    override(config, Train, "engine.loud", "true")
    assert from_config_dict(Train, config).engine.loud is True


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("engine.stepz", "3", "config.engine.stepz: no such field; did you mean 'steps'?"),
        ("steps", "3", "config.steps: no such section; did you mean 'engine.steps'?"),
        ("step", "3", "config.step: no such section; did you mean 'engine.steps'?"),
        ("engin.steps", "3", "config.engin: no such field; did you mean 'engine'?"),
        ("engine", "3", "config.engine: is a section; set one of its fields: steps, rate, kind, "
         "loud, limit, fuel, sizes"),
        ("engine.steps.more", "3", "config.engine.steps: is a value, not a section"),
        ("engine.steps", "", "config.engine.steps: expected an integer, got ''"),
        ("engine.steps", "ten", "config.engine.steps: expected an integer, got 'ten'"),
        ("engine.steps", "2.5", "config.engine.steps: expected an integer, got 2.5"),
        ("engine.steps", "inf", "config.engine.steps: expected an integer, got inf"),
        ("engine.steps", "none", "config.engine.steps: expected an integer, got 'none'"),
        ("engine.steps", "-1", "config.engine.steps: must be at least 1, got -1"),
        ("engine.rate", "nan", "config.engine.rate: must be a finite number, got nan"),
        ("engine.loud", "maybe", "config.engine.loud: expected True or False, got 'maybe'"),
        ("engine.kind", "coal", "config.engine.kind: 'coal' is not one of steam, diesel"),
        ("engine.sizes", "3", "config.engine.sizes: expected a list of an integer, got '3'; "
         "write it like --config.engine.sizes='[1,2]'"),
        ("engine.sizes", "1,2", "config.engine.sizes: expected a list of an integer, got '1,2'; "
         "write it like --config.engine.sizes='[1,2]'"),
        ("engine.sizes", "(1, 2)", "config.engine.sizes: expected a list of an integer, got "
         "'(1, 2)'; write it like --config.engine.sizes='[1,2]'"),
        ("engine.fuel", '[{"path": "a", "weight": -1}]',
         "config.engine.fuel[0].weight: must be above 0, got -1.0"),
    ],
)
def test_override_mistakes(name, text, expected):
    with pytest.raises(ConfigError) as caught:
        overridden(name, text)
    assert str(caught.value) == expected


def test_a_list_in_wrong_syntax_shows_the_right_one():
    @dataclasses.dataclass(frozen=True)
    class Lists:
        names: tuple[str, ...] = setting((), "texts")
        shares: tuple[float, ...] = setting((), "numbers")

    hint = "; write it like --config.names='[\"a\",\"b\"]'"
    for text, message in [
            ("zh,en", "expected a list of a text, got 'zh,en'" + hint),
            ("", "expected a list of a text, got ''" + hint),
            ("['zh']", "not valid JSON (Expecting value: line 1 column 2 (char 1))" + hint),
            ("[zh]", "not valid JSON (Expecting value: line 1 column 2 (char 1))" + hint)]:
        with pytest.raises(ConfigError) as caught:
            override(to_config_dict(Lists()), Lists, "names", text)
        assert str(caught.value) == "config.names: " + message
    with pytest.raises(ConfigError, match=r"='\[0\.1,0\.2\]'$"):
        override(to_config_dict(Lists()), Lists, "shares", "0.1")
    with pytest.raises(ConfigError) as caught:  # in a config file no shell takes the quotes
        build(Lists, {"names": "zh"})
    assert str(caught.value) == (
        """config.names: expected a list of a text, got 'zh'; write it like ["a","b"]""")


def test_override_of_broken_json_says_so():
    with pytest.raises(ConfigError, match=r"^config\.engine\.fuel: not valid JSON \("):
        overridden("engine.fuel", '[{"path": }]')


def test_override_of_a_section_the_file_left_out():
    config = ml_collections.ConfigDict({"cars": 5}).lock()
    override(config, Train, "engine.steps", "4")
    assert from_config_dict(Train, config) == Train(engine=Engine(steps=4), cars=5)


def test_override_inside_something_that_is_no_section():
    config = ml_collections.ConfigDict({"engine": 5}).lock()
    with pytest.raises(ConfigError, match=r"^config\.engine: expected a table .*, got 5$"):
        override(config, Train, "engine.steps", "4")


def test_a_single_choice_reads_well():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Single:
        size: int = setting(1, "only one", choices=(1,))

    with pytest.raises(ConfigError, match=r"^config\.size: can only be 1, got 2$"):
        build(Single, {"size": 2})


def test_help_lists_every_field_with_default_and_choices():
    text = describe(Train)
    for line in ("--config.cars=3", "--config.engine.steps=10", "--config.engine.rate=0.5",
                 "--config.engine.kind='steam', one of steam|diesel", "--config.engine.limit=None"):
        assert line in text
    assert "how often" in text and "what drives it" in text


@pytest.mark.parametrize(("name", "text", "ascii_form"), [
    ("run.steps", "１２", "12"), ("run.steps", "１e３", "1e3"), ("run.seed", "٣", "3"),
    ("schedule.learning_rate", "３e-4", "3e-4"), ("schedule.learning_rate", "０．１", "0.1"),
    ("schedule.learning_rate", "－１", "-1"), ("data.epochs", "４", "4"),
])
def test_numbers_are_written_in_ascii(name, text, ascii_form):
    with pytest.raises(ConfigError) as caught:
        override(Config().to_config_dict(), Config, name, text)
    assert str(caught.value) == (f"config.{name}: {text!r} has digits or signs that are not ASCII; "
                                 f"write {ascii_form}")


def test_other_texts_than_numbers_may_have_any_characters():
    table = Config().to_config_dict()
    override(table, Config, "data.tokens", "１２")
    assert table.data.tokens == "１２"
    with pytest.raises(ConfigError, match="expected an integer, got '十二'"):
        override(table, Config, "run.steps", "十二")
