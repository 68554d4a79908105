"""Tests of the judge itself: false rejections, named bugs, recorded verdicts."""
