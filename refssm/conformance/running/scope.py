"""Which checks of an implementation are run, in which types, with how many cases."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from refssm._declaration.operator import Operator
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.checks import (
    AGAINST_GRADIENT,
    GRADIENT,
    PROFILES,
    Check,
    Profile,
    beside,
    checks_of,
    default_types,
    types_of,
)
from refssm.conformance.checks.laws import LAWS
from refssm.conformance.number_types import number_type
from refssm.conformance.running.settings import Settings

AUTODIFF = ("torch", "jax")


@dataclass(frozen=True)
class Scope:
    """What is judged of one operator, by the settings and the author's declaration."""

    op: Operator
    offer: Offer
    settings: Settings

    @cached_property
    def profile(self) -> Profile:
        """The numbers of cases; laws and gradients requested by name run in every profile."""
        profile = PROFILES[self.settings.profile].of(self.settings.cases)
        if not self.settings.only_checks:
            return profile
        return replace(profile, laws=len(LAWS), gradient=profile.gradient or profile.value)

    @property
    def shrink(self) -> bool:
        """True if failures are shrunk."""
        return self.settings.shrinks

    @cached_property
    def types(self) -> list[str]:
        """The types to judge in: the requested ones, else the declared ones, else the profile's."""
        asked, declared = self.settings.types, self.offer.dtypes
        half = any(number_type(t).half for t in (*asked, *declared))
        known = types_of(self.op, half)
        if self.only_complex:
            known = tuple(t for t in known if number_type(t).carrier.kind == "c")
        if asked:
            return [t for t in known if t in asked and (not declared or t in declared)]
        if not declared and not self.only_complex:
            return default_types(self.op, self.profile)
        mine = [t for t in known if not declared or t in declared]
        return mine if self.profile.double else mine[:1]

    @property
    def only_complex(self) -> bool:
        """True if no argument may be real that can be complex: no case mixes the two."""
        declared, real = self.offer.dtypes, "float32" in types_of(self.op)
        of_types = bool(declared) and all(number_type(t).carrier.kind == "c" for t in declared)
        return self.offer.kinds == "complex" or (real and of_types)

    @cached_property
    def foreign(self) -> str:
        """Why the operator has none of the requested types, or ""."""
        known = types_of(self.op, half=True)
        if not self.settings.types or set(known) & set(self.settings.types):
            return ""
        return f"judged only in {', '.join(known)}: choose one of these types"

    @cached_property
    def undeclared(self) -> str:
        """Why there is no type to judge in, or ""."""
        if self.types:
            return ""
        declared = ", ".join(self.offer.dtypes) or "complex numbers"
        return self.foreign or f"declared only for {declared}"

    @property
    def gradient_missing(self) -> str:
        """Why no gradient is judged although a user may expect one, or ""."""
        asked, has_vjp = self.settings.only_checks, self.offer.has_vjp
        if not self.op.differentiable:
            return ""
        if has_vjp and not (self.profile.gradient or asked):
            return f"not in the {self.settings.profile} profile: --check gradient runs it"
        if has_vjp or not (GRADIENT.name in asked or self.offer.framework in AUTODIFF):
            return ""
        if GRADIENT.name not in asked and (asked or not self.profile.gradient):
            return ""
        if self.offer.framework in AUTODIFF:
            return f"needs vjp=True (the gradient of {self.offer.framework}) or {self.op}_vjp"
        return f"needs {self.op}_vjp"

    def checks(self, types: Iterable[str], old: Beside | None = None) -> list[Check]:
        """The requested checks in these number types; comparisons with an `old` one last."""
        offer = self.offer
        checks = checks_of(self.op, self.profile, types, **_has(offer))
        if old is not None:
            vjp = offer.has_vjp and old.old.has_vjp
            checks += beside(self.op, self.profile, types, old.judge, vjp)
        asked = self.settings.only_checks
        return [c for c in checks if not asked or c.name in asked]

    def left_out(self, checks: Iterable[Check]) -> list[Check]:
        """The checks that the default profile has, and this one lacks; `checks` are its own."""
        ids = {check.id for check in checks}
        usual = replace(self, settings=replace(self.settings, profile="default"))
        return [check for check in usual.checks(usual.types) if check.id not in ids]

    def uncompared(self, old: Beside | None) -> str:
        """Why gradients are not compared with those of an old implementation, or ""."""
        asked = AGAINST_GRADIENT.name in self.settings.only_checks
        usual = not self.settings.only_checks and self.profile.gradient
        if old is None or not (asked or usual) or not self.op.differentiable:
            return ""
        new, before = self.offer.has_vjp, old.old.has_vjp
        if new == before and (new or not asked):
            return ""
        return (
            f"needs {self.op}_vjp"
            + ("" if new else " here")
            + ("" if before else f" in {old.called}")
        )

    def every_check(self) -> list[str]:
        """All checks of any profile, as check[dtype]."""
        offer, profile = self.offer, PROFILES["thorough"]
        types = [t for t in types_of(self.op, half=True) if t in offer.dtypes]
        types = types or types_of(self.op)
        checks = checks_of(self.op, profile, types, **_has(offer))
        return [f"{c.name}[{c.dtype}]" for c in checks]


def _has(offer: Offer) -> dict:
    """What of an implementation decides which checks it has."""
    return {"vjp": offer.has_vjp, "streams": offer.streams, "lengths": offer.lengths}
