from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from baseline_cases import town_matrix
from consilience.errors import ConfigError, DataError
from consilience.valuation.baselines.imported import ImportedPredictions, read_predictions_table
from consilience.valuation.features import FeatureMatrix

DAY = date(2022, 12, 31)
QUANTILES = "q05,q25,q50,q75,q95"


@pytest.fixture(scope="module")
def matrix() -> FeatureMatrix:
    return town_matrix(300, 2)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "avm.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_predicts_the_sales_it_names_and_no_others(tmp_path: Path, matrix: FeatureMatrix) -> None:
    test = matrix.part("test")
    first, second = test.frame["tx_id"][:2]
    path = write(tmp_path, f"id,point,{QUANTILES}", f"{second},200000,1,2,3,4,5", f"{first},100000,,,,,")
    fitted = ImportedPredictions(path, DAY).fit(matrix.part("train"), matrix.part("validation"))
    predicted = fitted.predict(test)
    assert predicted.point[:2].tolist() == [100_000.0, 200_000.0]
    assert np.isnan(predicted.point[2:]).all()
    assert predicted.quantiles[1].tolist() == [1, 2, 3, 4, 5]
    assert np.isnan(predicted.quantiles[0]).all()
    assert predicted.notes[0] == f"2 of {len(test)} subjects are in avm.csv."
    assert fitted.information_date == DAY


def test_what_was_valued_before_the_maker_knew_is_told(tmp_path: Path, matrix: FeatureMatrix) -> None:
    first = matrix.part("test").frame["tx_id"][0]
    path = write(tmp_path, "id,point", f"{first},100000")
    fitted = ImportedPredictions(path, date(2030, 1, 1)).fit(matrix.part("train"), matrix.part("validation"))
    assert "1 of them were valued before 2030-01-01" in fitted.predict(matrix.part("test")).notes[1]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["id,price", "a,1"], 'no column "point"'),
        (["id,point,colour", "a,1,red"], 'unknown column "colour"'),
        (["id,point,q05", "a,1,1"], 'has the column "q05" but not "q25"'),
        (["id,point", "a,1", "b,much"], "line 3, column \"point\": 'much' is not a number"),
        (["id,point", "a,1", "a,2"], "line 3, column \"id\": 'a' stands twice"),
        (["id,point", ",1"], 'line 2, column "id": empty is no id'),
        (["id,point", "a,"], 'line 2, column "point": empty is no price'),
        (["id,point", "a,-5"], 'line 2, column "point": -5.0 is no price'),
        (["id,point", "a,nan"], 'line 2, column "point": nan is no price'),
        ([f"id,point,{QUANTILES}", "a,3,1,2,,4,5"], 'line 2, column "q50": empty lacks its quantile'),
        ([f"id,point,{QUANTILES}", "a,3,1,2,3,2.5,5"], 'line 2, column "q75": 2.5 lies below q50'),
    ],
)
def test_errors_name_row_and_column(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(DataError) as caught:
        read_predictions_table(write(tmp_path, *lines))
    assert said in str(caught.value)


def test_a_stranger_is_refused(tmp_path: Path, matrix: FeatureMatrix) -> None:
    path = write(tmp_path, "id,point", "somebody,5")
    with pytest.raises(DataError, match="line 2, column \"id\": 'somebody' is no sale"):
        ImportedPredictions(path, DAY).fit(matrix.part("train"), matrix.part("validation"))


def test_parquet_is_read_and_named_by_row(tmp_path: Path) -> None:
    path = tmp_path / "avm.parquet"
    pl.DataFrame({"id": [7, 8], "point": [1.5, -2.0]}).write_parquet(path)
    with pytest.raises(DataError, match=r'row 2, column "point": -2\.0 is no price'):
        read_predictions_table(path)


def test_without_a_table_there_is_nothing_to_fit(matrix: FeatureMatrix) -> None:
    with pytest.raises(ConfigError, match="needs a table"):
        ImportedPredictions().fit(matrix.part("train"), matrix.part("validation"))
