"""The proven champion as files: the kernel with its strategy and its proof's identity, and the proof."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from cupilot.evaluate.result import Evaluation, to_json
from cupilot.evolve.answers import code_hash
from cupilot.evolve.candidate import Candidate
from cupilot.kernel.file import KernelFile, print_kernel
from cupilot.problem.problem import Problem


def signed(champion: Candidate, proof: Evaluation, problem: Problem) -> KernelFile:
    """The kernel pinned to the proven point of its tunables, saying what it does and what was proven."""
    kernel = pinned(champion.kernel, proof)
    lines = [
        f"identity: {proof_identity(kernel, proof, problem)}",
        f"problem: {problem.name} {problem.graph.fingerprint()}",
        proof.reason,
        *(f"over {name}: {interval}" for name, interval in proof.speedup.items()),
    ]
    words = [str(use) for use in champion.strategy.uses] + list(champion.strategy.free_steps)
    return replace(kernel, strategy="\n".join(words) or "plain", proof="\n".join(lines))


def pinned(kernel: KernelFile, proof: Evaluation) -> KernelFile:
    """Each tunable keeps only its proven value; with one point per target, only what all of them share."""
    points = [at.tuned for at in proof.targets.values()] or [proof.tuned]
    tune = tuple(
        replace(t, values=tuple(v for v in t.values if any(point.get(t.name) == v for point in points)))
        for t in kernel.tune
    )
    return replace(kernel, tune=tune)


def proof_identity(kernel: KernelFile, proof: Evaluation, problem: Problem) -> str:
    """Changes with the kernel, the problem and every figure of the proof."""
    parts = [code_hash(kernel), problem.graph.fingerprint(), to_json(proof)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def write_champion(
    folder: Path, champion: Candidate, proof: Evaluation, problem: Problem, language: str
) -> Path:
    """champion/<problem>.<language> and champion/proof.json; what an earlier session left makes room."""
    target = folder / "champion"
    target.mkdir(exist_ok=True)
    kernel = signed(champion, proof, problem)
    path = target / f"{problem.name}.{language}"
    path.write_text(print_kernel(kernel), encoding="utf-8")
    proof_file = {
        "identity": proof_identity(pinned(champion.kernel, proof), proof, problem),
        **to_json(proof),
    }
    (target / "proof.json").write_text(json.dumps(proof_file, indent=1) + "\n", encoding="utf-8")
    return path
