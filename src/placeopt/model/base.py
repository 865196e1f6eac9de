"""
The strict base of everything users write and read, and the bounded integer types.

Every quantity is an integer with its unit in the field's name; every record refuses unknown fields,
coerced types and values out of range, and cannot be changed once made. The upper limits are wide
enough for any machine of today and narrow enough that sums over a cluster stay below 2^53.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Record(BaseModel):
    """A strict, frozen record: wrong types, unknown fields and values out of range are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="null")


Id = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[^\s\x00-\x1f\x7f]+$")]
"""Name of a node, job, machine, domain, queue: 1 to 253 characters without white space."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""Free text of one line: a label's value, a GPU model, a user."""

Count = Annotated[int, Field(ge=0, le=1_000_000)]
PositiveCount = Annotated[int, Field(ge=1, le=1_000_000)]
GpuIndex = Annotated[int, Field(ge=0, le=1023)]
Milli = Annotated[int, Field(ge=1, le=1000)]
"""Share of one GPU in thousandths; 1000 is a whole GPU."""

Percent = Annotated[int, Field(ge=0, le=100)]
Thousandths = Annotated[int, Field(ge=0, le=1_000_000)]
Millicores = Annotated[int, Field(ge=0, le=100_000_000)]
Mib = Annotated[int, Field(ge=0, le=1_000_000_000)]
Mbps = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Bandwidth in megabytes (10^6 bytes) per second."""

Milliseconds = Annotated[int, Field(ge=0, le=10_000_000_000_000)]
Weight = Annotated[int, Field(ge=0, le=1_000_000)]
Value = Annotated[int, Field(ge=0, le=1_000_000_000)]
MAX_NODES = 200_000
MAX_JOBS = 1_000_000
