"""python -m sycl_mat: the same as the command sycl-mat."""

from .cli import main

main()
