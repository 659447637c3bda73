"""What every answer says of the time."""

from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from xenoglot.gateway.http.server import http_date


@given(st.floats(min_value=0, max_value=4_102_444_800))
def test_the_date_is_that_of_the_standard_library(now: float) -> None:
    assert http_date(now) == formatdate(int(now), usegmt=True)
