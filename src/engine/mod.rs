//! Threads, connections, phases, the closed loop, stopping.
