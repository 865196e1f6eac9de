"""How fast jobs run by the CPU cores that each of their GPUs has."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import Name, Record


class CoreCurve(Record):
    """
    How fast jobs of a profile run by the CPU cores that each of their GPUs has (SODA IV-B).

    Schedulers that search for the best number of cores measure on it; others do not know it.
    """

    profile: Name
    """Profile of the jobs that the curve describes."""
    category: Literal["vision", "language", "speech"] | None = None
    """Of the model; where a search for the best number begins."""
    speed_thousandths: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(min_length=1, max_length=1024)]
    """
    Speed with 1, 2, ... cores a GPU, in thousandths of the highest, which must be among them. In between it is
    interpolated, below the first it falls in proportion, beyond the last it stays.
    """

    @model_validator(mode="after")
    def _full_speed(self) -> Self:
        if max(self.speed_thousandths) != 1000:
            raise ValueError(f"speed_thousandths: the highest is {max(self.speed_thousandths)}, expected 1000")
        return self

    def speed(self, millicores: int) -> int:
        """Return the speed in thousandths with this many thousandths of cores a GPU, rounded down, at least 1."""
        known = self.speed_thousandths
        whole, part = divmod(millicores, 1000)
        if whole >= len(known):
            return known[-1]
        low = known[whole - 1] if whole else 0
        return max(1, low + (known[whole] - low) * part // 1000)
