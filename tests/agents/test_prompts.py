"""Prompts: placeholders and values match both ways, and every role is told what it needs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from agents_kit import COOKBOOK, PLACEMENT, brief_of, kernel_text, parent

from cupilot.agents import facts, roles
from cupilot.agents.roles import ROLES, Task
from cupilot.agents.templates import Prompts, shipped_prompts
from cupilot.brief import Brief, Complaint, Refuted
from cupilot.kernel.file import parse_kernel
from cupilot.ledger import Credit
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.strategy.tactics import load_cookbook

KERNEL = parse_kernel(kernel_text("vectorize"))
STRATEGY = Strategy((TacticUse.of("vectorize"),), ("Keep the row in registers.",), "Because.")


def tasks(brief: Brief) -> dict[str, Task]:
    a, b = parent("one", speedup=1.5), parent("two")
    made = (
        roles.generate(brief),
        roles.plan(brief, 1),
        roles.cross(brief, (a, b), 1),
        roles.translate(brief, STRATEGY, a),
        roles.align(brief, STRATEGY, KERNEL),
        roles.repair(brief, STRATEGY, KERNEL, Complaint("compile", "line 7: no", "kernel:7: error: no")),
        roles.repair(brief, STRATEGY, KERNEL, Complaint("verify", "out[3] is wrong")),
        roles.refine(brief, a),
        roles.merge(brief, (a, b), 1),
    )
    return {task.role.name: task for task in made}


def sent(brief: Brief, name: str) -> str:
    request = roles.request(tasks(brief)[name], brief, shipped_prompts())
    return request.system + request.turns[0].text


@pytest.fixture
def brief(relu: Problem) -> Brief:
    return replace(
        brief_of(relu),
        placement=PLACEMENT,
        credit={"unroll": Credit(0.2, 0.05, 3, 1)},
        similar=(STRATEGY,),
        refuted=(Refuted(Strategy((TacticUse.of("tile", size=4),)), "out[3] is wrong"),),
    )


def test_every_role_has_a_prompt_with_all_its_values(brief: Brief) -> None:
    assert tasks(brief).keys() == ROLES.keys()
    for name in ROLES:
        text = sent(brief, name)
        assert "{{" not in text and "}}" not in text.replace("}}}", "")
        assert len(text) > 1000


@pytest.mark.parametrize("language", ["cpp", "cu"])
def test_every_device_has_its_part(brief: Brief, language: str) -> None:
    text = sent(replace(brief, language=language), "generator")
    assert ("__global__" in text) == (language == "cu")


def test_a_missing_and_a_spare_value_are_errors() -> None:
    prompts = Prompts({"a.md": "{{> b.md}} {{x}}", "b.md": "{{y}}"})
    assert prompts.placeholders("a.md") == {"x", "y"}
    assert prompts.render("a.md", {"x": "1", "y": "2"}) == "2 1\n"
    with pytest.raises(ValueError, match="no value for"):
        prompts.render("a.md", {"x": "1"})
    with pytest.raises(ValueError, match="no place for"):
        prompts.render("a.md", {"x": "1", "y": "2", "z": "3"})


def test_every_shipped_file_is_used() -> None:
    prompts = shipped_prompts()
    roots = [f"{name}.md" for name in ROLES] + ["system_code.md", "system_strategy.md", "correction.md"]
    roots += ["_device_cpp.md", "_device_cu.md"]
    used = "".join(prompts.files[name] for name in prompts.files)
    for name in prompts.files:
        assert name in roots or f"{{{{> {name}}}}}" in used, name


def test_guidance_ranks_by_what_binds_and_by_credit(brief: Brief) -> None:
    text = sent(brief, "manager-plan")
    assert "memory-bound" in text and "what binds is DRAM bandwidth" in text
    assert "only what moves one of these can pay here: bytes, parallelism" in text
    assert "measured so far +22 % ± 6 (n = 3), 1 failed" in text
    assert "tile(size=4): out[3] is wrong" in text and "Keep the row in registers." in text


@pytest.mark.parametrize("name", ROLES)
def test_without_guidance_nothing_of_the_roofline_is_told(brief: Brief, name: str) -> None:
    """Not the digest, and no advice on a kernel: its gains and its choice are the roofline's."""
    text = sent(replace(brief, placement=None), name)
    for word in ("-bound", "DRAM", "zone", "ridge", "floor", "headroom", "attainable", "up to 2 times"):
        assert word not in text, word
    assert "the loop is scalar" not in text and "scalar arithmetic" not in text
    if name in ("manager-cross", "translator", "revisor-performance", "code-crossover"):
        assert "1.50 times as fast as the framework, 1 ms a call" in text  # plain times stay
        assert "scalar arithmetic" in sent(brief, name)


@pytest.mark.parametrize("language", ["cpp", "cu"])
def test_advice_names_no_tactic_that_is_not_offered(brief: Brief, language: str) -> None:
    """Whatever was recorded, and whoever writes in another language: then it is said in words."""
    told = replace(brief, language=language, cookbook=load_cookbook().written_in(language))
    ids = [*load_cookbook().to_json(), "register-block", "exploit-structure", None]
    actions = [{"tactic": tactic, "why": f"because of {tactic}", "expected_gain": 2.0} for tactic in ids]
    advice = {"severity": "high", "cause": "much", "actions": actions}
    shown = facts.base(replace(parent("one"), advice=(advice,)), told)
    named = set(re.findall(r"`([\w-]+)`", shown))
    assert named == {tactic.id for tactic in told.cookbook}
    for tactic in ids:
        assert f"up to 2 times as fast: because of {tactic}" in shown


def test_figures_stand_beside_the_kernel_they_were_measured_of(brief: Brief) -> None:
    text = tasks(brief)["code-crossover"].values
    assert "1.50 times as fast" in text["parent_a"] and "one();" in text["parent_a"]
    assert "1.00 times as fast" in text["parent_b"] and "two();" in text["parent_b"]
    refined = tasks(brief)["revisor-performance"].values
    assert "80% of that is headroom" in refined["guidance"] and "the loop is scalar" in refined["base"]


def test_long_logs_are_shortened_in_the_middle(brief: Brief) -> None:
    log = "begin " + "x" * 10_000 + " end"
    task = roles.repair(brief, STRATEGY, KERNEL, Complaint("compile", "no", log))
    assert len(task.values["complaint"]) < 4000
    assert "begin" in task.values["complaint"] and "end" in task.values["complaint"]


def test_a_language_sees_only_its_own_tactics() -> None:
    cpp, cu = (load_cookbook().written_in(language) for language in ("cpp", "cu"))
    assert len(cpp) > 3 < len(cu)
    assert not {t.id for t in cpp} & {t.id for t in cu}
    assert "vectorize" in cpp and "vectorize" in COOKBOOK
