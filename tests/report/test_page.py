import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from kit import PLACEMENT, search_of, view_from

from cupilot.evaluate.result import AtTarget
from cupilot.evolve.ending import NOT_FINISHED, Ending
from cupilot.problem.problem import Problem
from cupilot.report.markup import VOID, el
from cupilot.report.page import page

LOSING = dict.fromkeys(("vectorize", "unroll", "stream", "tile", "fuse"), 0.9)


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order; remembers what would be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    return parser


def test_a_report_is_well_formed_and_loads_nothing(relu: Problem) -> None:
    text = page(view_from(search_of(relu, clumsy=True)))
    found = parsed(text)
    assert not found.open and not found.loads
    assert "url(" not in text and "@import" not in text


def test_the_champion_its_code_and_its_lineage_are_shown(relu: Problem) -> None:
    view = view_from(search_of(relu))
    text = page(view)
    assert view.ending is Ending.FASTER and view.outcome.champion is not None
    assert f"{view.outcome.champion.speedup.ratio:.2f}×" in text
    assert str(view.outcome.champion.slot) in text and "faster than PyTorch eager" in text
    assert "changes to its base" in text and view.run.verify_command in text


def test_where_the_reference_wins_the_report_says_so(relu: Problem) -> None:
    view = view_from(search_of(relu, gains=LOSING))
    assert view.ending is Ending.REFERENCE_WINS
    assert "keep the reference" in page(view) and "faster than PyTorch eager" not in page(view)


def test_where_nothing_passed_there_is_a_report_with_the_reasons(relu: Problem) -> None:
    search = search_of(relu)
    search.author.clumsy = frozenset()
    broken = search.author.generate(search.brief)
    search.author.generate = lambda brief: replace(broken, summary="broken")  # type: ignore[method-assign]
    view = view_from(search)
    text = page(view)
    assert view.ending is Ending.NOTHING_PASSED
    assert "wrong at out[3]" in text and "keep the reference" in text and not parsed(text).open


def test_failed_candidates_are_listed_with_stage_and_reason(relu: Problem) -> None:
    view = view_from(search_of(relu, clumsy=True))
    assert view.failed and f"{len(view.failed)} candidates did not pass" in page(view)


@pytest.mark.parametrize("placement", [None, replace(PLACEMENT, intensity_ops_per_byte=0.0)])
def test_a_problem_without_a_place_on_the_roofline_still_has_a_report(relu: Problem, placement) -> None:
    assert not parsed(page(view_from(search_of(relu), placement))).open


def test_several_targets_are_shown_one_by_one(relu: Problem) -> None:
    view = view_from(search_of(relu))
    assert view.outcome.proof is not None
    at = AtTarget({"LANES": 16}, view.outcome.proof.speedup, 0.5, 0.1, 0.2)
    proof = replace(view.outcome.proof, targets={"target": at, "second": replace(at, tuned={"LANES": 8})})
    text = page(replace(view, outcome=replace(view.outcome, proof=proof)))
    assert "1 more shape: geometric means" in text and "LANES = 16" in text and "LANES = 8" in text


def test_a_run_that_has_not_ended_is_not_called_lost(relu: Problem) -> None:
    view = view_from(search_of(relu))
    cut = replace(view.outcome, champion=None, proof=None, reason=NOT_FINISHED)
    view = replace(view, outcome=cut)
    assert view.ending is Ending.UNPROVEN
    assert "no final proof yet" in page(view) and "keep the reference" not in page(view)


def test_what_a_problem_says_is_text_not_markup(relu: Problem) -> None:
    view = replace(view_from(search_of(relu)), problem="<script>alert(1)</script>", source="</pre><script>")
    assert "<script" not in page(view)
    assert el("a", "<b>", title='"x"') == '<a title="&quot;x&quot;">&lt;b&gt;</a>'


def test_every_class_of_the_page_has_a_style(relu: Problem) -> None:
    text = page(view_from(search_of(relu, clumsy=True)))
    style, _, body = text.partition("</style>")
    used = {name for names in re.findall(r'class="([^"]+)"', body) for name in names.split()}
    unstyled = {name for name in used if f".{name}" not in style}
    assert unstyled <= {"f", "gap"}  # function names look like plain code
