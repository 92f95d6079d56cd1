"""The families of the fuzzer, one module each."""

from families.base import Family
from families.damaged import DAMAGED

FAMILIES: dict[str, Family] = {family.name: family for family in (DAMAGED,)}
