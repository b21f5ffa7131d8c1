"""External simulators: ns-2, ns-3, and the Linux kernel in real time (`live`)."""
