"""Code with one thing wrong: another sign or operator, one more, indices swapped, a term or a statement left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

OTHER: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def wrongs_of(function: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield everything that may be wrong in a function: what, and the function, wrong until the next one."""
    for parent in list(ast.walk(function)):
        for name, part in ast.iter_fields(parent):
            for at, node in enumerate(part if isinstance(part, list) else [part]):
                for change in wrong_nodes(node):
                    changed = [*part[:at], change, *part[at + 1 :]] if isinstance(part, list) else change
                    setattr(parent, name, changed)
                    yield f"{function.name}: {ast.unparse(node)} -> {ast.unparse(change)}", function
                    setattr(parent, name, part)


def wrong_nodes(node: object) -> list[ast.AST]:
    """Return what may stand for a piece of code that is right; nothing for what is no code."""
    made: list[ast.AST] = []
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() as op, right):
            made = [ast.BinOp(left, OTHER[type(op)](), right), left, right]
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr() as op, right):
            made = [ast.BinOp(left, OTHER[type(op)](), right), left]
        case ast.AugAssign(target, op, more):
            made = [
                ast.AugAssign(target, OTHER[type(op)](), more),
                ast.AugAssign(target, op, one_more(more)),
                ast.Pass(),
            ]
        case ast.Assign(targets=[ast.Subscript()] as targets, value=number):
            made = [ast.Assign(targets, one_more(number), lineno=0), ast.Pass()]
        case ast.Expr(ast.Call()):
            made = [ast.Pass()]
        case ast.Compare(left, [op], right) if type(op) in OTHER:
            made = [ast.Compare(left, [OTHER[type(op)]()], right)]
        case ast.UnaryOp(ast.Invert() | ast.USub(), operand):
            made = [operand]
        case ast.Return(ast.expr() as number) if not isinstance(number, ast.Constant):
            made = [ast.Return(one_more(number))]
        case ast.Subscript(table, ast.Tuple([first, second, *others]), context):
            made = [ast.Subscript(table, ast.Tuple([second, first, *others], ast.Load()), context)]
    return [ast.copy_location(one, node) for one in made if isinstance(node, ast.AST)]


def one_more(number: ast.expr) -> ast.expr:
    """Return an expression that is greater by one."""
    return ast.BinOp(number, ast.Add(), ast.Constant(1))
