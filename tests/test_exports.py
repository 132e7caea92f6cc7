"""What is public: no underscore, in the tuple `__all__`, and documented."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).parent.parent / "semflux"


def public_modules() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts)


MODULES = list(public_modules())


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


def described(body: list[ast.stmt]) -> dict[str, bool]:
    """The names assigned in *body*, each with whether a docstring follows."""
    names: dict[str, bool] = {}
    for statement, after in zip(body, [*body[1:], None], strict=True):
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        documented = (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        )
        for target in targets:
            if isinstance(target, ast.Name):
                names[target.id] = names.get(target.id, False) or documented
    return names


@pytest.mark.parametrize("name", MODULES)
def test_all_is_a_tuple_of_names_that_exist(name: str) -> None:
    """Its order is ruff's (RUF022), which also mends it."""
    module = load(name)
    names = getattr(module, "__all__", None)
    assert isinstance(names, tuple)
    assert len(names) == len(set(names))
    assert [each for each in names if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", MODULES)
def test_whatever_a_module_defines_without_underscore_is_in_all(name: str) -> None:
    """Names imported from elsewhere are not its own, type variables and one-letter shorthands nobody's."""
    module = load(name)
    defined = {
        statement.name
        for statement in tree_of(module).body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    defined |= {
        each
        for each in described(tree_of(module).body)
        if type(getattr(module, each, None)).__module__ != "typing" or each in module.__all__
    }
    public = {each for each in defined if not each.startswith("_") and len(each) > 1}
    assert public - set(module.__all__) == set()


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name: str) -> None:
    """A class or function by its docstring, a constant or alias by the string after it; modules too.

    A name that is passed on from another module is documented there.
    """
    module = load(name)
    assert module.__doc__ or name == "semflux"  # the root begins with the map, as a comment
    values = described(tree_of(module).body)
    silent: list[str] = []
    for each in module.__all__:
        value = getattr(module, each)
        if each in values:
            if not values[each]:
                silent.append(each)
        elif getattr(value, "__module__", None) != name:
            continue
        elif inspect.isclass(value):
            if not value.__doc__:
                silent.append(each)
            silent += [f"{each}.{member}" for member in undocumented_members(value)]
        elif callable(value) and not inspect.getdoc(value):
            silent.append(each)
    assert silent == []


def undocumented_members(cls: type) -> Iterator[str]:
    """Public methods and properties of *cls* itself that neither have nor inherit a docstring."""
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod):
            found = inspect.getdoc(member) or any(
                inspect.getdoc(getattr(base, name, None)) for base in cls.__mro__[1:] if hasattr(base, name)
            )
            if not found:
                yield name


def test_the_root_exports_all_that_it_names() -> None:
    """Every public name bound in `semflux/__init__.py`, submodules aside, is in its `__all__`."""
    root = load("semflux")
    bound = {
        name
        for name, value in vars(root).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert bound - set(root.__all__) == set()
