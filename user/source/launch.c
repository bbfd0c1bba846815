/* TAKEN: launch.c and tests/unit/test_launch.c are being written by another helper (helper-6) right now. If your task named them: skip them. */
