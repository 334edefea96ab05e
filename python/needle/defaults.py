"""What needle runs with unless NEEDLE_BACKEND and NEEDLE_KERNELS say otherwise; a starter of the course has its own."""

BACKEND = "nd"
KERNELS = "fast"
