from __future__ import annotations

import time

import pytest

from consilience.evidence.figures import Figure, figure_of

WRITTEN = {
    412000: (
        [
            "412000",
            "412,000",
            "412 000",
            "412\xa0000",
            "412\u202f000",
            "412\u2009000",
            "412.000",
            "412'000",
            "412’000",
            "412_000",
            "4,12,000",
            "412\u200b000",
            r"412\u200b000",
            "$412,000.00",
            "USD412000",
            "412000.",
            "412000.00",
            "412k",
            "412K",
            "412 k",
            "412-k",
            "412.0k",
            "412 thousand",
            "412 mille",
            "412e3",
            "$0.412M",
            "$.412M",
            "0.412 million",
            "0,412 Mio",
            "0.4120M",
            "0.412e6",
            "4.12e5",
            "4.12E+05",
            "4.120e5",
            "4.12×10^5",
            "4.12 x 10⁵",
            "4.12·10**5",
            "４１２０００",
            "４１２,０００",
            "٤١٢٠٠٠",
            "٤١٢٬٠٠٠",
            "2014,3,412000,5",
            "(412000)",
            "no.412000x",
        ]
    ),
    1250000: ["1250000", "1,250,000", "1 250 000", "12,50,000", "1.25M", "1.25m", "$1.250 million", "1250k", "1,250k"],
    500000: ["500k", "$0.5M", ".5M", "0.50M", "5e5", "500,000", "5,00,000"],
    52000: ["52k", "$0.052M", "5.2e4", "52,000"],
    412350: ["412,350", "412.35k", "0.41235M", "4.1235e5"],
    1995: ["1,995", "1.995k", "1 995"],
}
OTHERS = {
    412000: (
        [
            "1,412,000",
            "4120001",
            "3412000",
            "412,000,000",
            "3.412000",
            "412",
            "412m",
            "1.412M",
            "10.412M",
            "41200",
            "412kg",
            "0.412",
            "0.412 m",
            "412001",
            "412 m",
            "4.12e50",
            "4.12e4",
            "412,0001",
            "C412",
            "410k",
        ]
    ),
    1250000: ["1,250", "1.25", "1250 m", "11.25M", "1,250,000,000", "1.25mg", "21,250,000"],
    500000: ["5", "50k", "1.5M", "5000000", "0.5 m", "2.5e5", "1500k"],
    1995: ["1995", "in 1995-03-01", "51995", "1,9950"],
}


@pytest.mark.parametrize(("value", "text"), [(v, t) for v, texts in WRITTEN.items() for t in texts])
def test_usual_ways_of_writing_are_found(value: int, text: str) -> None:
    assert Figure(value).occurs_in(text)
    assert Figure(value).occurs_in(f"It went for {text}, they say.")


@pytest.mark.parametrize(("value", "text"), [(v, t) for v, texts in OTHERS.items() for t in texts])
def test_other_numbers_are_not(value: int, text: str) -> None:
    assert not Figure(value).occurs_in(text)
    assert not Figure(value).occurs_in(f"It went for {text}; they say.")


@pytest.mark.parametrize(
    ("target", "value"),
    [
        (412000, 412000),
        (412000.4, 412000),
        (-412000.0, 412000),
        (1000, 1000),
        (999.9, None),
        (0.0, None),
        (1, None),
        ("412000", None),
        (None, None),
        (True, None),
    ],
)
def test_only_numbers_from_1000_up_are_looked_for(target: float | str | None, value: int | None) -> None:
    assert figure_of(target) == (None if value is None else Figure(value))


@pytest.mark.parametrize("text", ["41 " * 500_000, "a412" * 400_000, "\u00e9412," * 300_000])
def test_huge_texts_take_less_than_a_second(text: str) -> None:
    start = time.process_time()
    assert not Figure(412777).occurs_in(text)
    assert time.process_time() - start < 1
