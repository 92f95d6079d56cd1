"""The families of the fuzzer, one module each."""

from families.base import Family
from families.batches import BATCHES
from families.damaged import DAMAGED
from families.gaps import GAPS
from families.mixed_types import MIXED_TYPES
from families.models import MODELS
from families.nested import NESTED
from families.quotes import QUOTES
from families.spellings import SPELLINGS
from families.workbooks import WORKBOOKS

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *(BATCHES, DAMAGED, GAPS, MIXED_TYPES),
        *(MODELS, NESTED, QUOTES, SPELLINGS, WORKBOOKS),
    )
}
