"""Programs rewritten into programs that compute the same with other operations."""

from __future__ import annotations

from dataclasses import replace

from cupilot.author.program import Node, Program


def without_divisions(program: Program) -> Program:
    """Quotients by what stays the same while the dividend varies, as products with its reciprocal.

    Two factors: one keeps the other, the reciprocal, away from overflow and lost bits.
    """
    nodes: list[Node] = []
    known: dict[Node, int] = {}

    def add(node: Node) -> int:
        if node not in known:
            known[node] = len(nodes)
            nodes.append(node)
        return known[node]

    moved: list[int] = []
    for node in program.nodes:
        args = tuple(moved[a] for a in node.args)
        if node.op == "div" and nodes[args[1]].axes < node.axes and nodes[args[1]].op != "number":
            size = Node("rescale", (args[1],), nodes[args[1]].axes)
            inverse = Node("inverse", (args[1],), nodes[args[1]].axes)
            scaled = add(Node("mul", (args[0], add(size)), nodes[args[0]].axes | size.axes))
            moved.append(add(Node("mul", (scaled, add(inverse)), node.axes)))
        else:
            moved.append(add(replace(node, args=args)))
    return replace(
        program,
        nodes=tuple(nodes),
        outputs=tuple(replace(output, node=moved[output.node]) for output in program.outputs),
        steps=tuple(tuple(moved[i] for i in step) for step in program.steps),
    )
