"""What errors of the system and of libraries become before a user reads them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator

from consilience.config import parse_yaml, validate
from consilience.errors import ConfigError, reason


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    columns: dict[str, str]
    inner: Inner
    name: str

    @field_validator("name")
    @classmethod
    def _lower(cls, value: str) -> str:
        if not value.islower():
            raise ValueError(f'"{value}" is not lower case')
        return value


def test_a_mistyped_key_is_told_before_those_missing_because_of_it() -> None:
    with pytest.raises(ConfigError, match=r'mapping: unknown key "colums"\. Did you mean "columns"'):
        validate({"colums": {}, "inner": {"size": "many"}}, Outer, where="mapping")
    with pytest.raises(ConfigError, match=r'unknown key "inner\.siz"\. Did you mean "size"'):
        validate({"inner": {"siz": 1}}, Outer, where="mapping")


def test_a_wrong_value_is_told_without_the_library_that_found_it() -> None:
    with pytest.raises(ConfigError) as caught:
        validate({"columns": {}, "inner": {}, "name": "A"}, Outer, where="mapping")
    assert caught.value.message == 'mapping: name: "A" is not lower case'


def test_yaml_errors_name_the_place_and_carry_no_advice_of_the_library() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml("a: 1\nb: 2\na: 3\n", where="study.yaml")
    assert "line 3" in caught.value.message
    assert "suppress" not in str(caught.value)
    assert "http" not in str(caught.value)


@pytest.mark.parametrize("odd", ["a: [1", "\tb: 1", "a: !!python/object:os.system x", "a: *gone", "b: 'c\n"])
def test_bad_yaml_is_one_short_line(odd: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(odd, where="f.yaml")
    assert "\n" not in caught.value.message
    assert "line" in caught.value.message


def test_a_reason_has_no_path_no_link_and_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        (tmp_path / "gone").read_bytes()
    assert reason(missing.value) == "No such file or directory"
    with pytest.raises(ValidationError) as invalid:
        TypeAdapter(Outer).validate_json("{")
    assert "validation error" not in reason(invalid.value)
    assert "pydantic" not in reason(invalid.value)
    assert reason(ValueError("first\nsecond")) == "first"
    assert reason(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 2_000, "nested more than 100 levels deep"),
        ('{"a":' * 2_000, "nested more than 100 levels deep"),
        ("[" + "a," * 400_000 + "]", "more than 10,000 values"),
        ("".join(f"k{number}: 1\n" for number in range(50_000)), "more than 10,000 values"),
    ],
    ids=["brackets", "mappings", "list", "keys"],
)
def test_yaml_that_would_keep_the_reader_busy_is_refused_soon(text: str, said: str) -> None:
    started = time.process_time()
    with pytest.raises(ConfigError, match=said):
        parse_yaml(text, where="a.yaml")
    assert time.process_time() - started < 1.5  # it took 2 to 13 s


def test_yaml_of_many_values_and_some_levels_is_read() -> None:
    assert len(parse_yaml("".join(f"k{number}: 1\n" for number in range(4_000)), where="a.yaml")) == 4_000
    assert parse_yaml("[" * 60 + "]" * 60, where="a.yaml")
